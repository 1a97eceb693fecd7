"""A surface in a report: what it says, its figures, and every cell."""

from __future__ import annotations

import math

from etude.figures.surface_figures import figures_of
from etude.present.page.section import Paragraphs, Picture, Section
from etude.present.page.tables import Cell, Table, number_cell, text_cell
from etude.present.sentences.surface import optimum_lines, summary_lines
from etude.surface.factors import Cell as Place
from etude.surface.factors import magnitude
from etude.surface.limits import NOTHING, Limit
from etude.surface.summary import Summary, summarise
from etude.surface.surface_result import SurfaceResult
from etude.surface.surface_text import axis_label, estimate_text, span_text
from etude.units.formatting import duration

CAPTIONS = {
    "surface": "The response over the factors",
    "map": "The same from above, with lines of equal response",
    "effects": "Main effects: geometric means as ratios to each factor's lowest level, with intervals",
}


def surface_part(
    mapped: SurfaceResult, key: str = "surface", heading: str = "Surface", target: float | None = None
) -> Section:
    """The section of one surface. target: a response of which is said how much of each factor it takes."""
    said = summarise(mapped, target=target)
    paragraphs = [Paragraphs(name, lines) for name, lines in summary_lines(said)]
    if mapped.findings:
        paragraphs.append(Paragraphs("Findings", mapped.findings))
    drawn = figures_of(mapped) if mapped.filled.known.any() else {}
    pictures = tuple(Picture(_caption(name, figure.title), figure) for name, figure in drawn.items())
    tables = (cells_table(mapped, said, f"{key}-cells"), effects_table(said, f"{key}-effects"))
    answer = optimum_lines(said.optimum) if said.optimum else ("Nothing is known yet.",)
    return Section(key, heading, tuple(paragraphs), pictures, tables, tuple(answer))


def cells_table(mapped: SurfaceResult, said: Summary, key: str = "cells") -> Table:
    """A row a cell: its response, how it is known, what limits it, what it cost."""
    factors = mapped.space.factors
    limiting = {limit.cell: limit for limit in said.limits}
    rows = tuple(_row(mapped, cell, limiting.get(cell)) for cell in mapped.space)
    level = f"{100 * mapped.confidence:g} %"
    headings = (
        *(axis_label(factor.name, factor.unit) for factor in factors),
        "known by", "what limits", mapped.response, f"interval, {level}", "trials", "benchmarking time",
    )  # fmt: skip
    caption = f"Every cell of the surface ({axis_label(mapped.response, mapped.unit)})"
    return Table(key, caption, headings, rows, len(factors) + 2)


def effects_table(said: Summary, key: str = "effects") -> Table:
    """A row a level of each factor."""
    rows = tuple(
        (
            text_cell(effect.factor),
            text_cell(level),
            number_cell(f"{ratio.value:.3g}", ratio.value) if ratio else number_cell("–", None),
            number_cell(f"{ratio.low:.3g} … {ratio.high:.3g}", ratio.low)
            if ratio
            else number_cell("–", None),
        )
        for effect in said.effects
        for level, ratio in zip(effect.levels, effect.ratios, strict=True)
    )
    return Table(key, "Main effects", ("factor", "level", "× lowest level", "interval"), rows, 2)


def _row(mapped: SurfaceResult, cell: Place, limit: Limit | None) -> tuple[Cell, ...]:
    each, sample = mapped.estimate(cell), mapped.last.get(cell)
    made = [cost for cost in mapped.costs if cost.cell == cell]
    cost_s = sum(c.cost_s for c in made) if made else sample.cost_s if sample else 0.0
    trials = sum(c.trials for c in made) if made else sample.trials if sample else 0
    levels = [
        number_cell(factor.text(level), magnitude(factor.levels[level]))
        if factor.numeric
        else text_cell(factor.text(level))
        for factor, level in zip(mapped.space.factors, cell, strict=True)
    ]
    state = f"{each.state}: {each.why}" if each.why and each.state == "failed" else each.state
    return (
        *levels,
        text_cell(state),
        text_cell("–" if limit is None else limit.factor or NOTHING),
        number_cell(estimate_text(each, mapped.unit), each.value),
        number_cell(span_text(each.low, each.high, mapped.unit), each.low if each.low > 0 else math.nan),
        number_cell(str(trials), trials),
        number_cell(duration(cost_s) if cost_s else "–", cost_s),
    )


def _caption(name: str, setting: str) -> str:
    kind = name.partition("-")[0]
    return f"{CAPTIONS.get(kind, kind)}{f' ({setting})' if setting else ''}."
