"""What trials say of a load that lies between theirs: an interpolation, for whoever reads; no policy decides by it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from etude.workbench.readings import readings
from etude.workbench.task import Task, Trial


def reading_at(task: Task, trials: Sequence[Trial], load: float) -> float | None:
    """The reading there as a share of the limit: along straight lines through the logarithms of the mean readings.

    None outside of the loads that were tried.
    """
    known = [each for each in readings(task, trials) if each.mean > 0]
    if not known or not known[0].load <= load <= known[-1].load:
        return None
    loads = [each.load for each in known]
    return float(np.exp(np.interp(load, loads, np.log([each.mean for each in known]))))
