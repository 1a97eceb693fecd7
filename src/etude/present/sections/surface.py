"""A surface as a section: every cell, the summary, and figures; and as a document."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from etude.figures.surface import figures_of
from etude.peak.search_store import SearchStore
from etude.present.section import (
    Block,
    Cell,
    Column,
    Paragraphs,
    Picture,
    Section,
    Sentence,
    Table,
    note,
    number,
    page_table,
)
from etude.present.sentences.comparison import with_full_stop
from etude.present.sentences.peak import goal_text, of_map
from etude.present.sentences.status import UNFINISHED
from etude.present.sentences.surface import (
    limit_text,
    missed_lines,
    optimum_lines,
    summary_lines,
    unmeasured_lines,
)
from etude.present.sentences.verdict import as_line
from etude.surface.effects import Ratio
from etude.surface.factors import Configuration, magnitude, setting_text
from etude.surface.map_store import MapStore
from etude.surface.peaks import SEARCH
from etude.surface.ranges import LITTLE, NOTHING, Limit, Range
from etude.surface.run_map import MISSED
from etude.surface.summary import Summary, summarise
from etude.surface.surface_result import Estimate, SurfaceResult, axis_label, estimate_text, joined, span_text
from etude.units.formatting import counted, duration, percent

UNTRIED = "not measured"
MOST_ROWS = 60
"""Most rows of a table on a screen; a page and JSON have all cells."""
CAPTIONS = {
    "surface": "The response over the factors",
    "map": "Contour map of the response; rings: the best configuration, and those not significantly different from it",
    "effects": "Main effects: geometric means as ratios to each factor's lowest level, with intervals",
}


def surface_section(
    mapped: SurfaceResult,
    key: str = "surface",
    heading: str = "Surface",
    *,
    status: str = "",
    ended: str = "",
    target: float | None = None,
    little: float = LITTLE,
    drawn: bool = True,
    goal: str = "",
) -> Section:
    """Section on one surface: its cells, then the summary.

    status: words to show first. ended: reason for the end. target: response for which the needed level of each factor
    is stated.
    little: relative change below which none is reported. drawn: with figures, which take seconds.
    goal: criteria of a peak rate.
    """
    said = summarise(mapped, target=target, little=little)
    doubts = _doubts(mapped, said)
    drawings = figures_of(mapped, said.optimum) if drawn and mapped.filled.known.any() else {}
    blocks: tuple[Block, ...] = (
        *_cells_blocks(mapped, said),
        *(Paragraphs(name, lines) for name, lines in summary_lines(said)),
        *map(note, doubts),
        *([Paragraphs("Findings", doubts, room="page")] if doubts else ()),
        *(Picture(_caption(name, figure.title), figure) for name, figure in drawings.items()),
        cells_table(mapped, said, f"{key}-cells"),
        effects_table(said, f"{key}-effects"),
    )
    first, *others = optimum_lines(said.optimum) if said.optimum else ("Nothing is known yet.",)
    answer = (" ".join(filter(None, (status, first))), *others, *([f"Ended: {ended}."] if ended else []))
    return Section(key, heading, blocks, answer, _questions(mapped, said, goal))


def map_blocks(kept: MapStore, mapped: SurfaceResult, *, target: float | None = None) -> Iterator[Block]:
    """The blocks of a stored map on a terminal, with what limits it first."""
    if status := map_status(kept, mapped):
        yield Sentence(status, "warning")
    if (end := kept.document.get("surface")) is not None:
        yield Sentence(f"Ended: {end['why']}.", "aside")
    yield from surface_section(mapped, target=target, drawn=False).blocks


def map_goal(kept: MapStore) -> str:
    """Criteria of the peak rate, as those of the first search on disk; empty for another response."""
    for sample in kept.samples():
        place = kept.attempt_place(sample.cell, last=True) / SEARCH
        if (place / "experiment.json").exists():
            return goal_text(SearchStore(place).task)
    return ""


def map_status(kept: MapStore, mapped: SurfaceResult) -> str:
    """The first words of a map, which limit all that follows: `Simulated; unfinished. Interrupted after …`; empty where
    nothing does."""
    words = of_map(kept, mapped)
    parts = list(filter(None, [as_line(words)]))
    if UNFINISHED in words:
        measured = len({sample.cell for sample in kept.samples()})
        parts.append(
            f"Interrupted after {measured} of {counted(kept.definition.space.size, 'configuration')}: "
            f"the same command with -o {kept.directory} resumes it."
        )
    return " ".join(parts)


def _questions(mapped: SurfaceResult, said: Summary, goal: str) -> dict[str, tuple[str, ...]]:
    names, told = [factor.name for factor in mapped.space.factors], dict(summary_lines(said))
    what = [f"The {mapped.response} over {joined(names)}: {counted(mapped.space.size, 'configuration')}."]
    if said.spent.predicted:
        what.append(f"{said.spent.predicted} of them are predicted by {mapped.surrogate}.")
    if goal:
        what.append(f"The peak rate is the highest load with {goal}.")
    return {
        "what": (" ".join(what),),
        "often": (*told["Cost"], *unmeasured_lines(_unmeasured(mapped))),
        "real": (f"Intervals are at {100 * mapped.confidence:g} % confidence.", *told.get("Accuracy", ())),
        "large": (*told["Optimum"][:1], *_at_best(said), *told.get("Main effects", ())),
        "against": (*told["Optimum"][1:], *map(with_full_stop, _doubts(mapped, said))),
    }


def _unmeasured(mapped: SurfaceResult) -> dict[str, list[str]]:
    """Names of the configurations that were not measured, by what is known of them."""
    found: dict[str, list[str]] = {}
    for cell in mapped.space:
        if (state := _state(mapped, cell)) != "measured":
            found.setdefault(state, []).append(mapped.space.name(cell))
    return found


def _state(mapped: SurfaceResult, cell: Configuration) -> str:
    """Origin of what is known of a configuration; one that was never tried, and cannot be predicted, has not failed."""
    state = mapped.estimate(cell).state
    return UNTRIED if state == "failed" and cell not in mapped.last else state


def _at_best(said: Summary) -> tuple[str, ...]:
    best = None if said.optimum is None else said.optimum.name
    texts = (limit_text(each).removeprefix(f"{best}: ") for each in said.limits if each.name == best)
    return tuple(f"What limits there: {each}." for each in texts)


def _doubts(mapped: SurfaceResult, said: Summary) -> tuple[str, ...]:
    """Findings, with the names of the configurations that missed their targets in place of their number."""
    missed = missed_lines(said.missed)
    return (*missed, *(line for line in mapped.findings if not (missed and line.endswith(MISSED))))


def _cells_blocks(mapped: SurfaceResult, said: Summary) -> Iterator[Block]:
    several = [n for n, factor in enumerate(mapped.space.factors) if len(factor.levels) > 1]
    label = axis_label(mapped.response, mapped.unit)
    yield Sentence(f"{label}, {100 * mapped.confidence:g} % intervals:", "strong")
    if len(several) == 2:
        yield _matrix(mapped, *several)
    else:
        yield from _list(mapped, said)
    if any(mapped.estimate(cell).state == "predicted" for cell in mapped.space):
        yield Sentence(f"~ predicted by {mapped.surrogate}; all else was measured.", "aside")


def _matrix(mapped: SurfaceResult, a: int, b: int) -> Table:
    """The factor with fewer levels across."""
    across, down = sorted((a, b), key=lambda n: len(mapped.space.factors[n].levels))
    factors, base = mapped.space.factors, [0] * len(mapped.space.factors)
    cells = set(mapped.space)

    def text(i: int, j: int) -> str:
        cell = list(base)
        cell[down], cell[across] = i, j
        return _short(mapped.estimate(tuple(cell)), mapped.unit) if tuple(cell) in cells else ""

    rows = range(len(factors[down].levels))
    first = Column(axis_label(factors[down].name, factors[down].unit), [factors[down].text(i) for i in rows])
    columns = [
        Column(f"{factors[across].name}={factors[across].text(j)}", [text(i, j) for i in rows])
        for j in range(len(factors[across].levels))
    ]
    return Table((first, *columns), every=True, room="screen")


def _list(mapped: SurfaceResult, said: Summary) -> Iterator[Block]:
    cells = list(mapped.space)
    if len(cells) > MOST_ROWS:
        cells = [cell for cell in cells if mapped.estimate(cell).state != "predicted"]
    limiting = {limit.cell: limit.factor or NOTHING for limit in said.limits}
    shown = cells[:MOST_ROWS]
    columns = (
        Column("configuration", [setting_text(mapped.space.factors, cell) for cell in shown]),
        Column(mapped.response, [_short(mapped.estimate(cell), mapped.unit) for cell in shown]),
        Column("what limits", [limiting.get(cell, "–") for cell in shown], 1),
    )
    yield Table(columns, room="screen")
    if len(shown) < mapped.space.size:
        more = mapped.space.size - len(shown)
        yield Sentence(f"{more} more configurations are in the report and in --json.", "aside")


def _short(each: Estimate, unit: str) -> str:
    """`~ 512.4/s ± 8 %`: predicted value, and the larger half of its interval."""
    told = estimate_text(each, unit)
    if each.value is None:
        return "–" if told == "failed" else told
    mark = "~ " if each.state == "predicted" else ""
    if not (each.low > 0 and math.isfinite(each.high)):
        return f"{mark}{told}"
    half = max(each.value - each.low, each.high - each.value) / each.value
    return f"{mark}{told} ± {percent(half)}"


def cells_table(mapped: SurfaceResult, said: Summary, key: str = "cells") -> Table:
    """A row per cell: its response, how it is known, what limits it, and its cost."""
    factors = mapped.space.factors
    limiting = {limit.cell: limit for limit in said.limits}
    rows = tuple(_row(mapped, cell, limiting.get(cell)) for cell in mapped.space)
    level = f"{100 * mapped.confidence:g} %"
    headings = (
        *(axis_label(factor.name, factor.unit) for factor in factors),
        mapped.response, f"interval, {level}", "known by", "what limits", "trials", "benchmarking time",
    )  # fmt: skip
    caption = f"Every configuration of the surface ({axis_label(mapped.response, mapped.unit)})"
    return page_table(key, caption, headings, rows, len(factors), ("known by", "what limits"))


def effects_table(said: Summary, key: str = "effects") -> Table:
    """A row per level of each factor."""
    rows = tuple(
        (
            effect.factor,
            level,
            number(f"{ratio.value:.3g}", ratio.value) if ratio else number("–", None),
            number(f"{ratio.low:.3g} … {ratio.high:.3g}", ratio.low) if ratio else number("–", None),
        )
        for effect in said.effects
        for level, ratio in zip(effect.levels, effect.ratios, strict=True)
    )
    return page_table(key, "Main effects", ("factor", "level", "× lowest level", "interval"), rows, 2)


def _row(mapped: SurfaceResult, cell: Configuration, limit: Limit | None) -> tuple[Cell, ...]:
    each = mapped.estimate(cell)
    cost_s, trials = _spent(mapped, cell)
    levels = [
        number(factor.text(level), magnitude(factor.levels[level])) if factor.numeric else factor.text(level)
        for factor, level in zip(mapped.space.factors, cell, strict=True)
    ]
    state = _state(mapped, cell)
    known = state != UNTRIED
    state = f"{state}: {each.why}" if each.why and state == "failed" else state
    sample = mapped.last.get(cell)
    if sample is not None and sample.state == "measured" and not sample.kept:
        state += ", target not met"
    return (
        *levels,
        number(estimate_text(each, mapped.unit) if known else "–", each.value),
        number(
            span_text(each.low, each.high, mapped.unit) if known else "–",
            each.low if each.low > 0 else math.nan,
        ),
        state,
        ("–" if limit is None else limit.factor or NOTHING),
        number(str(trials), trials),
        number(duration(cost_s) if cost_s else "–", cost_s),
    )


def _spent(mapped: SurfaceResult, cell: Configuration) -> tuple[float, int]:
    made = [cost for cost in mapped.costs if cost.cell == cell]
    if not made and (sample := mapped.last.get(cell)) is not None:
        return sample.cost_s, sample.trials
    return sum((cost.cost_s for cost in made), 0.0), sum(cost.trials for cost in made)


def _caption(name: str, setting: str) -> str:
    kind = name.partition("-")[0]
    return f"{CAPTIONS.get(kind, kind)}{f' ({setting})' if setting else ''}."


def surface_document(
    mapped: SurfaceResult, *, target: float | None = None, little: float = LITTLE
) -> dict[str, Any]:
    """A surface as plain data for JSON; what is not bounded or not known is null."""
    said = summarise(mapped, target=target, little=little)
    limiting = {limit.cell: limit for limit in said.limits}
    return {
        "response": mapped.response,
        "unit": mapped.unit,
        "better": mapped.better,
        "confidence": mapped.confidence,
        "surrogate": mapped.surrogate or None,
        "factors": [
            {"name": f.name, "scale": f.scale, "levels": list(f.levels), "unit": f.unit}
            for f in mapped.space.factors
        ],
        "cells": [_cell(mapped, cell) | _limit(limiting.get(cell)) for cell in mapped.space],
        **_said(said),
        "findings": list(mapped.findings),
    }


def _cell(mapped: SurfaceResult, cell: Configuration) -> dict[str, Any]:
    each, sample = mapped.estimate(cell), mapped.last.get(cell)
    cost_s, trials = _spent(mapped, cell)
    return {
        "factors": mapped.space.settings(cell),
        "state": each.state,
        "value": each.value,
        "low": each.low if each.low > 0 else None,
        "high": each.high if math.isfinite(each.high) else None,
        "kept": None if sample is None else sample.kept,
        "why": each.why,
        "cost_s": cost_s,
        "trials": trials,
    }


def _limit(limit: Any) -> dict[str, Any]:
    if limit is None or limit.factor is None:
        return {"limits": None}
    return {"limits": _members(limit, "factor elasticity gain sure beyond")}


def _members(found: object, names: str) -> dict[str, Any]:
    return {name: getattr(found, name) for name in names.split()}


def _said(said: Summary) -> dict[str, Any]:
    best = said.optimum
    return {
        "optimum": None
        if best is None
        else {
            "cell": best.name,
            "state": best.best.state,
            "value": best.best.value,
            "low": best.best.low if best.best.low > 0 else None,
            "high": best.best.high if math.isfinite(best.best.high) else None,
            "alike": list(best.alike_names),
            "edges": list(best.edges),
        },
        "effective_ranges": [_range(r) for overall, each in said.ranges for r in (overall, *each)],
        "main_effects": [
            {"factor": e.factor, "levels": list(e.levels), "ratios": [_ratio(r) for r in e.ratios]}
            for e in said.effects
        ],
        "interactions": [
            {"factors": e.factors, "first": e.first, "second": e.second, "ratio": _ratio(e.ratio)}
            for e in said.interactions
        ],
        "crossovers": [
            _members(each, "factor over under along setting at low high") for each in said.crossovers
        ],
        "break_evens": [
            _members(each, "factor setting target level earliest surely") for each in said.break_evens
        ],
        "mape": said.accuracy and _members(said.accuracy, "mape low high worst count"),
        "cost": _members(said.spent, "cells measured predicted bounded failed bench_s trials"),
    }


def _range(r: Range) -> dict[str, Any]:
    return {
        "factor": r.factor,
        "setting": r.setting,
        "from": None if r.none else r.levels[r.low],
        "to": None if r.none else r.levels[r.high],
        "shown_to": None if r.none else r.levels[r.shown],
        "open": r.open,
        "little": r.little,
        "could_be": r.could_be if math.isfinite(r.could_be) else None,
    }


def _ratio(ratio: Ratio | None) -> list[float] | None:
    return None if ratio is None else [ratio.value, ratio.low, ratio.high]
