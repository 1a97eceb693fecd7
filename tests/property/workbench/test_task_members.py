"""A task and an answer come back from what experiment.json has of them, or are refused by name."""

from __future__ import annotations

import contextlib
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.workbench.goal import Criterion, Goal
from etude.workbench.task import Answer, Finding, Task
from etude.workbench.task_members import answer_of, members, task_of

above = st.floats(1e-6, 1e9)
shares = st.floats(1e-6, 1.0)
criteria = st.one_of(
    st.builds(Criterion, st.just("mean"), above),
    st.builds(Criterion, st.just("errors"), shares),
    st.builds(Criterion, st.just("percentile"), above, st.floats(0.1, 100)),
)
tasks = st.builds(
    Task,
    goal=st.builds(Goal, st.lists(criteria, min_size=1, max_size=3).map(tuple)),
    lowest=above,
    highest=above | st.just(math.inf),
    seed_load=st.none() | above,
    seed_spread=st.none() | above,
    seed_shapes=st.lists(st.tuples(st.text(max_size=8), st.floats(0, 1)), max_size=3).map(tuple),
    promise=st.sampled_from(["rate", "region"]),
    within=shares,
    confidence=shares,
    width=shares,
    accuracy=shares,
    runlength_s=above,
    step=st.none() | above,
    whole=st.booleans(),
    closed=st.booleans(),
    budget_s=st.none() | above | st.just(0.0),
    seed=st.integers(),
)
answers = st.builds(
    Answer,
    rate=st.none() | above,
    low=above | st.just(0.0),
    high=above | st.just(math.inf),
    confidence=st.floats(0, 1),
    kept=st.booleans(),
    why=st.text(max_size=9),
    findings=st.lists(st.builds(Finding, st.just("stalling"), st.text(max_size=9)), max_size=2).map(tuple),
)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(tasks)
def test_a_task_comes_back(task: Task) -> None:
    assert task_of(json.loads(json.dumps(members(task), allow_nan=False))) == task


@given(answers)
def test_an_answer_comes_back(answer: Answer) -> None:
    assert answer_of(json.loads(json.dumps(members(answer), allow_nan=False))) == answer


@given(task=tasks, name=st.sampled_from(list(members(Task(Goal(()), 1, 2)))), value=anything)
def test_any_member_of_a_task_is_meant_or_refused(task: Task, name: str, value: Any) -> None:
    with contextlib.suppress(ValueError):
        task_of(members(task) | {name: value})


@given(anything)
def test_anything_else_is_refused(value: Any) -> None:
    for read in (task_of, answer_of):
        with pytest.raises(ValueError, match=r"\w"):
            read(value)


@pytest.mark.parametrize(
    ("criterion", "said"),
    [
        ({"of": "median", "limit": 1}, "'median'"),
        ({"of": "mean", "limit": 1, "percent": 95}, "\\bmean .*\\b95\\b"),
        ({"of": "percentile", "limit": 1}, "\\bpercentile .*None"),
        ({"of": "percentile", "limit": 1, "percent": 101}, "percent .*'101'"),
        ({"of": "mean", "limit": 0}, "limit .*'0'"),
    ],
)
def test_a_criterion_that_cannot_be_is_named(criterion: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        task_of({"goal": {"criteria": [criterion]}, "lowest": 1, "highest": 2})


def test_loads_have_to_be_there() -> None:
    goal = {"criteria": [{"of": "mean", "limit": 1}]}
    with pytest.raises(ValueError, match="highest is 'None'"):
        task_of({"goal": goal, "lowest": 1})
    assert task_of({"goal": goal, "lowest": 1, "highest": 2}).within == Task(Goal(()), 1, 2).within
