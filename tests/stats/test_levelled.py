"""One sample of several machines: their mean and its error, without their levels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.stats.levelled import levelled
from etude.stats.machines import ratio_over_machines

VALUES = st.lists(st.floats(0.5, 2.0), min_size=1, max_size=6)
MACHINES = st.lists(VALUES, min_size=1, max_size=4)


@given(MACHINES)
def test_its_mean_is_that_of_the_machines_each_counting_once(machines: list[list[float]]) -> None:
    found = levelled(machines)
    assert found.size == sum(map(len, machines))
    if len(machines) > 1 and found.size > len(machines):
        assert found.mean() == pytest.approx(np.mean([np.mean(each) for each in machines]))


@given(MACHINES, st.lists(st.floats(-100.0, 100.0), min_size=4, max_size=4))
def test_levels_of_machines_add_nothing_to_its_spread(
    machines: list[list[float]], levels: list[float]
) -> None:
    if len(machines) > 1 and sum(map(len, machines)) > len(machines):
        moved = [[x + level for x in each] for each, level in zip(machines, levels, strict=False)]
        assert levelled(moved).std() == pytest.approx(levelled(machines).std(), abs=1e-9)


@given(MACHINES)
def test_its_standard_error_is_that_of_the_ratio_over_machines(machines: list[list[float]]) -> None:
    total = sum(map(len, machines))
    if len(machines) < 2 or total <= len(machines):
        return
    names = [str(at) for at, each in enumerate(machines) for _ in each]
    ratios = np.concatenate([np.asarray(each) for each in machines])
    expected = ratio_over_machines(np.ones(total), ratios, names)
    found = levelled([np.log(each) for each in machines])
    assert found.std(ddof=1) / math.sqrt(total) == pytest.approx(expected.standard_error, abs=1e-9)
    assert found.mean() == pytest.approx(math.log(expected.ratio), abs=1e-9)


def test_where_nothing_is_repeated_on_a_machine_their_differences_count_as_noise() -> None:
    assert levelled([[1.0], [3.0]]).tolist() == [1.0, 3.0]
