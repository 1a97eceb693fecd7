"""Cells that are measured again before they are believed: those far off what all other cells predict.

A disturbed measurement, or a limit that did not hold, is confidently wrong; only the cells around it can tell. So a
cell is predicted without itself, and where it is off by `BY` or more, and much farther than cells usually are, it has
another measurement. The last one counts; a cell that stays where it was is an outlier of the surface.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np

from etude.workbench.surfaces.factors import Cell, Floats
from etude.workbench.surfaces.samples import Sample
from etude.workbench.surfaces.surrogates.choose import Choice

BY = math.log(1.5)
"""Log of the least that counts as far off."""
FAR = 4.0
"""Robust standard deviations (1.4826·MAD of all cells)."""
LEAST_CELLS = 8
"""Fewer do not predict each other."""
ALIKE = math.log(1.1)
"""Log within which two measurements of a cell agree."""
MOST = 3
"""Measurements of a cell."""


def doubtful(fit: Choice, samples: Sequence[Sample], besides: Collection[Cell] = ()) -> int | None:
    """The number, in `fit.known`, of the cell that is farthest off what the others predict and was measured once, or
    twice without agreement; None where there is none. `besides`: cells that are not asked for."""
    if len(fit.known.cells) < LEAST_CELLS or not np.isfinite(fit.left_out.log).all():
        return None
    values: dict[Cell, list[float]] = {}
    tried = Counter(sample.cell for sample in samples)
    for sample in samples:
        if sample.state == "measured" and sample.value:
            values.setdefault(sample.cell, []).append(math.log(sample.value))
    for at in far_off(fit.known.log - fit.left_out.log):
        cell = fit.known.cells[at]
        *_, last = logs = values[cell]
        settled = any(abs(each - last) <= ALIKE for each in logs[:-1])
        if cell not in besides and tried[cell] < MOST and not settled:
            return at
    return None


def far_off(off: Floats) -> list[int]:
    """Of differences in logs, those that are far from all others, the farthest first."""
    usual = 1.4826 * float(np.median(np.abs(off)))
    order = np.argsort(-np.abs(off), kind="stable")
    return [int(at) for at in order if abs(off[at]) >= max(BY, FAR * usual)]
