"""What stands for a surface between its samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from etude.surface.factors import Cell, Floats, Space
from etude.surface.samples import KnownResponses


@dataclass(frozen=True, eq=False)
class Predicted:
    """Of cells: the log of the response, and how far it may be off."""

    log: Floats
    """Shape (cells,)."""
    sd: Floats
    """Standard deviation of the true response's log around `log`, shape (cells,); inf where nothing can be said."""


class Fit(Protocol):
    """A surrogate after its samples."""

    @property
    def name(self) -> str:
        """Of the surrogate."""
        ...

    def predict(self, cells: Sequence[Cell]) -> Predicted:
        """Of any cells of the space."""
        ...


class Surrogate(Protocol):
    """One kind of surface. What it does follows from the samples alone."""

    @property
    def name(self) -> str:
        """By which it is asked for."""
        ...

    def fit(self, space: Space, known: KnownResponses) -> Fit | None:
        """To the samples; None where they are too few, or of a kind that it cannot stand for."""
        ...
