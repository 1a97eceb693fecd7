"""A figure of each kind, made from the data of tests: compared with pictures, and redrawn by its scripts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from etude.figures.bars import bars_of
from etude.figures.data import Figure
from etude.figures.plot import make
from etude.figures.plot_options import PlotOptions, threshold
from etude.figures.sources import read_samples
from etude.figures.style import Style
from etude.figures.surface import KnownValue, Levels, contours, cost_by_policy, solid
from support.builders import measurement, results_directory
from support.places import DATA

POSTMARK = DATA / "postmark"


@dataclass(frozen=True)
class Example:
    """A figure with its name."""

    name: str
    figure: Figure
    style: Style


def kept_results(directory: Path) -> Path:
    """Two tests in blocks over two boots: a failed trial, one excluded, and an outlier."""
    rows = {}
    for place, test in enumerate(("old", "new")):
        rows[test] = [
            measurement(
                test,
                trial,
                0.010 + 0.002 * place + 0.0001 * ((trial * 7) % 5) + (0.02 if trial == 9 and place else 0.0),
                boot_id="first" if trial <= 8 else "second",
                sitting=1 if trial <= 8 else 2,
                exit_status=1 if trial == 5 and place else 0,
                kept=not (trial == 1 or (trial == 5 and place)),
                why="first run" if trial == 1 else "failed" if trial == 5 and place else None,
            )
            for trial in range(1, 17)
        ]
    sittings = [
        {"sitting": n, "boot_id": boot, "host": "here", "start": "", "end": None}
        for n, boot in ((1, "first"), (2, "second"))
    ]
    return results_directory(directory, rows, sittings=sittings, plan={"kind": "res"})


def of(kind: str, *files: str, **wishes: object) -> Callable[[Path], Figure]:
    def made(directory: Path) -> Figure:
        wish = PlotOptions(**wishes)  # type: ignore[arg-type]
        return make(kind, read_samples([str(DATA / file) for file in files], wish), wish)

    return made


def of_kept_results(directory: Path) -> Figure:
    wish = PlotOptions(thresholds=(threshold("12ms=budget"),))
    return make("timeline", read_samples([str(kept_results(directory / "kept"))], wish), wish)


def cooling(directory: Path) -> Figure:
    """Figure 6 of the Auto-pilot paper, in kind."""
    wish = PlotOptions(
        metrics=("Elapsed", "User", "System"), plain_names=True, rotate=45.0, y_label="Time (seconds)"
    )
    samples = read_samples([str(DATA / "cooling.csv")], wish)
    return bars_of([(sample.name, [sample]) for sample in samples], wish)


ONE_EACH = tuple(f"postmark/{name}.res" for name in ("ext2:1", "ext4:1", "xfs:1"))
THREADS = tuple(f"postmark/{fs}:{n}.res" for fs in ("ext4", "xfs") for n in (1, 2, 4))
TIMES = ("elapsed", "system", "user")
MARKS = ("4KiB=page", "32KiB=L1", "288KiB=TLB", "1MiB=L2", "2MiB=huge page", "12MiB=L2 TLB", "32MiB=L3")


def surface_of(kind: Literal["map", "solid"]) -> Callable[[Path], Figure]:
    """Figure 2 of "Cutting Corners", in kind: two thirds predicted, one cell not known."""

    def made(directory: Path) -> Figure:
        disks = Levels("disks", ("1", "2", "3", "4"), (1.0, 2.0, 3.0, 4.0))
        counts = (1, 2, 4, 8, 16, 32, 64, 100)
        nfsds = Levels("nfsds", tuple(map(str, counts)), tuple(map(float, counts)), log=True)
        known = [
            KnownValue(x, y, None, state="failed")
            if (x, y) == (3, 4)
            else KnownValue(x, y, ((170 * (x + 1)) ** -4 + (60 * n) ** -4) ** -0.25,
                       state="measured" if (x + y) % 3 == 0 else "predicted")
            for x in range(4)
            for y, n in enumerate(counts)
        ]  # fmt: skip
        return (contours if kind == "map" else solid)(disks, nfsds, known, "peak rate (1/s)", "fs=xfs")

    return made


def policies(directory: Path) -> Figure:
    """Figure 8 of "Cutting Corners", in kind."""
    hours = {"linear": 260.0, "linear with seeding": 71.0, "binsearch": 52.0, "posterior": 9.0}
    return cost_by_policy({"DB_TP": hours, "Web server": {name: 2.2 * h for name, h in hours.items()}})


EXAMPLES: dict[str, Callable[[Path], Figure]] = {
    "bars": of("bars", *ONE_EACH, metrics=TIMES),
    "bars-beside": of(
        "bars", *ONE_EACH, metrics=TIMES, stack=False, bar_gap=0.2, group_gap=2.0, key="top left"
    ),
    "cooling": cooling,
    "lines": of("lines", *THREADS, thresholds=(threshold("300ms=budget"),), title="Postmark"),
    "marks": of(
        "lines",
        "buffers.csv",
        log="x",
        bars="quartiles",
        thresholds=(threshold("4GiB/s=disk"),),
        marks=tuple(map(threshold, MARKS)),
    ),
    "ratio": of("ratio", "linking.csv", log="xy", marks=(threshold("1MiB=L2"),)),
    "pvalues": of("pvalues", "linking.csv", log="xy", first=(6,)),
    "ecdf": of("ecdf", *ONE_EACH, thresholds=(threshold("100ms"),)),
    "box": of("box", *ONE_EACH),
    "violin": of("violin", *ONE_EACH, thresholds=(threshold("100ms"),)),
    "histogram": of("histogram", *ONE_EACH[2:]),
    "histograms": of("histogram", *ONE_EACH),
    "percentiles": of("percentiles", *ONE_EACH),
    "timeline": of_kept_results,
    "surface": surface_of("solid"),
    "surface-map": surface_of("map"),
    "policies": policies,
    "before-after": of("before-after", *ONE_EACH[1:]),
}


@pytest.fixture(params=EXAMPLES)
def example(request: pytest.FixtureRequest, tmp_path: Path) -> Example:
    """Each of the figures in turn."""
    return Example(request.param, EXAMPLES[request.param](tmp_path), Style(dots=100))


@pytest.fixture
def figures(tmp_path: Path) -> dict[str, Figure]:
    """All of them."""
    return {name: made(tmp_path) for name, made in EXAMPLES.items()}
