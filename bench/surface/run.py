"""Surfaces mapped and approximated on simulated systems: the policies of "Cutting Corners", MLRsearch and ours.

python bench/surface/run.py [--quick | --judged] [--maps N] [--seed N] [--processes N] [--figures DIR]
                                  [--record FILE]

Each map has a system of its own, drawn from the seed (a new one unless given, and printed); all mappers map the same
systems. By default 20 maps of each surface, a tenth as many where hours are shown over what is asked for: under 40
minutes on two cores. --quick shows within a minute that all of it runs, with maps too few and too small to judge by.
"""

from __future__ import annotations

import math
import os
import secrets
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # matrices are small
sys.path.append(str(Path(__file__).resolve().parents[1]))  # bench/: rows

import numpy as np

from etude.errors import EtudeError
from etude.figures.save import save
from etude.figures.style import Style
from etude.figures.surface import cost_against, cost_by_policy
from etude.surface.simulated import REFERENCE
from peak import mlrsearch_peer
from peak.searches import FIXED_COST_S, MLRSEARCH, TASK, WITHIN
from rows import HEADING, Row, line, measured_where, options, publish, shown, table
from surface import fits
from surface.searches import FIRST_SAMPLES, MAPPERS, OURS, PEER, REGION, SKIP, Found, Job, Maps, jobs, mapped

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


FOUR = ("DB_TP", "Web", "Mail", "SPECsfs97")
"""The paper's three workloads, and the fourth of its generator."""
THRASH = "DB_TP-thrash"
PAPERS_FITS = {"DB_TP": (14.0, 14.0, 15.0), "Web": (9.0, 9.0, 9.0), "Mail": (3.3, 2.8, 2.7)}
"""Its Table 4, by FIRST_SAMPLES."""
PAPERS_HOURS = 47.6
"""Of Binsearch with Seeding on DB_TP, the least of its Figure 8 (section 5.3.2)."""
PAPERS = ("linear", "linear+seed", "binsearch", PEER, "model")

Lines = Mapping[str, Sequence[tuple[float, float]]]
"""By name: a target, and mean hours."""


@dataclass(frozen=True)
class Everything:
    """All maps of one run."""

    whole: Maps
    """Of the reference surfaces."""
    affordable: Maps
    """Of larger ones: the cells that were chosen."""
    by_confidence: Mapping[tuple[float, float], Maps]
    """Of DB_TP, by confidence and accuracy."""
    by_width: Mapping[float, Maps]
    """Of DB_TP."""


def hours(found: Maps, mapper: str, surfaces: Sequence[str]) -> float:
    """Mean benchmarking hours of a map, summed over surfaces; NaN where one was not mapped."""
    if any((mapper, surface) not in found for surface in surfaces):
        return math.nan
    return sum(mean_hours(found[mapper, surface]) for surface in surfaces)


def mean_hours(found: Sequence[Found]) -> float:
    return float(np.mean([each.hours for each in found]))


def right(found: Sequence[Found]) -> float:
    """% of all cells whose rate is within 10 % of the true peak, also of those that were predicted."""
    every = [error for each in found for error in each.every]
    return 100 * sum(error is not None and abs(error) <= WITHIN for error in every) / len(every)


def covered(found: Sequence[Found]) -> float:
    """% of predicted cells whose interval holds the true peak; NaN where none was predicted."""
    told = [held for each in found for _, held in each.predicted]
    return 100 * sum(told) / len(told) if told else math.nan


def predicted(found: Sequence[Found]) -> float:
    """% of all cells that were predicted."""
    return 100 * sum(len(each.predicted) for each in found) / sum(len(each.every) for each in found)


def mape(found: Sequence[Found], count: int) -> float:
    """Mean absolute error of all cells from so many measured by our searches, %; NaN where there is none."""
    values = [value for each in found for number, value in each.mape if number == count]
    return float(np.mean(values)) if values else math.nan


