"""What maps came to: what was to be reached, and tables of hours and of how good all cells are."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from etude.surface.simulated import REFERENCE
from markdown import table
from peak.searches import MLRSEARCH, WITHIN
from rows import Row, shown
from surface.searches import FIRST_SAMPLES, MAPPERS, OURS, PEER, SKIP, Found, Maps

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
    """Benchmarking hours of a map."""
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
    """How long the choice of a cell takes."""
    took = [s for (mapper, _), of in found.items() if mapper == SKIP for each in of for s in each.decisions_s]
    said = f"at most {max(took):.2f} s" if took else "–"
    return shown("choice of a configuration of 32", "–", said)


def tables(every: Everything) -> list[str]:
    """In Markdown."""
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
    """Or a dash."""
    return "–" if math.isnan(value) else f"{value:.{digits}f}"
