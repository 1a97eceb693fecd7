"""How likely a trial is, given the curve and the peak."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from etude.workbench.policies.belief.curves import CAP, Floats

FREEDOM = 5.0
"""Student's: trials go wrong more often than a normal law allows."""
DISCREPANCY = 0.25
"""No server is exactly of a family. All shapes meet at y = 1; with the distance from there, in units of log y,
grows what a real curve may differ by, so that trials far from the peak say little of it."""
_EDGE = math.log(1.3)
SLOWER = (0.85, 0.7, 0.5)
"""Speeds of a server in a slow mode, of its usual one, each as likely as the others."""


def log_likelihood(expected: Floats, value: float, variance: float, slack: float = 0.0) -> Floats:
    """Of a log reading, where shapes and peaks lead one to expect `expected` (any shape), up to a constant.

    Student's law with 5 degrees of freedom and the variance `variance` + (DISCREPANCY·log y)². Beyond the limit a
    reading grows with the time that one waits, so a high one is "at least so much": where a curve is at its cap, a
    reading above is no miss, and between 1.3 and the cap the miss fades. By less than `slack` above it is no miss
    either.
    """
    spread = np.sqrt(variance + (DISCREPANCY * expected) ** 2)
    miss = value - expected
    beyond = np.clip((expected - _EDGE) / (CAP - _EDGE), 0, 1)
    miss = np.where(miss > 0, np.maximum(miss - slack, 0) * (1 - beyond), miss)
    return np.asarray(-0.5 * (FREEDOM + 1) * np.log1p((miss / spread) ** 2 / (FREEDOM - 2)) - np.log(spread))


def with_slow(usual: Floats, slow: Sequence[Floats], share: float) -> Floats:
    """Log likelihood of a trial that was, with the probability `share`, of a slow mode; `slow` for each of `SLOWER`."""
    parts = [usual + math.log1p(-share), *(each + math.log(share / len(slow)) for each in slow)]
    most = np.maximum.reduce(parts)
    return np.asarray(most + np.log(sum(np.exp(part - most) for part in parts)))
