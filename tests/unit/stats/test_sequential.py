"""A bound is decided at the level of the interval that is shown."""

from __future__ import annotations

import math

import pytest

from etude.stats.sequential import Estimate, evidence_within


@pytest.mark.parametrize("degrees", [9.0, math.inf])
@pytest.mark.parametrize("logarithmic", [True, False])
@pytest.mark.parametrize("level", [0.05, 0.005])
def test_an_interval_that_ends_at_a_bound_has_the_p_of_its_level(
    degrees: float, logarithmic: bool, level: float
) -> None:
    found = Estimate(2.0, 0.1, 0.1, degrees, logarithmic, 10)
    ends = found.interval(level)
    assert evidence_within(found, 0.0, ends.high).supported == pytest.approx(level, rel=1e-4)
    assert evidence_within(found, ends.high, math.inf).refuted == pytest.approx(level, rel=1e-4)
    assert evidence_within(found, ends.low, math.inf).supported == pytest.approx(level, rel=1e-4)
