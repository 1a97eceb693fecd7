"""Surfaces mapped and approximated on simulated systems: the policies of "Cutting Corners", MLRsearch and ours.

python bench/surface/run.py [--quick | --judged] [--maps N] [--seed N] [--processes N] [--figures DIR]
                                  [--record FILE]

Each map has a system of its own, drawn from the seed (a new one unless given, and printed); all mappers map the same
systems. By default 20 maps of each surface, a tenth as many where hours are shown over what is asked for: under 40
minutes on two cores. --quick shows within a minute that all of it runs, with maps too few and too small to judge by.
"""

from __future__ import annotations

import os
import secrets
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # matrices are small
sys.path.append(str(Path(__file__).resolve().parents[1]))  # bench/: rows

from etude.errors import EtudeError
from etude.figures.save import save
from etude.figures.style import Style
from etude.figures.surface import cost_against, cost_by_policy
from peak import mlrsearch_peer
from peak.searches import FIXED_COST_S, MLRSEARCH, TASK
from rows import HEADING, Row, line, measured_where, options, publish
from surface import fits
from surface.searches import OURS, PEER, REGION, SKIP, Job, Maps, jobs, mapped
from surface.tables import (
    FOUR,
    PAPERS,
    THRASH,
    Everything,
    by_policy,
    over_accuracy,
    over_width,
    reached,
    tables,
)

LONGEST_S = 2400.0

EXPLAINED = f"""\
A simulated trial costs its run and {FIXED_COST_S:g} s; loads are {TASK.lowest:g} to {TASK.highest:g} requests a second,
and the limit is a mean response of 40 ms (c 95 %, a 90 %, s 10 %, runs of {TASK.runlength_s:g} s, step {TASK.step:g}).
A surface has 32 configurations, disks × nfsds, but for *cached* (300) and *batches* (180), of which the *adaptive*
plan chooses those that can be paid for. *+seed*: a search begins at the peak of the nearest configuration, *ours* at
what the surrogate predicts. *ours+skip* leaves out configurations that are predicted within 10 % with 90 % confidence;
they count by their predictions. In Figure 9 accuracy a is that of the response for binsearch, and for *ours*, which
promises the rate, that of the rate (within 1 - a). In Figure 10 *ours+region* promises a response within s of the
limit; *ours* does not depend on s. All of it is simulation: configurations differ from a smooth law by normal noise;
nothing drifts."""


@dataclass(frozen=True)
class Extent:
    """How much is done."""

    maps: int
    few: int
    """Of what shows hours over what is asked for, and of each policy of the paper's that nothing is judged by."""
    surfaces: tuple[str, ...]
    cells: tuple[tuple[str, int], ...]
    """Of larger surfaces, how many can be paid for."""
    confidences: tuple[float, ...]
    accuracies: tuple[float, ...]
    widths: tuple[float, ...]
    over_width: tuple[str, ...]
    """Who maps for what is over the width."""
    fits: tuple[str, ...]
    seeds: int
    every: int = 1
    """One of this many cells of a surface is mapped."""


