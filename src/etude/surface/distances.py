"""Distances between configurations in coded levels."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from etude.surface.factors import Cell, Factor, Floats, Space

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


def farthest_cells(space: Space, taken: Iterable[Cell]) -> Cell:
    """The configuration farthest from the nearest of those taken; the one farthest from the middle if there are
    none."""
    return _far(space.factors, space.without).cell(set(taken))


class _Far:
    """Incremental search while configurations are only added: choosing n of N costs n·N steps."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._cells = list(space)
        self._places = space.coded(self._cells)
        self._forget()

    def _forget(self) -> None:
        self._taken: set[Cell] = set()
        self._nearest = np.full(len(self._cells), np.inf)

    def cell(self, taken: set[Cell]) -> Cell:
        if not taken:
            return self._cells[int((self._places**2).sum(axis=1).argmax())]
        if not self._taken <= taken:
            self._forget()
        for place in self._space.coded(sorted(taken - self._taken)):
            self._nearest = np.minimum(self._nearest, distance(self._space, self._places, place))
        self._taken = taken
        return self._cells[int(self._nearest.argmax())]


@lru_cache(maxsize=2)
def _far(factors: tuple[Factor, ...], without: frozenset[Cell]) -> _Far:
    return _Far(Space(factors, without))
