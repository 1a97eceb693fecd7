"""One sample of several machines: their mean and its error, without their levels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.stats.machines import level_machines, mean_over_machines, ratio_over_machines
from etude.stats.stopping import Decision, MeanPrecision, RatioPrecision, SamplesSoFar

VALUES = st.lists(st.floats(0.5, 2.0), min_size=1, max_size=6)
MACHINES = st.lists(VALUES, min_size=1, max_size=4)


def named(machines: list[list[float]]) -> tuple[list[float], list[str]]:
    """Values, and the machine of each."""
    return [x for each in machines for x in each], [str(at) for at, each in enumerate(machines) for _ in each]


@given(MACHINES)
def test_its_mean_is_that_of_the_machines_each_counting_once(machines: list[list[float]]) -> None:
    found = level_machines(*named(machines))
    assert found.size == sum(map(len, machines))
    if len(machines) > 1 and found.size > len(machines):
        assert found.mean() == pytest.approx(np.mean([np.mean(each) for each in machines]))


@given(MACHINES, st.lists(st.floats(-100.0, 100.0), min_size=4, max_size=4))
def test_levels_of_machines_add_nothing_to_its_spread(
    machines: list[list[float]], levels: list[float]
) -> None:
    if len(machines) > 1 and sum(map(len, machines)) > len(machines):
        moved = [[x + level for x in each] for each, level in zip(machines, levels, strict=False)]
        assert level_machines(*named(moved)).std() == pytest.approx(
            level_machines(*named(machines)).std(), abs=1e-9
        )


@given(MACHINES)
def test_its_standard_error_is_that_of_the_ratio_over_machines(machines: list[list[float]]) -> None:
    total = sum(map(len, machines))
    if len(machines) < 2 or total <= len(machines):
        return
    ratios, names = named(machines)
    expected = ratio_over_machines(np.ones(total), ratios, names)
    found = level_machines(np.log(ratios), names)
    assert found.std(ddof=1) / math.sqrt(total) == pytest.approx(expected.standard_error, abs=1e-9)
    assert found.mean() == pytest.approx(math.log(expected.ratio), abs=1e-9)


def test_where_nothing_is_repeated_on_a_machine_their_differences_count_as_noise() -> None:
    assert level_machines([1.0, 3.0], ["a", "b"]).tolist() == [1.0, 3.0]


NODES = [f"n{at}" for at in range(8) for _ in range(2)]


def test_the_mean_over_machines_is_within_its_interval_as_often_as_it_says() -> None:
    rng, count = np.random.default_rng(5), 4000
    levels = np.repeat(rng.normal(10.0, 3.0, 8), 2)
    found = [mean_over_machines(levels + rng.normal(0.0, 1.0, 16), NODES) for _ in range(count)]
    hit = sum(each is not None and each.low <= levels.mean() <= each.high for each in found) / count
    assert 0.943 <= hit <= 0.957  # with 15 in place of 8 degrees of freedom it is 0.934


def decided(rule: MeanPrecision | RatioPrecision, *values: np.ndarray) -> Decision:
    return rule.decide(SamplesSoFar(values, machines=(tuple(NODES),) * len(values)))


def test_a_stop_rule_takes_the_ratio_within_machines_by_its_own_degrees_of_freedom() -> None:
    rng = np.random.default_rng(6)
    base = np.repeat(rng.uniform(1.0, 9.0, 8), 2)
    other = base * np.repeat(rng.uniform(1.0, 3.0, 8), 2) * np.exp(rng.normal(0.0, 0.02, 16))
    width = ratio_over_machines(base, other, NODES, factor=RatioPrecision().factor).half_width
    assert decided(RatioPrecision(precision=width * 1.001), base, other).converged
    assert not decided(RatioPrecision(precision=width * 0.999), base, other).enough


def test_a_stop_rule_takes_the_mean_within_machines_by_its_own_degrees_of_freedom() -> None:
    rng = np.random.default_rng(7)
    x = np.repeat(rng.uniform(1.0, 9.0, 8), 2) + rng.normal(0.0, 0.1, 16)
    interval = mean_over_machines(x, NODES, factor=MeanPrecision().factor)
    assert interval is not None
    width = interval.half_width / x.mean()
    assert decided(MeanPrecision(precision=width * 1.001), x).converged
    assert not decided(MeanPrecision(precision=width * 0.999), x).enough


def test_values_without_their_machines_are_refused() -> None:
    with pytest.raises(ValueError, match="machine"):
        SamplesSoFar((np.ones(3),), machines=(("a", "b"),))
