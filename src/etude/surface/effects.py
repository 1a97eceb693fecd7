"""Main effects and interactions of factors: ratios of geometric means of the response."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from etude.surface.factors import Floats
from etude.surface.surface_result import Filled, z_of
from etude.units.formatting import digits


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio with its interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        """`× 1.52 (1.41–1.63)`."""
        return f"× {digits(self.value, 3)} ({digits(self.low, 3)}–{digits(self.high, 3)})"

    @property
    def differs(self) -> bool:
        """True if the interval excludes 1."""
        return self.low > 1 or self.high < 1


@dataclass(frozen=True)
class MainEffect:
    """Main effect of a factor: geometric mean of the response at each level over that at the lowest.

    Both means are over the same settings of the other factors: those with both levels known.
    """

    factor: str
    levels: tuple[str, ...]
    ratios: tuple[Ratio | None, ...]
    """Ratio of each level; None if no setting of the others has both."""

    @property
    def largest(self) -> int:
        """Index of the level with the largest ratio to the lowest."""
        sizes = [0.0 if each is None else abs(math.log(each.value)) for each in self.ratios]
        return max(range(len(sizes)), key=sizes.__getitem__)

    @property
    def size(self) -> float:
        """The largest ratio between two levels, at least 1."""
        values = [each.value for each in self.ratios if each is not None]
        return max(values) / min(values)


@dataclass(frozen=True)
class Interaction:
    """Interaction of two factors: ratio of the first one's effects at a level of the second and at its lowest level.

    It is for the pair of levels with the largest ratio of ratios; the interval is corrected for that choice.
    """

    factors: tuple[str, str]
    first: tuple[str, str]
    """First and second level of the first factor."""
    second: tuple[str, str]
    ratio: Ratio


def main_effects(filled: Filled) -> tuple[MainEffect, ...]:
    """Main effects of factors with several levels, the largest first."""
    found = [
        MainEffect(
            factor.name,
            tuple(map(factor.text, range(len(factor.levels)))),
            tuple(_against_lowest(filled, at, level) for level in range(len(factor.levels))),
        )
        for at, factor in enumerate(filled.space.factors)
        if len(factor.levels) > 1
    ]
    return tuple(sorted(found, key=lambda effect: -effect.size))


def interactions(filled: Filled) -> tuple[Interaction, ...]:
    """Interactions of all pairs of factors, the largest first, without pairs with too few known configurations."""
    several = [at for at, factor in enumerate(filled.space.factors) if len(factor.levels) > 1]
    found = [_interaction(filled, a, b) for a, b in itertools.combinations(several, 2)]
    known = [each for each in found if each is not None]
    return tuple(sorted(known, key=lambda each: -abs(math.log(each.ratio.value))))


def _against_lowest(filled: Filled, factor: int, level: int) -> Ratio | None:
    if level == 0:
        return Ratio(1.0, 1.0, 1.0)
    known = np.moveaxis(filled.known, factor, 0)
    both = known[0] & known[level]
    if not both.any():
        return None
    weights = np.zeros(filled.log.shape)
    view = np.moveaxis(weights, factor, 0)
    view[level], view[0] = both / both.sum(), -(both / both.sum())
    return _ratio(filled, weights, z_of(filled.confidence))


def _interaction(filled: Filled, a: int, b: int) -> Interaction | None:
    one, other = filled.space.factors[a], filled.space.factors[b]
    pairs = list(itertools.product(range(1, len(one.levels)), range(1, len(other.levels))))
    found: dict[tuple[int, int], Ratio] = {}
    for i, j in pairs:
        weights = _four(filled, (a, b), (i, j))
        if weights is not None:
            found[i, j] = _ratio(filled, weights, z_of(filled.confidence, len(pairs)))
    if not found:
        return None
    i, j = max(found, key=lambda pair: abs(math.log(found[pair].value)))
    ends = ((one.text(0), one.text(i)), (other.text(0), other.text(j)))
    return Interaction((one.name, other.name), *ends, found[i, j])


def _four(filled: Filled, factors: tuple[int, int], levels: tuple[int, int]) -> Floats | None:
    """Weights of a ratio of ratios, averaged over the settings of the others with all four corners known; None if there
    are none."""
    corners = ((*levels, 1), (0, levels[1], -1), (levels[0], 0, -1), (0, 0, 1))
    known = np.moveaxis(filled.known, factors, (0, 1))
    every = np.logical_and.reduce([known[i, j] for i, j, _ in corners])
    if not every.any():
        return None
    weights = np.zeros(filled.log.shape)
    view = np.moveaxis(weights, factors, (0, 1))
    for i, j, sign in corners:
        view[i, j] = sign * every / every.sum()
    return weights


def _ratio(filled: Filled, weights: Floats, z: float) -> Ratio:
    log, sd = filled.contrast(weights)
    return Ratio(math.exp(log), math.exp(log - z * sd), math.exp(log + z * sd))
