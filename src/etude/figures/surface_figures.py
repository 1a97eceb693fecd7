"""The figures of a surface, by name."""

from __future__ import annotations

import math
from collections.abc import Mapping

from etude.figures.data import Figure
from etude.figures.surface import Effect, KnownValue, Levels, contours, main_effects, over_levels, solid
from etude.surface.effects import main_effects as effects_of
from etude.surface.factors import Configuration, Factor, magnitude, setting_text, settings_of
from etude.surface.surface_result import SurfaceResult, axis_label

MOST_SETTINGS = 6
"""Most settings of the further factors that are drawn: of more, the first, the last and those at even distances."""
MOST_LINES = 8


def figures_of(mapped: SurfaceResult) -> Mapping[str, Figure]:
    """Figures of a map: for two ascending factors a surface in space and its map (one for each setting of the others),
    else lines; effects.

    Raises:
        InputError: no cell has a value yet.
    """
    several = [n for n, factor in enumerate(mapped.space.factors) if len(factor.levels) > 1]
    rising = [n for n in several if mapped.space.factors[n].scale != "categorical"]
    found: dict[str, Figure] = {}
    if len(rising) >= 2:
        found |= _planes(mapped, *_widest(mapped, rising))
    elif several:
        found |= _lines(mapped, several, rising)
    if len(several) > 1:
        effects = [
            Effect(
                e.factor, e.levels, tuple(None if r is None else (r.value, r.low, r.high) for r in e.ratios)
            )
            for e in effects_of(mapped.filled)
        ]
        found["effects"] = main_effects(effects, mapped.response)
    return found


def known_of(mapped: SurfaceResult, cell: Configuration, x: int, y: int) -> KnownValue:
    """The value of a cell as figures show it; x and y: its levels there."""
    each = mapped.estimate(cell)
    low, high = (end if 0 < end < math.inf else None for end in (each.low, each.high))
    if low is None or high is None or each.value is None:
        low = high = None
    return KnownValue(x, y, each.value, low, high, each.state)


def levels_of(factor: Factor) -> Levels:
    """An axis of a factor."""
    texts = tuple(factor.text(n) for n in range(len(factor.levels)))
    numbers = tuple(magnitude(level) for level in factor.levels) if factor.numeric else None
    return Levels(axis_label(factor.name, factor.unit), texts, numbers, factor.scale == "log")


def _widest(mapped: SurfaceResult, rising: list[int]) -> tuple[int, int]:
    """The two factors with the largest effects, in the order in which they were named."""
    effects = {effect.factor: effect.size for effect in effects_of(mapped.filled)}
    names = [factor.name for factor in mapped.space.factors]
    best = sorted(rising, key=lambda n: -effects.get(names[n], 1.0))[:2]
    first, second = sorted(best)
    return first, second


def _planes(mapped: SurfaceResult, a: int, b: int) -> dict[str, Figure]:
    """Both views over two factors, for each setting of the others."""
    space = mapped.space
    x, y = levels_of(space.factors[a]), levels_of(space.factors[b])
    response = axis_label(mapped.response, mapped.unit)
    found: dict[str, Figure] = {}
    for cell in _some(settings_of(space, [a, b]), MOST_SETTINGS):
        setting = setting_text(space.factors, cell, [a, b])
        known = [
            known_of(mapped, each, each[a], each[b])
            for each in space
            if all(each[n] == cell[n] for n in range(len(cell)) if n not in (a, b))
        ]
        if any(each.value is not None for each in known):
            suffix = f"-{setting.replace(' ', '-')}".replace("/", "_") if setting else ""
            found[f"surface{suffix}"] = solid(x, y, known, response, setting)
            found[f"map{suffix}"] = contours(x, y, known, response, setting)
    return found


def _lines(mapped: SurfaceResult, several: list[int], rising: list[int]) -> dict[str, Figure]:
    """Over the factor that rises, else the first one: a line for each setting of the others."""
    space = mapped.space
    at = rising[0] if rising else several[0]
    settings = _some(settings_of(space, [at]), MOST_LINES)
    names, title = _named(space.factors, settings, [at, *_alone(space.factors)])
    known = [
        known_of(mapped, each, each[at], number)
        for number, cell in enumerate(settings)
        for each in space
        if all(each[n] == cell[n] for n in range(len(cell)) if n != at)
    ]
    response = axis_label(mapped.response, mapped.unit)
    return {"surface": over_levels(levels_of(space.factors[at]), names, known, response, title)}


def _named(
    factors: tuple[Factor, ...], cells: list[Configuration], without: list[int]
) -> tuple[list[str], str]:
    """Names of lines by their levels, and the heading above them where these are of one factor."""
    others = [n for n in range(len(factors)) if n not in without]
    if len(others) != 1:
        return [setting_text(factors, cell, without) for cell in cells], ""
    (at,) = others
    return [factors[at].text(cell[at]) for cell in cells], f"by {factors[at].name}"


def _alone(factors: tuple[Factor, ...]) -> list[int]:
    """Those that were not varied."""
    return [n for n, factor in enumerate(factors) if len(factor.levels) == 1]


def _some(cells: list[Configuration], most: int) -> list[Configuration]:
    if len(cells) <= most:
        return cells
    return [cells[round(n * (len(cells) - 1) / (most - 1))] for n in range(most)]
