"""Searches and maps: of simulated servers, and of responses that are functions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from etude.cli.main import main
from etude.surface.factors import Configuration, Factor, Space
from etude.surface.next_configuration import Rules
from etude.surface.samples import Sample
from golden.making.machines import homeless, settle
from support.charting import Made, mapped, product, unknown
from support.spreading import Nodes, mapped_over


def search(path: Path, *words: str) -> Path:
    """A search of a simulated server."""
    with suppress(SystemExit):
        main(["peak", "--simulate", *words, "-o", str(path), "-q", "--seed", "1"])
    return finished(path)


def finished(path: Path) -> Path:
    settle(path)
    homeless(path)
    return path


def posterior(path: Path) -> None:
    search(path, "mm1:300")


def bracket(path: Path) -> None:
    search(path, "knee:700", "--policy", "bracket")


def region(path: Path) -> None:
    search(path, "mmc:400", "--promise", "region", "--width", "20%")


def broken_promise(path: Path) -> None:
    search(path, "ramp:900", "--policy", "binsearch", "--budget", "20m")


def calibration(path: Path) -> None:
    search(path, "mm1:200", "--calibrate", "--seed-load", "200")
    for figure in path.glob("*.pdf"):
        figure.unlink()


def interrupted(path: Path) -> None:
    """Ended while it was under way: no answer, and the last line is torn."""
    search(path, "mm1:300", "--policy", "linear", "--budget", "1h")
    document = json.loads((path / "experiment.json").read_text())
    document["answer"] = None
    document["sittings"][0] |= {"end": None, "how_ended": None}
    del document["sittings"][0]["decisions"]
    (path / "experiment.json").write_text(json.dumps(document, indent=1) + "\n")
    file = path / document["tests"][-1]["directory"] / "results.jsonl"
    file.write_bytes(file.read_bytes()[:-50])


def older(path: Path) -> None:
    """Of a version whose tasks knew less: no budget, no shapes and no spread of the seed."""
    search(path, "mm1:300", "--policy", "bracket")
    document = json.loads((path / "experiment.json").read_text())
    task = document["plan"]["task"]
    for name in ("seed_shapes", "seed_spread", "budget_s", "whole", "step", "accuracy"):
        task.pop(name, None)
    (path / "experiment.json").write_text(json.dumps(document, indent=1) + "\n")


# --- maps ------------------------------------------------------------------------------------------


GRID = Space(
    (
        Factor("disks", "linear", (1.0, 2.0, 3.0, 4.0)),
        Factor("nfsds", "log", (1.0, 4.0, 16.0, 64.0), "threads"),
        Factor("fs", "categorical", ("ext4", "xfs")),
    )
)


def limited(cell: Configuration) -> float:
    """The lower of what disks and daemons bear, with a soft knee."""
    disks, daemons, fs = 180 * (cell[0] + 1), 120 * 4 ** cell[1], 1.0 + 0.15 * cell[2]
    noise = 1 + 0.01 * np.random.default_rng(cell).standard_normal()
    return float(((disks**-6 + daemons**-6) ** (-1 / 6)) * fs * noise)


def full(path: Path) -> None:
    mapped(path, Made())
    finished(path)


def predicted(path: Path) -> None:
    """Some cells measured, the others predicted."""
    mapped(path, Made(limited), Rules("d-optimal", count=16, seed=1), space=GRID)
    finished(path)


def failed(path: Path) -> None:
    """A cell that died, one of which only a bound is known."""

    def of(cell: Configuration) -> Any:
        if cell == (2, 1):
            return unknown(cell, 2)
        if cell == (0, 0):
            return Sample(
                cell, "bounded", None, 50.0, np.inf, 0.95, 60.0, 2, False, "the load generator was at its end"
            )
        return product(cell)

    mapped(path, Made(of))
    finished(path)


def surface_interrupted(path: Path) -> None:
    def of(cell: Configuration) -> Any:
        return KeyboardInterrupt() if cell == (2, 0) else product(cell)

    with suppress(KeyboardInterrupt):
        mapped(path, Made(of), Rules("in-order"))
    finished(path)


def pooled(path: Path) -> None:
    """Over two nodes, of which one was lost."""
    lost = {(1, 0): "no-space"}
    nodes = Nodes(2, ends=lambda cell, node: lost.get(cell) if node == "node-1" else None)  # type: ignore[arg-type]
    mapped_over(path, nodes)
    homeless(path)


def simulated(path: Path) -> None:
    """A surface of the paper, searched cell by cell."""
    with suppress(SystemExit):
        main(["surface", "--simulate", "DB_TP", "--plan", "adaptive", "--count", "8", "-o", str(path), "-q"])
    finished(path)


MADE: Mapping[str, Callable[[Path], None]] = {
    **{
        f"peak/{make.__name__.replace('_', '-')}": make
        for make in (posterior, bracket, region, broken_promise, calibration, interrupted, older)
    },
    **{f"surface/{make.__name__}": make for make in (full, predicted, failed, pooled, simulated)},
    "surface/interrupted": surface_interrupted,
}
