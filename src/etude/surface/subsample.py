"""Samples that stand for all, where they are too many for a surrogate: the work of a fit grows with their cube.

The newest are among them, for they say how the system is now; the others are as far from each other as can be, one
after the other (Gonzalez 1985), so that no part of the space is without any.
"""

from __future__ import annotations

import numpy as np

from etude.surface.distances import distance
from etude.surface.factors import Space
from etude.surface.samples import Known

MOST = 500
"""Samples that a surrogate is fitted to."""
NEWEST = 100
"""Of them, those that came last."""


def subsample(space: Space, known: Known, most: int = MOST, newest: int = NEWEST) -> Known:
    """At most so many samples, in their order; all where they are no more."""
    count = len(known.cells)
    if count <= most:
        return known
    chosen = list(range(count - newest, count))
    places = space.coded(known.cells)
    nearest = np.full(count, np.inf)
    for at in chosen:
        nearest = np.minimum(nearest, distance(space, places, places[at]))
    while len(chosen) < most:
        at = int(nearest.argmax())
        chosen.append(at)
        nearest = np.minimum(nearest, distance(space, places, places[at]))
    return known.only(sorted(chosen))
