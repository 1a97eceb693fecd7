"""The reading of a sweep as data: costs, shapes and comparisons of its curves."""

from __future__ import annotations

from dataclasses import dataclass

from etude.iolab.comparisons import Comparison, comparisons_of
from etude.iolab.costs import Costs, costs_of
from etude.iolab.points import Over, Swept
from etude.iolab.shapes import Parting, Shape, partings_of, shape_of


@dataclass(frozen=True)
class Reading:
    """Costs, shapes and comparisons of the curves; `present.sentences.io_lab` has the sentences on them."""

    swept: Swept
    costs: tuple[Costs, ...] = ()
    """Costs of each curve of a sweep over buffers."""
    shapes: tuple[Shape, ...] = ()
    """Peak, plateau, steps and scatter of each curve of a sweep over buffers."""
    partings: tuple[Parting, ...] = ()
    """Sizes of a sweep over buffers from which on touched or huge pages are quicker."""
    comparisons: tuple[Comparison, ...] = ()
    """Each program of a sweep over totals against the first."""

    @property
    def over(self) -> Over:
        """The quantity that the sweep is over."""
        return self.swept.over


def reading_of(swept: Swept) -> Reading:
    """The reading of a sweep."""
    if swept.over == "total":
        return Reading(swept, comparisons=comparisons_of(swept))
    costs = tuple(found for curve in swept.curves if (found := costs_of(curve, swept)) is not None)
    shapes = tuple(shape_of(curve) for curve in swept.curves if curve.sizes.size > 1)
    return Reading(swept, costs, shapes, partings_of(swept))
