"""Steep steps of a curve, and points that scatter."""

import math

import numpy as np
import pytest

from etude.stats.crossings import Steps, steps


def spreads(medians, share=0.01):
    medians = np.asarray(medians)
    return medians, medians * (1.0 - share), medians * (1.0 + share)


def test_a_drop_and_a_jump_are_steep_steps_and_sharing_a_cost_is_none():
    x = np.arange(3.0, 25.0)
    amortised = 2.0**x / (300.0 + 2.0**x / 10.0)
    assert steps(x, *spreads(amortised)) == Steps((), ())
    changed = amortised * np.where(x > 19, 0.7, 1.0) * np.where(x > 22, 1.3, 1.0)
    assert steps(x, *spreads(changed)).steep == (16, 19)
    assert steps(x, *spreads(changed, 0.3)).steep == ()  # the spreads overlap


def test_a_little_rise_after_a_fall_is_no_jump():
    assert steps([1.0, 2.0, 3.0], *spreads([1.0, 0.7, 0.74])).steep == (0,)
    assert steps([1.0, 2.0, 3.0], *spreads([1.0, 0.7, 0.9])).steep == (0, 1)


def test_a_first_rise_that_is_more_than_proportional_is_a_jump():
    assert steps([1.0, 2.0, 3.0], *spreads([1.0, 3.0, 4.0])).steep == (0,)
    assert steps([1.0, 2.0, 3.0], *spreads([1.0, 2.0, 4.0])).steep == ()
    assert steps([1.0, 3.0, 5.0], *spreads([1.0, 4.0, 16.0])).steep == ()


def test_points_that_scatter_three_times_as_much_as_most_are_variable():
    medians, low, high = spreads(np.full(9, 100.0))
    low[4], high[4] = 95.0, 105.0
    assert steps(np.arange(9.0), medians, low, high).variable == (4,)
    assert steps(np.arange(9.0), medians, low, high, times=6.0).variable == ()
    low, high = medians.copy(), medians * np.where(np.arange(9) == 2, 1.009, 1.0)
    assert steps(np.arange(9.0), medians, low, high).variable == ()  # 1 % is no scatter
    assert steps(np.arange(9.0), medians, low, high, least=0.005).variable == (2,)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (([1.0], [1.0], [1.0], [1.0]), "two or more"),
        (([1.0, 2.0], [1.0, 1.0], [1.0], [1.0, 1.0]), "as many each"),
        (([2.0, 1.0], [1.0, 1.0], [1.0, 1.0], [1.0, 1.0]), "x must rise"),
        (([1.0, 2.0], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0]), "positive"),
        (([1.0, 2.0], [1.0, 1.0], [1.1, 1.0], [1.2, 1.0]), "between the ends"),
        (([1.0, 2.0], [1.0, math.nan], [1.0, 1.0], [1.0, 1.0]), "finite"),
    ],
)
def test_steps_of_what_is_no_curve_are_refused(rows, reason):
    with pytest.raises(ValueError, match=reason):
        steps(*rows)
