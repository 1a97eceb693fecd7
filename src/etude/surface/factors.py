"""Factors, and configurations (one level of each factor; "Cutting Corners", section 2) with distances between them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from etude.codec import short
from etude.units.parsing import QuantityError, size

Floats = NDArray[np.float64]

Configuration = tuple[int, ...]
"""A configuration: level index of each factor, in the order of the factors."""

Scale = Literal["linear", "log", "ordered", "categorical"]
"""*linear* and *log*: numbers and their spacing. *ordered*: words in rising order. *categorical*: words."""


@dataclass(frozen=True, slots=True)
class Factor:
    """A factor. `levels`: for `linear` and `log` rising numbers or sizes such as `64M`, otherwise words."""

    name: str
    scale: Scale
    levels: tuple[float | str, ...]
    unit: str = ""

    @property
    def numeric(self) -> bool:
        """True if levels have distances."""
        return self.scale in ("linear", "log")

    @property
    def wrong_levels(self) -> str | None:
        """Text on levels that this scale cannot have; None if it can have all."""
        if not self.levels or len(set(self.levels)) < len(self.levels):
            return f"expected one or more, each once, found {short(list(self.levels))}"
        if not self.numeric:
            return None
        try:
            places = list(map(magnitude, self.levels))
        except QuantityError as error:
            return str(error)
        rising = all(a < b for a, b in itertools.pairwise(places))
        if rising and all(map(math.isfinite, places)) and (self.scale == "linear" or places[0] > 0):
            return None
        what = "numbers above 0" if self.scale == "log" else "finite numbers"
        return f"expected rising {what}, found {short(list(self.levels))}"

    def coded(self) -> Floats:
        """Coded levels: from -1 to 1, evenly spaced for an ordered factor; for a categorical one the index, from 0."""
        count = len(self.levels)
        if self.scale == "categorical":
            return np.arange(count, dtype=float)
        if count == 1:
            return np.zeros(1)
        places = np.arange(count, dtype=float)
        if self.numeric:
            places = np.array([magnitude(level) for level in self.levels])
            places = np.log(places) if self.scale == "log" else places
        return np.asarray(2 * (places - places[0]) / (places[-1] - places[0]) - 1)

    def text(self, level: int) -> str:
        """Text of a level in commands and tables."""
        value = self.levels[level]
        return value if isinstance(value, str) else f"{value:.12g}"


def magnitude(level: float | str) -> float:
    """Numeric value of a level, or the bytes of a size. Raises QuantityError."""
    return float(size(level)) if isinstance(level, str) else level


@dataclass(frozen=True)
class Space:
    """All configurations, except excluded ones."""

    factors: tuple[Factor, ...]
    without: frozenset[Configuration] = frozenset()

    @property
    def size(self) -> int:
        """Number of configurations."""
        return math.prod(len(factor.levels) for factor in self.factors) - len(self.without)

    def __iter__(self) -> Iterator[Configuration]:
        """Configurations in order; the last factor changes fastest."""
        every = itertools.product(*(range(len(factor.levels)) for factor in self.factors))
        return (
            (configuration for configuration in every if configuration not in self.without)
            if self.without
            else every
        )

    def coded(self, configurations: Sequence[Configuration]) -> Floats:
        """Coded levels, shape (configurations, factors)."""
        numbers = np.asarray(configurations, dtype=np.intp).reshape(len(configurations), len(self.factors))
        columns = [codes[numbers[:, at]] for at, codes in enumerate(self._codes)]
        return np.stack(columns, axis=1) if columns else np.zeros((len(configurations), 0))

    def settings(self, configuration: Configuration) -> dict[str, str]:
        """Level of each factor, as text."""
        return {
            factor.name: factor.text(level) for factor, level in zip(self.factors, configuration, strict=True)
        }

    def name(self, configuration: Configuration) -> str:
        """`disks=2 nfsds=16`."""
        return " ".join(f"{name}={text}" for name, text in self.settings(configuration).items())

    @cached_property
    def _codes(self) -> list[Floats]:
        return [factor.coded() for factor in self.factors]


def setting_text(factors: Sequence[Factor], configuration: Configuration, without: Iterable[int] = ()) -> str:
    """`disks=2 fs=ext4`: levels of all factors except those of `without`."""
    left_out = set(without)
    pairs = [
        (f, level)
        for n, (f, level) in enumerate(zip(factors, configuration, strict=True))
        if n not in left_out
    ]
    return " ".join(f"{factor.name}={factor.text(level)}" for factor, level in pairs)


def settings_of(space: Space, without: Iterable[int]) -> list[Configuration]:
    """One configuration for each setting of the other factors, with those of `without` at their lowest level, in
    order."""
    at = set(without)
    found = (
        tuple(0 if n in at else level for n, level in enumerate(configuration)) for configuration in space
    )
    return list(dict.fromkeys(found))


def with_level(configuration: Configuration, factor: int, level: int) -> Configuration:
    """The configuration with another level of one factor."""
    return (*configuration[:factor], level, *configuration[factor + 1 :])


def row_of(configuration: Configuration, factor: int, count: int) -> list[Configuration]:
    """The configurations that differ from `configuration` in one factor, over all its levels."""
    return [with_level(configuration, factor, level) for level in range(count)]


KINDS_APART = 9.0
"""Squared distance of two levels of a categorical factor. The ends of other factors are at 4, so each level is sampled
before these."""


def distance(space: Space, places: Floats, place: Floats) -> Floats:
    """Squared distances of coded configurations from one, shape (n,)."""
    squared = (places - place) ** 2
    for at, factor in enumerate(space.factors):
        if factor.scale == "categorical":
            squared[:, at] = KINDS_APART * (squared[:, at] > 0)
    return np.asarray(squared.sum(axis=1))


def farthest_configuration(space: Space, taken: Iterable[Configuration]) -> Configuration:
    """The configuration farthest from the nearest of those taken; the one farthest from the middle if there are
    none."""
    return _far(space.factors, space.without).configuration(set(taken))


class _Far:
    """Incremental search while configurations are only added: choosing n of N costs n·N steps."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._configurations = list(space)
        self._places = space.coded(self._configurations)
        self._forget()

    def _forget(self) -> None:
        self._taken: set[Configuration] = set()
        self._nearest = np.full(len(self._configurations), np.inf)

    def configuration(self, taken: set[Configuration]) -> Configuration:
        if not taken:
            return self._configurations[int((self._places**2).sum(axis=1).argmax())]
        if not self._taken <= taken:
            self._forget()
        for place in self._space.coded(sorted(taken - self._taken)):
            self._nearest = np.minimum(self._nearest, distance(self._space, self._places, place))
        self._taken = taken
        return self._configurations[int(self._nearest.argmax())]


@lru_cache(maxsize=2)
def _far(factors: tuple[Factor, ...], without: frozenset[Configuration]) -> _Far:
    return _Far(Space(factors, without))
