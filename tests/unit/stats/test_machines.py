"""Several machines in one result."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from etude.stats.machines import (
    deviating_machines,
    ratio_over_machines,
    ratios_differ,
    unpaired_over_machines,
)
from etude.stats.ratio import paired_mean_ratio, paired_ratio

VALUES = st.floats(0.5, 2.0)


def pairs(rng, per_machine, ratios, speeds, sd=0.02):
    """Base, other and machine of pairs: so many on each machine, which has a speed and a ratio of its own."""
    base, other, machines = [], [], []
    for number, (ratio, speed) in enumerate(zip(ratios, speeds, strict=True)):
        mood = speed * np.exp(rng.normal(0, sd, per_machine))
        base += list(mood * np.exp(rng.normal(0, sd, per_machine)))
        other += list(mood * ratio * np.exp(rng.normal(0, sd, per_machine)))
        machines += [f"node{number}"] * per_machine
    return np.array(base), np.array(other), machines


def test_the_speed_of_a_machine_is_not_in_the_ratio():
    base, other, machines = pairs(np.random.default_rng(1), 10, (1.1, 1.1), (1.0, 3.0))
    found = ratio_over_machines(base, other, machines)
    assert found.ratio == pytest.approx(1.1, rel=0.03)
    assert found.low < 1.1 < found.high
    assert found.half_width < 0.05


def test_each_machine_counts_once_however_many_pairs_it_has():
    base = np.ones(12)
    other = np.array([1.0, 1.02] * 5 + [2.0, 2.04])
    found = ratio_over_machines(base, other, ["a"] * 10 + ["b"] * 2)
    assert found.ratio == pytest.approx(math.sqrt(1.02 * 2.0 * 2.04) ** 0.5, rel=1e-9)
    assert found.count == 12


@pytest.mark.parametrize(("kind", "expected"), [("cost", 2.0), ("rate", 1.5), ("ratio", math.sqrt(3.0))])
def test_a_machines_ratio_is_that_of_the_means_that_fit(kind, expected):
    """On either machine the base is 1 and 1, the other 1 and 3: its means are 2, 1.5 and √3."""
    machines = ["a", "a", "b", "b"]
    base, other = np.array([1.0, 1.0, 5.0, 5.0]), np.array([1.0, 3.0, 5.0, 15.0])
    for found in (
        ratio_over_machines(base, other, machines, kind=kind),
        unpaired_over_machines(base, other, machines, machines, kind=kind),
    ):
        assert found.ratio == pytest.approx(expected)
    assert ratios_differ(base, other, machines, kind=kind) == pytest.approx(1.0)


def test_of_one_speed_the_ratio_of_means_has_the_interval_of_pairs_of_one_machine():
    base, other, _ = pairs(np.random.default_rng(7), 40, (1.1,), (1.0,), sd=0.1)
    apart, together = (
        ratio_over_machines(base, other, ["a", "b"] * 20, kind="cost"),
        paired_mean_ratio(base, other),
    )
    assert apart.ratio == pytest.approx(together.ratio, rel=0.005)
    assert apart.half_width == pytest.approx(together.half_width, rel=0.1)


def test_a_ratio_that_differs_between_machines_is_no_noise():
    base, other, machines = pairs(np.random.default_rng(2), 10, (1.0, 1.5), (1.0, 1.0))
    found = ratio_over_machines(base, other, machines)
    assert found.half_width < 0.05 < paired_ratio(base, other).half_width
    assert ratios_differ(base, other, machines) < 1e-6


@given(st.integers(0, 2**32 - 1), st.integers(2, 4))
def test_whether_ratios_differ_is_the_f_test_of_one_way_analysis_of_variance(seed, count):
    base, other, machines = pairs(np.random.default_rng(seed), 5, [1.0] * count, [1.0] * count)
    groups = [np.log(other / base)[[m == name for m in machines]] for name in dict.fromkeys(machines)]
    assert ratios_differ(base, other, machines) == pytest.approx(stats.f_oneway(*groups).pvalue, rel=1e-6)


def test_the_interval_holds_95_of_100_true_ratios():
    rng = np.random.default_rng(3)
    held = 0
    for _ in range(1000):
        base, other, machines = pairs(rng, 4, (1.2, 1.2, 1.2), (1.0, 2.0, 0.5))
        found = ratio_over_machines(base, other, machines)
        held += found.low <= 1.2 <= found.high
    assert 930 <= held <= 970


@pytest.mark.parametrize(
    ("machines", "message"),
    [(["a"] * 4, "several machines"), (["a", "b", "c", "d"], "no machine has two values")],
)
def test_one_machine_or_none_with_two_pairs_is_refused(machines, message):
    with pytest.raises(ValueError, match=message):
        ratio_over_machines([1.0, 2, 3, 4], [1.0, 2, 3, 5], machines)


def test_a_machine_that_is_slower_than_its_peers_is_named():
    rng = np.random.default_rng(4)
    machines = ["a", "b", "c", "d"] * 10
    x = np.exp(rng.normal(0, 0.02, 40)) * np.where(np.array(machines) == "c", 1.2, 1.0)
    found = deviating_machines(x, machines)
    assert found[0].machine == "c"
    assert found[0].low < 1.2 < found[0].high
    assert found[0].p < 1e-6


def test_of_two_machines_the_second_is_told_against_the_first():
    (found,) = deviating_machines([1.0, 1.01, 1.0, 1.5, 1.51, 1.5], ["a", "a", "a", "b", "b", "b"])
    assert found.machine == "b"
    assert found.ratio == pytest.approx(1.5, rel=0.01)


def test_machines_that_are_alike_are_not_named():
    rng = np.random.default_rng(5)
    machines = ["a", "b", "c"] * 8
    alarms = sum(bool(deviating_machines(np.exp(rng.normal(0, 0.05, 24)), machines)) for _ in range(1000))
    assert alarms <= 25  # 10 are expected, by Holm at most


def test_what_changes_between_sessions_is_not_taken_for_the_machine():
    """Two machines of three sessions each: trials within a session are alike, sessions are not."""
    rng = np.random.default_rng(6)
    machines, sittings = ["a"] * 15 + ["b"] * 15, [n // 5 for n in range(30)]
    alarms = 0
    for _ in range(500):
        moods = rng.normal(0, 0.1, 6)
        x = np.exp(moods[sittings] + rng.normal(0, 0.01, 30))
        alarms += bool(deviating_machines(x, machines, sittings))
    assert alarms <= 15


def test_a_difference_too_small_to_matter_is_none():
    assert deviating_machines([1.0, 1.0001, 1.004, 1.0041], ["a", "a", "b", "b"]) == ()


def test_nothing_is_said_of_one_machine_or_where_nothing_is_repeated():
    assert deviating_machines([1.0, 2.0], ["a", "a"]) == ()
    assert deviating_machines([1.0, 2.0], ["a", "b"]) == ()


@given(st.lists(st.tuples(VALUES, st.sampled_from("abc"), st.integers(1, 3)), min_size=1, max_size=30))
def test_any_machines_and_sittings_are_borne(rows):
    x, machines, sittings = zip(*rows, strict=True)
    for each in deviating_machines(x, machines, sittings):
        assert each.low <= each.ratio <= each.high
        assert 0 <= each.p < 0.01
