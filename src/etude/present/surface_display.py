"""A surface on the screen and as JSON: every cell, and what they say."""

from __future__ import annotations

import math
from typing import Any

from etude.present.sentences.surface import summary_lines
from etude.present.table_layout import Column
from etude.present.terminal import Terminal
from etude.surface.effects import Ratio
from etude.surface.factors import Cell
from etude.surface.limits import NOTHING
from etude.surface.ranges import LITTLE, Range
from etude.surface.summary import Summary, summarise
from etude.surface.surface_result import Estimate, SurfaceResult
from etude.surface.surface_text import axis_label, estimate_text, setting_text
from etude.units.formatting import percent

MOST_ROWS = 60
"""Of a table on the screen; the report and JSON have all cells."""


def show(
    mapped: SurfaceResult, screen: Terminal, *, target: float | None = None, little: float = LITTLE
) -> None:
    """Print a surface: its cells, then what they say.

    target: a response of which is said how much of each factor it takes. little: a change of less is called none.
    """
    said = summarise(mapped, target=target, little=little)
    several = [n for n, factor in enumerate(mapped.space.factors) if len(factor.levels) > 1]
    screen.say(
        f"{axis_label(mapped.response, mapped.unit)}, {100 * mapped.confidence:g} % intervals:", "bold"
    )
    if len(several) == 2:
        _matrix(mapped, screen, *several)
    else:
        _list(mapped, screen, said)
    states = {mapped.estimate(cell).state for cell in mapped.space}
    if "predicted" in states:
        screen.say(f"~ predicted by {mapped.surrogate}; all else was measured.", "dim")
    for heading, lines in summary_lines(said):
        screen.say(f"{heading}:", "bold")
        for line in lines:
            screen.say(f"  {line}")
    for finding in mapped.findings:
        screen.say(f"Note: {finding}", "yellow")


def document(mapped: SurfaceResult, *, target: float | None = None, little: float = LITTLE) -> dict[str, Any]:
    """The same as plain data for JSON; what is not bounded or not known is null."""
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


def _matrix(mapped: SurfaceResult, screen: Terminal, a: int, b: int) -> None:
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
    screen.table(first, columns, every=True)


def _list(mapped: SurfaceResult, screen: Terminal, said: Summary) -> None:
    cells = list(mapped.space)
    if len(cells) > MOST_ROWS:
        cells = [cell for cell in cells if mapped.estimate(cell).state != "predicted"]
    limiting = {limit.cell: limit.factor or NOTHING for limit in said.limits}
    shown = cells[:MOST_ROWS]
    first = Column("cell", [setting_text(mapped.space.factors, cell) for cell in shown])
    screen.table(
        first,
        [
            Column(mapped.response, [_short(mapped.estimate(cell), mapped.unit) for cell in shown]),
            Column("what limits", [limiting.get(cell, "–") for cell in shown], 1),
        ],
    )
    if len(shown) < mapped.space.size:
        screen.say(f"{mapped.space.size - len(shown)} more cells stand in the report and in --json.", "dim")


def _short(each: Estimate, unit: str) -> str:
    """`~ 512.4/s ± 8 %`: predicted, and half the width of its interval."""
    told = estimate_text(each, unit)
    if each.value is None:
        return "–" if told == "failed" else told
    mark = "~ " if each.state == "predicted" else ""
    if not (each.low > 0 and math.isfinite(each.high)):
        return f"{mark}{told}"
    half = max(each.value - each.low, each.high - each.value) / each.value
    return f"{mark}{told} ± {percent(half)}"


def _cell(mapped: SurfaceResult, cell: Cell) -> dict[str, Any]:
    each, sample = mapped.estimate(cell), mapped.last.get(cell)
    made = [cost for cost in mapped.costs if cost.cell == cell]
    return {
        "factors": mapped.space.settings(cell),
        "state": each.state,
        "value": each.value,
        "low": each.low if each.low > 0 else None,
        "high": each.high if math.isfinite(each.high) else None,
        "kept": None if sample is None else sample.kept,
        "why": each.why,
        "cost_s": sum(c.cost_s for c in made) if made else sample.cost_s if sample else 0.0,
        "trials": sum(c.trials for c in made) if made else sample.trials if sample else 0,
    }


def _limit(limit: Any) -> dict[str, Any]:
    if limit is None or limit.factor is None:
        return {"limits": None}
    members = ("factor", "elasticity", "gain", "sure", "beyond")
    return {"limits": {name: getattr(limit, name) for name in members}}


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
            {
                name: getattr(c, name)
                for name in ("factor", "over", "under", "along", "setting", "at", "low", "high")
            }
            for c in said.crossovers
        ],
        "break_evens": [
            {
                name: getattr(b, name)
                for name in ("factor", "setting", "target", "level", "earliest", "surely")
            }
            for b in said.break_evens
        ],
        "mape": None
        if said.accuracy is None
        else {name: getattr(said.accuracy, name) for name in ("mape", "low", "high", "worst", "count")},
        "cost": {
            name: getattr(said.spent, name)
            for name in ("cells", "measured", "predicted", "bounded", "failed", "bench_s", "trials")
        },
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
