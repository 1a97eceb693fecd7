"""Documents come back from what is written of them; anything else is refused in one line with its place."""

from __future__ import annotations

import contextlib
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.codec import decoded, plain
from etude.errors import InputError
from etude.workbench.goal import Criterion, Goal
from etude.workbench.kept import Sought, task_of
from etude.workbench.surfaces.mapping import Rules
from etude.workbench.surfaces.samples import Sample
from etude.workbench.task import Answer, Finding, Task, Trial

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
numbers = st.floats(allow_nan=False)
samples = st.builds(
    Sample,
    cell=st.lists(st.integers(0, 9), max_size=3).map(tuple),
    state=st.sampled_from(["measured", "bounded", "failed"]),
    value=st.none() | numbers,
    low=numbers,
    high=numbers,
    confidence=numbers,
    cost_s=above,
    trials=st.integers(0),
    kept=st.booleans(),
    why=st.text(max_size=9),
    expected=st.none() | above,
    spread=st.none() | above,
    counted=st.booleans(),
)
KINDS = (Task, Answer, Sought, Trial, Rules, Sample)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (Task, tasks),
        (Answer, answers),
        (Sample, samples),
    ],
    ids=["task", "answer", "sample"],
)
def test_data_come_back(kind: type, data: st.SearchStrategy[Any]) -> None:
    @given(data)
    def comes_back(made: Any) -> None:
        assert decoded(kind, json.loads(json.dumps(plain(made), allow_nan=False)), "f") == made

    comes_back()


@pytest.mark.parametrize("kind", KINDS)
def test_any_value_is_decoded_or_refused_in_one_line(kind: type) -> None:
    @given(anything)
    def refused(value: Any) -> None:
        with contextlib.suppress(InputError):
            decoded(kind, value, "f")
            return
        with pytest.raises(InputError, match=r"^f: [^\n]+$"):
            decoded(kind, value, "f")

    refused()


@given(task=tasks, name=st.sampled_from(list(plain(Task(Goal(()), 1, 2)))), value=anything)
def test_any_member_of_a_task_is_meant_or_named(task: Task, name: str, value: Any) -> None:
    with contextlib.suppress(InputError):
        task_of(plain(task) | {name: value}, "f", "task")
        return
    with pytest.raises(InputError, match=rf"^f: task\.{name}\b"):
        task_of(plain(task) | {name: value}, "f", "task")


@pytest.mark.parametrize(
    ("criterion", "said"),
    [
        ({"of": "median", "limit": 1}, r"\.of: 'median'"),
        ({"of": "mean", "limit": 1, "percent": 95}, "\\bmean .*\\b95\\b"),
        ({"of": "percentile", "limit": 1}, "\\bpercentile .*None"),
        ({"of": "percentile", "limit": 1, "percent": 101}, r"\.percent: .*101"),
        ({"of": "mean", "limit": 0}, r"\.limit: .*\b0\b"),
    ],
)
def test_a_criterion_that_cannot_be_is_named(criterion: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=rf"^f: task\.goal\.criteria\[0\].*{said}"):
        task_of({"goal": {"criteria": [criterion]}, "lowest": 1, "highest": 2}, "f", "task")


def test_loads_have_to_be_there() -> None:
    goal = {"criteria": [{"of": "mean", "limit": 1}]}
    with pytest.raises(InputError, match=r"^f: task\.highest:"):
        task_of({"goal": goal, "lowest": 1}, "f", "task")
    assert (
        task_of({"goal": goal, "lowest": 1, "highest": 2}, "f", "task").within == Task(Goal(()), 1, 2).within
    )
