"""Factors, and the configurations that make a surface: one level of each factor ("Cutting Corners", section 2)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from etude.units.parsing import size

Floats = NDArray[np.float64]

Cell = tuple[int, ...]
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
    without: frozenset[Cell] = frozenset()

    @property
    def size(self) -> int:
        """Number of configurations."""
        return math.prod(len(factor.levels) for factor in self.factors) - len(self.without)

    def __iter__(self) -> Iterator[Cell]:
        """Configurations in order; the last factor changes fastest."""
        every = itertools.product(*(range(len(factor.levels)) for factor in self.factors))
        return (cell for cell in every if cell not in self.without) if self.without else every

    def coded(self, cells: Sequence[Cell]) -> Floats:
        """Coded levels, shape (configurations, factors)."""
        numbers = np.asarray(cells, dtype=np.intp).reshape(len(cells), len(self.factors))
        columns = [codes[numbers[:, at]] for at, codes in enumerate(self._codes)]
        return np.stack(columns, axis=1) if columns else np.zeros((len(cells), 0))

    def settings(self, cell: Cell) -> dict[str, str]:
        """Level of each factor, as text."""
        return {factor.name: factor.text(level) for factor, level in zip(self.factors, cell, strict=True)}

    def name(self, cell: Cell) -> str:
        """`disks=2 nfsds=16`."""
        return " ".join(f"{name}={text}" for name, text in self.settings(cell).items())

    @cached_property
    def _codes(self) -> list[Floats]:
        return [factor.coded() for factor in self.factors]
