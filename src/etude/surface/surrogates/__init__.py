"""Surrogates, models of a surface between its samples: their interface, their kinds, and the choice among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from etude.surface.factors import Configuration, Floats, Space
from etude.surface.samples import KnownResponses


@dataclass(frozen=True, eq=False)
class Predicted:
    """Predicted log responses of configurations, and their standard deviations."""

    log: Floats
    """Shape (configurations,)."""
    sd: Floats
    """Standard deviation of the true log response around `log`, shape (configurations,); inf: unknown."""


class Fit(Protocol):
    """A surrogate fitted to samples."""

    @property
    def name(self) -> str:
        """Name of the surrogate."""
        ...

    def predict(self, configurations: Sequence[Configuration]) -> Predicted:
        """Predictions for any configurations of the space."""
        ...


class CrossValidatedFit(Fit, Protocol):
    """A Fit with leave-one-out predictions."""

    @property
    def left_out(self) -> Predicted:
        """Leave-one-out prediction of each sample."""
        ...


class Surrogate(Protocol):
    """One kind of surface. Its fit depends only on the samples."""

    @property
    def name(self) -> str:
        """Name of the surrogate."""
        ...

    def fit(self, space: Space, known: KnownResponses) -> CrossValidatedFit | None:
        """Fit to the samples; None if they are too few or unsuitable."""
        ...
