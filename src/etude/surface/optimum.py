"""The best cell, and those that cannot be told from it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy import special

from etude.surface.factors import Cell
from etude.surface.surface_result import Estimate, SurfaceResult
from etude.surface.surface_text import joined, span_text, value_text
from etude.units.formatting import counted

MOST_NAMED = 4


@dataclass(frozen=True)
class Optimum:
    """Where the response is best, as far as is known."""

    name: str
    """Of the cell."""
    best: Estimate
    alike: tuple[Cell, ...]
    """Others that may be as good or better: in all, with the confidence of the surface, none is missing."""
    alike_names: tuple[str, ...]
    edges: tuple[str, ...]
    """Factors of which it has the lowest or highest level that was tried: the true optimum may lie beyond."""
    text: tuple[str, ...]


def optimum(mapped: SurfaceResult) -> Optimum | None:
    """None where nothing is known of any cell."""
    filled, space = mapped.filled, mapped.space
    sign = 1.0 if mapped.better == "higher" else -1.0
    known = [cell for cell in space if filled.known[cell]]
    if not known:
        return None
    best = max(known, key=lambda cell: sign * filled.log[cell])
    others = [cell for cell in known if cell != best]
    # One-sided, against each of the others: multiple comparisons with the best.
    z = float(special.ndtri(1 - (1 - mapped.confidence) / len(others))) if others else 0.0
    alike = [
        cell
        for cell in others
        if sign * (filled.log[best] - filled.log[cell])
        <= z * math.hypot(float(filled.sd[best]), float(filled.sd[cell]))
    ]
    alike.sort(key=lambda cell: -sign * filled.log[cell])
    return _told(mapped, best, alike)


def _told(mapped: SurfaceResult, best: Cell, alike: list[Cell]) -> Optimum:
    space = mapped.space
    names = tuple(map(space.name, alike))
    edges = tuple(
        f"{factor.name}={factor.text(level)}"
        for factor, level in zip(space.factors, best, strict=True)
        if factor.scale != "categorical" and len(factor.levels) > 1 and level in (0, len(factor.levels) - 1)
    )
    estimate = mapped.estimate(best)
    kind = "" if estimate.state == "measured" else f" ({estimate.state}, not measured)"
    value, span = value_text(estimate.value, mapped.unit), span_text(estimate.low, estimate.high, mapped.unit)
    lines = [f"Best {mapped.response}: {value} ({span}) at {space.name(best)}{kind}."]
    if names:
        more = [f"{len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else []
        lines.append(
            f"{counted(len(names), 'other cell')} cannot be told from it: "
            f"{joined([*names[:MOST_NAMED], *more])}."
        )
    if edges:
        lines.append(f"It lies at the edge of what was tried ({joined(edges)}): better ones may lie beyond.")
    return Optimum(space.name(best), estimate, tuple(alike), names, edges, tuple(lines))
