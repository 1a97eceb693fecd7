"""peak/slo_ratio.py: the loads that were tried, and their sides."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from etude.peak.slo_ratio import LoadHistory, Reading, allowed_load, half_width, side_of, sides_of
from etude.peak.task import Criterion, Goal
from support.standin import GOAL, task, trial, trials


def test_loads_stand_in_the_order_of_their_first_trial():
    visits = LoadHistory().of(GOAL, trials((200, [1.5]), (100, [0.5, 0.6]), (200, [1.7])))
    assert [(v.load, v.values) for v in visits] == [
        (200, (pytest.approx(1.5), pytest.approx(1.7))),
        (100, (pytest.approx(0.5), pytest.approx(0.6))),
    ]


def test_trials_that_say_nothing_of_the_server_are_left_out():
    made = [trial(100, 0.5, limited="generator"), trial(100, 0.5, windows=()), trial(100, 0.7)]
    assert [math.isnan(value) for value in LoadHistory().values(GOAL, made)] == [True, True, False]
    assert [v.values for v in LoadHistory().of(GOAL, made)] == [(pytest.approx(0.7),)]


shares = st.lists(st.floats(0.1, 3.0), max_size=6)


@given(st.lists(st.tuples(shares, st.integers(0, 6), st.booleans()), max_size=6))
def test_what_was_shown_before_changes_nothing(calls):
    remembering, made = LoadHistory(), []
    for new, kept, other_goal in calls:
        goal = Goal((Criterion("mean", 0.02),)) if other_goal else GOAL
        made = [*made[:kept], *(trial(100, share) for share in new)]
        assert remembering.values(goal, made) == LoadHistory().values(goal, made)


def test_the_interval_is_students_up_to_thirty_trials_and_normal_above():
    values = tuple(np.random.default_rng(3).normal(1, 0.1, 31).tolist())
    few, many = Reading(1.0, values[:30]), Reading(1.0, values)
    assert half_width(few, 0.95) == pytest.approx(stats.t.ppf(0.975, 29) * stats.sem(few.values))
    assert half_width(many, 0.95) == pytest.approx(stats.norm.ppf(0.975) * stats.sem(many.values))
    assert half_width(Reading(1.0, (1.0,)), 0.95) == math.inf


@pytest.mark.parametrize(
    ("share", "where"),
    [(0.89, "fine"), (0.9, "near"), (1.0, "near"), (1.1, "near"), (1.11, "too much")],
    ids=str,
)
def test_an_interval_that_touches_the_region_is_near(share, where):
    assert side_of(task(), Reading(100.0, (share, share))) == where


def test_the_side_is_told_at_95_percent_whatever_the_answer_is_to_have():
    visit = Reading(100.0, (0.80, 0.81))  # ± 0.064 at 95 %, ± 0.32 at 99 %
    assert side_of(task(confidence=0.99), visit) == "fine"


def test_the_lower_part_counts_where_loads_contradict_each_other():
    visits = [
        Reading(load, (share, share)) for load, share in ((50, 0.2), (100, 2.0), (200, 0.3), (400, 3.0))
    ]
    assert sides_of(task(), visits) == (50, 100)
    assert sides_of(task(), visits[:1]) == (50, math.inf)
    assert sides_of(task(), visits[1:2]) == (0, 100)


@given(st.floats(-1e6, 1e6), st.floats(1.0, 500.0), st.floats(1.0, 500.0), st.booleans())
def test_an_allowed_load_is_within_the_bounds_and_whole_where_it_must_be(load, lowest, more, whole):
    bounded = replace(task(), lowest=lowest, highest=lowest + more, whole=whole)
    found = allowed_load(bounded, load)
    assert lowest <= found <= lowest + more
    assert not whole or found == int(found)
