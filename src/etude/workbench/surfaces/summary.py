"""All that a surface says, made once for the screen, the document and the report."""

from __future__ import annotations

from dataclasses import dataclass

from etude.workbench.surfaces.account import Accuracy, Spent, accuracy, spent
from etude.workbench.surfaces.crossover import Crossover, crossovers
from etude.workbench.surfaces.effects import Interaction, MainEffect, interactions, main_effects
from etude.workbench.surfaces.limits import Limit, limits, limits_text
from etude.workbench.surfaces.mapped import Mapped
from etude.workbench.surfaces.optimum import Optimum, optimum
from etude.workbench.surfaces.ranges import (
    LITTLE,
    BreakEven,
    Range,
    break_even_lines,
    break_evens,
    effective_ranges,
)

MOST_INTERACTIONS, MOST_CROSSOVERS, MOST_SETTINGS = 3, 6, 6


@dataclass(frozen=True)
class Summary:
    """What a surface says."""

    optimum: Optimum | None
    limits: tuple[Limit, ...]
    ranges: tuple[tuple[Range, tuple[Range, ...]], ...]
    """Of each factor: over all settings, and for each of them."""
    effects: tuple[MainEffect, ...]
    interactions: tuple[Interaction, ...]
    crossovers: tuple[Crossover, ...]
    break_evens: tuple[BreakEven, ...]
    accuracy: Accuracy | None
    spent: Spent


def summarise(mapped: Mapped, *, target: float | None = None, little: float = LITTLE) -> Summary:
    """target: a response of which is said how much of each factor it takes."""
    filled, better = mapped.filled, mapped.better
    rising = [f.name for f in mapped.space.factors if f.scale != "categorical" and len(f.levels) > 1]
    return Summary(
        optimum(mapped),
        limits(filled, better, little),
        effective_ranges(filled, little),
        main_effects(filled),
        interactions(filled),
        crossovers(filled, better),
        ()
        if target is None
        else tuple(each for name in rising for each in break_evens(filled, name, target, better)),
        accuracy(mapped.loo, mapped.confidence),
        spent(mapped),
    )


def summary_lines(said: Summary) -> list[tuple[str, tuple[str, ...]]]:
    """Sentences under headings; those that have none are left out."""
    if said.optimum is None:
        limits = (limits_text(said.limits),)
        return [
            ("Optimum", ("Nothing is known yet.",)),
            ("What limits", limits),
            ("Cost", (said.spent.text,)),
        ]
    ranges = tuple(line.text for overall, each in said.ranges for line in _told(overall, each))
    parts = [
        ("Optimum", said.optimum.text),
        ("What limits", (limits_text(said.limits),)),
        ("Effective range", ranges),
        ("Main effects", tuple(effect.text for effect in said.effects)),
        ("Interactions", tuple(each.text for each in said.interactions[:MOST_INTERACTIONS])),
        ("Crossovers", tuple(each.text for each in said.crossovers[:MOST_CROSSOVERS])),
        ("Break-even", break_even_lines(said.break_evens)),
        ("Accuracy", (said.accuracy.text,) if said.accuracy and said.spent.predicted else ()),
        ("Cost", (said.spent.text,)),
    ]
    return [(heading, lines) for heading, lines in parts if lines]


def _told(overall: Range, each: tuple[Range, ...]) -> list[Range]:
    """Overall, and the settings in which it is another."""
    others = [r for r in each if (r.low, r.high) != (overall.low, overall.high)]
    return [overall, *(others if len(others) <= MOST_SETTINGS else [])]
