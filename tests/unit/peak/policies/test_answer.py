"""peak/policies/paper.py: answers say no more than the trials do."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.peak.policies.paper import (
    adjacent_loads,
    bounds,
    end_of_range_answer,
    found_answer,
    unfinished_answer,
)
from etude.peak.slo_ratio import Reading
from support.standin import task


def visits(*loads):
    return [Reading(float(load), tuple(values)) for load, *values in loads]


@given(st.dictionaries(st.integers(1, 50), st.lists(st.floats(0.0, 3.0), min_size=1, max_size=5), max_size=8))
def test_the_rate_lies_within_its_interval(shares):
    readings = [Reading(float(load), tuple(values)) for load, values in shares.items()]
    answer = unfinished_answer(task(), readings, "no time")
    assert answer.low <= answer.high
    assert not answer.kept
    assert answer.rate is None or answer.low <= answer.rate <= answer.high
    for visit in readings:
        assert found_answer(task(), readings, visit.load, "").low <= visit.load


def test_a_bound_is_a_load_whose_whole_interval_is_on_one_side():
    readings = visits((100, 0.5, 0.52), (200, 0.9, 0.5), (300, 1.0, 1.02), (400, 1.3, 1.9), (500, 2.0, 2.1))
    assert bounds(task(), readings, 300) == (100, 500)


def test_loads_that_contradict_the_answer_do_not_bound_it():
    readings = visits((100, 2.0, 2.1), (200, 0.5, 0.51), (300, 1.0, 1.02), (400, 2.0, 2.1), (500, 0.5, 0.51))
    assert bounds(task(), readings, 300) == (200, 400)


def test_one_trial_bounds_nothing():
    assert unfinished_answer(task(), visits((100, 1.0)), "").rate is None
    assert bounds(task(), visits((100, 0.1), (900, 40.0)), 300) == (0, math.inf)


def test_the_best_is_the_load_nearest_to_the_limit_else_the_middle_of_the_bracket():
    near = visits((100, 0.5, 0.5), (200, 0.95, 0.97), (210, 1.0, 1.02), (400, 2, 2))
    assert unfinished_answer(task(), near, "").rate == 210
    assert unfinished_answer(task(), [near[0], near[3]], "").rate == 250
    assert unfinished_answer(task(whole=True), [near[0], *visits((401, 2, 2))], "").rate == 250


def test_without_a_bracket_there_are_bounds_alone():
    answer = unfinished_answer(task(), visits((100, 0.5, 0.5), (200, 0.6, 0.6)), "spent")
    assert (answer.rate, answer.low, answer.high, answer.why) == (None, 200, math.inf, "spent")
    answer = unfinished_answer(task(), [], "spent")
    assert (answer.rate, answer.low, answer.high) == (None, 0, math.inf)


def test_a_fine_load_above_one_that_is_too_much_is_named():
    readings = visits((100, 0.5, 0.51), (200, 2.0, 2.01), (300, 0.7, 0.71))
    (finding,) = found_answer(task(), readings, 100, "").findings
    assert finding.kind == "non-monotone"
    assert "at 200" in finding.what
    assert "at 300" in finding.what
    assert found_answer(task(), readings[:2], 100, "").findings == ()


@pytest.mark.parametrize(
    ("load", "share", "kind", "bounded"),
    [(50, 2.0, "below-lowest", (0, 50)), (5000, 0.3, "above-highest", (5000, math.inf))],
    ids=["lowest", "highest"],
)
def test_the_ends_of_the_loads_bound_the_peak(load, share, kind, bounded):
    answer = end_of_range_answer(task(), visits((load, share, share)))
    assert [finding.kind for finding in answer.findings] == [kind]
    assert (answer.rate, answer.low, answer.high, answer.kept) == (None, *bounded, False)


def test_ends_that_other_loads_speak_against_end_nothing():
    assert end_of_range_answer(task(), visits((400, 2.0, 2.0), (5000, 0.5, 0.5))) is None
    assert end_of_range_answer(task(), visits((400, 0.5, 0.5), (50, 2.0, 2.0))) is None
    assert end_of_range_answer(task(), visits((100, 2.0, 2.0))) is None


def test_of_whole_loads_two_neighbours_are_an_answer():
    answer = adjacent_loads(task(whole=True), visits((7, 0.5, 0.5), (9, 2.0, 2.0), (8, 2.0, 2.0)))
    assert (answer.rate, answer.low, answer.high, answer.kept) == (7, 7, 8, True)
    assert adjacent_loads(task(whole=True), visits((7, 0.5, 0.5), (9, 2.0, 2.0))) is None
    assert adjacent_loads(task(), visits((7, 0.5, 0.5), (8, 2.0, 2.0))) is None