def reached(every: Everything) -> list[Row]:
    """What was to be reached, as far as those took part that it is about."""
    whole = every.whole
    surfaces = [name for name in FOUR if (OURS, name) in whole]
    rows = mapped_whole(whole, surfaces)
    if (SKIP, THRASH) in whole:
        rows.append(_coverage(whole, [THRASH], THRASH))
    if all((MLRSEARCH, name) in whole for name in surfaces):
        cost = hours(whole, OURS, surfaces) / hours(whole, MLRSEARCH, surfaces)
        said = f"{cost:.3f} ×"
        rows.append(
            Row("benchmarking hours, every configuration", "MLRsearch, 5 %", said, "≤ 0.333 ×", cost <= 1 / 3)
        )
    rows += [as_measured(whole, name) for name in REFERENCE if (OURS, name) in whole]
    rows += on_larger(every.affordable)
    return [*rows, decisions(whole)]


def mapped_whole(found: Maps, surfaces: Sequence[str]) -> list[Row]:
    """Hours against the paper's policy, and how good the cells are."""
    rows = []
    for mapper, limit in ((OURS, 0.15), (SKIP, 0.10)):
        cost = hours(found, mapper, surfaces) / hours(found, PEER, surfaces)
        worst, surface = min((right(found[mapper, name]), name) for name in surfaces)
        said = f"{worst:.1f} % ({surface})"
        name = "every configuration" if mapper == OURS else "with predicted configurations"
        rows += [
            Row(f"benchmarking hours, {name}", PEER, f"{cost:.3f} ×", f"≤ {limit:.2f} ×", cost <= limit),
            Row(f"configurations within 10 %, {name}, worst surface", "–", said, "≥ 95 %", worst >= 95),
        ]
    rows += [_coverage(found, [name], name) for name in surfaces]
    return [*rows, _coverage(found, surfaces, "all together")]


def _coverage(found: Maps, surfaces: Sequence[str], name: str) -> Row:
    together = [each for surface in surfaces for each in found[SKIP, surface]]
    share = covered(together)
    count = sum(len(each.predicted) for each in together)
    said = "no configuration" if math.isnan(share) else f"{share:.1f} % of {count}"
    good = None if math.isnan(share) else share >= 95
    return Row(f"predicted configurations whose interval holds the peak: {name}", "–", said, "≥ 95 %", good)


def as_measured(found: Maps, surface: str) -> Row:
    """The error of predictions where peaks are known as well as our searches tell them."""
    values = [mape(found[OURS, surface], count) for count in FIRST_SAMPLES]
    papers = PAPERS_FITS.get(surface)
    said = " / ".join(f"{value:.1f}" for value in values)
    told = "–" if papers is None else f"the paper: {' / '.join(f'{x:g}' for x in papers)} %"
    name = f"{surface}: error from {' / '.join(map(str, FIRST_SAMPLES))} configurations as our searches measure them"
    return shown(name, told, f"{said} %")


def on_larger(found: Maps) -> list[Row]:
    """Hours of the cells that can be paid for, against the paper's policy on the same."""
    rows = []
    for mapper, surface in found:
        if mapper != OURS:
            continue
        maps = found[OURS, surface]
        cost = hours(found, OURS, [surface]) / hours(found, PEER, [surface])
        count = len(maps[0].errors)
        name = f"{surface}: benchmarking hours of {count} of {len(maps[0].every)} configurations"
        rows.append(Row(name, f"{PEER}, the same configurations", f"{cost:.3f} ×", "≤ 0.15 ×", cost <= 0.15))
        rows.append(shown(f"{surface}: all configurations within 10 %", "–", f"{right(maps):.1f} %"))
        what = f"{surface}: predicted configurations whose interval holds the peak"
        rows.append(shown(what, "–", f"{covered(maps):.1f} %"))
    return rows


def decisions(found: Maps) -> Row:
    took = [s for (mapper, _), of in found.items() if mapper == SKIP for each in of for s in each.decisions_s]
    said = f"at most {max(took):.2f} s" if took else "–"
    return shown("choice of a configuration of 32", "–", said)


