"""Values of several machines with the machines' own levels taken out, for rules that look at one sample."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def levelled(machines: Sequence[ArrayLike]) -> Floats:
    """One sample of several machines' values, which are given a machine at a time, at least one value each.

    Its mean is that of the machines' means, each counting once, and its standard error (s/√n) is that of this mean
    with the machine as a fixed block: s·√(1/n₁ + 1/n₂ + …)/k, s pooled within the k machines. Where no machine has two
    values nothing is known of the spread within one: then the values are as they are, and differences of machines count
    as noise. Source: a randomised block design with replication (Montgomery, Design and Analysis of Experiments,
    chapter 4).
    """
    groups = [np.asarray(values, dtype=np.float64) for values in machines]
    values = np.concatenate(groups)
    degrees = values.size - len(groups)
    if len(groups) < 2 or degrees < 1:
        return values
    off = np.concatenate([group - group.mean() for group in groups])
    per_machine = sum(1.0 / group.size for group in groups) / len(groups) ** 2
    stretched = math.sqrt((values.size - 1) / degrees * values.size * per_machine)
    centre = math.fsum(float(group.mean()) for group in groups) / len(groups)
    found: Floats = centre + stretched * off
    return found