def extent(maps: int, quick: bool, judged: bool) -> Extent:
    """All of it, only what is judged, or only what shows that it runs."""
    if quick:
        few = (("batches", 4),)
        return Extent(1, 1, ("DB_TP",), few, (0.95,), (0.90,), (0.10,), (OURS, PEER), ("DB_TP",), 1, every=6)
    if judged:
        seeds = max(fits.SEEDS // 4, 1)
        return Extent(maps, 1, (*FOUR, THRASH), (), (), (), (), (), fits.LAWS, seeds)
    larger = (("cached", 40), ("batches", 40))
    return Extent(
        maps,
        max(round(maps / 10), 1),
        (*FOUR, THRASH),
        larger,
        (0.80, 0.90, 0.95),
        (0.80, 0.85, 0.90, 0.95),
        (0.20, 0.10, 0.05, 0.025),
        (OURS, REGION, *PAPERS),
        fits.LAWS,
        fits.SEEDS,
    )


def everything(of: Extent, seed: int, processes: int, peer: Path | None) -> Everything:
    """All maps."""
    todo = jobs((OURS, SKIP, PEER), of.surfaces, seed, of.maps, every=of.every)
    if peer is not None:
        todo += jobs((MLRSEARCH,), of.surfaces, seed, of.maps, peer, every=of.every)
    todo += jobs([name for name in PAPERS if name != PEER], of.surfaces, seed, of.maps, every=of.every)
    return Everything(
        mapped(todo, processes),
        mapped(_affordable(of, seed), processes),
        {(c, a): _asked(of, seed, processes, c, a) for c in of.confidences for a in of.accuracies},
        {width: _within(of, seed, processes, width) for width in of.widths},
    )


def _affordable(of: Extent, seed: int) -> list[Job]:
    count = max(of.few * 2, 1)
    return [Job(OURS, name, seed, number, cells=cells) for name, cells in of.cells for number in range(count)]


def _asked(of: Extent, seed: int, processes: int, confidence: float, accuracy: float) -> Maps:
    task = replace(TASK, confidence=confidence, accuracy=accuracy, within=round(1 - accuracy, 6))
    todo = jobs((OURS, "binsearch"), ("DB_TP",), seed, of.few, task=task, every=of.every)
    return mapped(todo, processes)


def _within(of: Extent, seed: int, processes: int, width: float) -> Maps:
    task = replace(TASK, width=width)
    return mapped(jobs(of.over_width, ("DB_TP",), seed, of.few, task=task, every=of.every), processes)


def page(every: Everything, fitted: fits.Found, header: Sequence[str], judged: Sequence[Row]) -> str:
    """All of it in Markdown."""
    laws = list(dict.fromkeys(law for _, law in fitted))
    lines = ["# Surfaces, simulated", "", *header, "", EXPLAINED, "", "## What was to be reached", ""]
    lines += [*HEADING, *map(line, judged), "", *tables(every), *fits.tables(fitted, laws)]
    return "\n".join(lines).rstrip() + "\n"


def verdicts(every: Everything, fitted: fits.Found, next_row: Row, took_s: float, quick: bool) -> list[Row]:
    """What was to be reached, the time of the bench itself as well; few maps judge nothing."""
    limit = f"≤ {LONGEST_S / 60:g} min"
    time_row = Row("this bench as a whole", "–", f"{took_s / 60:.1f} min", limit, took_s <= LONGEST_S)
    rows = [*reached(every), *fits.reached(fitted), next_row, time_row]
    return [replace(row, reached=None) for row in rows] if quick else rows


def draw(every: Everything, place: Path) -> None:
    """Figures 8, 9 and 10. Raises EtudeError where they cannot be written."""
    figures = {
        "cost-by-policy": cost_by_policy(by_policy(every.whole)),
        "cost-over-accuracy": cost_against(over_accuracy(every), "accuracy a"),
        "cost-over-width": cost_against(over_width(every), "width s of the region"),
    }
    place.mkdir(parents=True, exist_ok=True)
    for name, figure in figures.items():
        save(figure, str(place / f"{name}.png"), Style())


def main() -> int:
    """Map, print the page, and write it where asked; the exit code is 1 when something was not reached."""
    given = _options()
    start = time.monotonic()
    of = extent(given.maps, given.quick, given.judged)
    peer = mlrsearch_peer.installed()
    print(f"seed {given.seed}, {of.maps} maps of each surface", file=sys.stderr)
    every = everything(of, given.seed, given.processes, peer)
    fitted = fits.all_approximated(of.fits, range(given.seed, given.seed + of.seeds), given.processes)
    judged = verdicts(every, fitted, fits.next_sample_row(), time.monotonic() - start, given.quick)
    conditions = (
        f"{of.maps} maps of each surface by each mapper, {max(of.few * 2, 1)} of each larger one, {of.few} of what is "
        f"over accuracy and width; {of.seeds} systems approximated; --seed {given.seed}; {given.processes} processes"
    )
    header = measured_where(conditions, mlrsearch_peer.versions(peer))
    status = publish(page(every, fitted, header, judged), given.record, judged)
    if given.figures:
        try:
            draw(every, given.figures)
        except (EtudeError, OSError) as error:
            print(f"bench: {given.figures}: no figures: {error}", file=sys.stderr)
            return 1
    return status


def _options() -> Namespace:
    parser = options(__doc__, record=True)
    seed = secrets.randbelow(2**31)
    parser.add_argument("--quick", action="store_true", help="one map of few: only shows that it runs")
    parser.add_argument("--judged", action="store_true", help="without larger surfaces and Figures 9 and 10")
    parser.add_argument("--maps", type=int, default=20, help="of each surface (default %(default)s)")
    parser.add_argument("--seed", type=int, default=seed, help="of all systems (default: a new one)")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="(default: one a CPU)")
    parser.add_argument("--figures", type=Path, metavar="DIR", help="draw Figures 8 to 10 there")
    given = parser.parse_args()
    if given.maps < 1 or given.processes < 1 or given.seed < 0:
        parser.error("--maps and --processes are one or more, --seed is no negative number")
    return given


if __name__ == "__main__":
    sys.exit(main())