def tables(every: Everything) -> list[str]:
    whole = every.whole
    surfaces = list(dict.fromkeys(surface for _, surface in whole))
    lines = []
    larger = list(dict.fromkeys(surface for _, surface in every.affordable))
    ours = {key: of for key, of in whole.items() if MAPPERS[key[0]].rules.skip}
    for title, found, some, of, digits in (
        ("Benchmarking hours of a map", whole, surfaces, mean_hours, 1),
        ("Cells within 10 % of the true peak, %", whole, surfaces, right, 1),
        ("Cells predicted, % of all", ours, surfaces, predicted, 0),
        ("Predicted configurations whose interval holds the true peak, %", ours, surfaces, covered, 1),
        (
            "Benchmarking hours of the configurations that can be paid for",
            every.affordable,
            larger,
            mean_hours,
            1,
        ),
    ):
        lines += by_surface(title, found, some, of, digits)
    lines += figure_8(whole, surfaces)
    lines += _lines("Figure 9: hours of DB_TP over accuracy a", "a", over_accuracy(every))
    title = "Figure 10: hours of DB_TP over the width s of the peak-rate region"
    return [*lines, *_lines(title, "s", over_width(every))]


def by_surface(
    title: str, found: Maps, surfaces: Sequence[str], of: Callable[[Sequence[Found]], float], digits: int
) -> list[str]:
    """A mapper a row, a surface a column."""
    rows = []
    for mapper in MAPPERS:
        values = [of(found[mapper, name]) if (mapper, name) in found else math.nan for name in surfaces]
        if not all(map(math.isnan, values)):
            rows.append([mapper, *(figure(value, digits) for value in values)])
    return [f"## {title}", "", *table(["mapper", *surfaces], rows)]


def figure_8(found: Maps, surfaces: Sequence[str]) -> list[str]:
    """Hours by policy and workload, as ratios to Binsearch with a seed on DB_TP."""
    unit = hours(found, PEER, ["DB_TP"])
    title = f"Figure 8: hours as ratios to {PEER} on DB_TP ({unit:.1f} h; the paper's: {PAPERS_HOURS:g} h)"
    return by_surface(title, found, surfaces, lambda of: mean_hours(of) / unit, 2)


def by_policy(found: Maps) -> dict[str, dict[str, float]]:
    """Figure 8 as it is drawn: hours by workload, then policy."""
    drawn: dict[str, dict[str, float]] = {}
    for (mapper, surface), of in found.items():
        drawn.setdefault(surface, {})[mapper] = mean_hours(of)
    return {
        surface: {name: each[name] for name in MAPPERS if name in each} for surface, each in drawn.items()
    }


def over_accuracy(every: Everything) -> dict[str, list[tuple[float, float]]]:
    """Figure 9 as it is drawn; our searches do not ask for an accuracy of the response."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for (confidence, accuracy), found in every.by_confidence.items():
        for mapper in ("binsearch", OURS):
            if not math.isnan(cost := hours(found, mapper, ["DB_TP"])):
                name = f"{mapper}, {100 * confidence:g} % confidence"
                lines.setdefault(name, []).append((accuracy, cost))
    return lines


def over_width(every: Everything) -> dict[str, list[tuple[float, float]]]:
    """Figure 10 as it is drawn."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for width, found in every.by_width.items():
        for mapper in MAPPERS:
            if not math.isnan(cost := hours(found, mapper, ["DB_TP"])):
                lines.setdefault(mapper, []).append((width, cost))
    return lines


def _lines(title: str, name: str, lines: Lines) -> list[str]:
    if not lines:
        return []
    places = sorted({at for each in lines.values() for at, _ in each})
    header = ["mapper", *(f"{name} = {100 * at:g} %" for at in places)]
    rows = [
        [mapper, *(figure(dict(each).get(at, math.nan), 1) for at in places)]
        for mapper, each in lines.items()
    ]
    return [f"## {title}", "", *table(header, rows)]


def figure(value: float, digits: int) -> str:
    return "–" if math.isnan(value) else f"{value:.{digits}f}"


if __name__ == "__main__":
    sys.exit(main())
