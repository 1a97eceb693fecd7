"""Documents come back from what is written of them; anything else is refused in one line with its place."""

from __future__ import annotations

import contextlib
import json
import math
import re
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.cluster.pool.job import How, Job, JobEnd
from etude.cluster.pool.job_files import JobStatus
from etude.codec import decoded, parsed, plain
from etude.errors import InputError
from etude.experiment.plan import Plan, RuleSpec
from etude.experiment.test import Test
from etude.iolab.lab import Lab
from etude.machine.boot.record import Record
from etude.peak.search_store import SearchSpec, task_of
from etude.peak.task import Answer, Criterion, Finding, Goal, Task, Trial
from etude.script.checkpoint import Checkpoint
from etude.script.state import State
from etude.surface.configuration_jobs import NodeRequest
from etude.surface.factors import Space
from etude.surface.map_store import Attempt
from etude.surface.next_configuration import Rules
from etude.surface.samples import Sample

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
finite = st.floats(allow_nan=False, allow_infinity=False)
words = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=5)
records = st.builds(
    Record,
    words=st.lists(words, max_size=3),
    state=words,
    results=words,
    directory=words,
    environment=st.dictionaries(words, words, max_size=3),
    program=st.lists(words, min_size=1, max_size=3),
    entry=st.none() | words,
    boot_id=words,
    boots=st.integers(0, 2**63 - 1),
    progress=words,
    seen=st.lists(words, max_size=3),
    most_boots=st.integers(1, 2**63 - 1),
)
ends = st.builds(
    JobEnd,
    id=words,
    how=st.sampled_from(get_args(How)),
    code=st.none() | st.integers(),
    nodes=st.lists(words, max_size=3).map(tuple),
    why=words,
    submitted_s=finite,
    started_s=st.none() | finite,
    ended_s=finite,
)
plans = st.builds(
    Plan,
    name=words,
    tests=st.lists(words, min_size=1, max_size=3, unique=True).map(
        lambda names: tuple(Test(name, ("a", name), environment={name: None}) for name in names)
    ),
    rule=st.builds(RuleSpec, words, st.dictionaries(words, finite, max_size=2)),
    seed=st.integers(),
    shell=st.none() | words,
    warmup=st.integers(1),
)
numbers = st.floats(allow_nan=False)
samples = st.builds(
    Sample,
    cell=st.lists(st.integers(0, 9), max_size=3).map(tuple),
    state=st.sampled_from(["measured", "bounded", "failed"]),
    value=st.none() | numbers,
    low=numbers,
    high=numbers,
    confidence=shares,
    cost_s=above,
    trials=st.integers(0),
    kept=st.booleans(),
    why=st.text(max_size=9),
    expected=st.none() | above,
    spread=st.none() | above,
    counted=st.booleans(),
)
KINDS = (
    Task,
    Answer,
    SearchSpec,
    Trial,
    Rules,
    Sample,
    Space,
    NodeRequest,
    Attempt,
    Job,
    JobEnd,
    JobStatus,
    Plan,
    Lab,
    State,
    Checkpoint,
    Record,
)
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
        (Record, records),
        (JobEnd, ends),
        (Plan, plans),
    ],
    ids=["task", "answer", "sample", "record", "end", "plan"],
)
def test_data_come_back(kind: type, data: st.SearchStrategy[Any]) -> None:
    @given(data)
    def comes_back(made: Any) -> None:
        assert decoded(kind, json.loads(json.dumps(plain(made), allow_nan=False)), "f") == made

    comes_back()


@pytest.mark.parametrize("kind", KINDS)
def test_any_value_is_decoded_or_refused_in_one_line(kind: type) -> None:
    @given(anything, st.booleans())
    def refused(value: Any, strict: bool) -> None:
        with contextlib.suppress(InputError):
            decoded(kind, value, "f", every=strict, only=strict)
            return
        with pytest.raises(InputError, match=r"^f: [^\n]+$"):
            decoded(kind, value, "f", every=strict, only=strict)

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


GOAL = {"criteria": [{"of": "mean", "limit": 1}]}


@pytest.mark.parametrize(
    ("member", "text", "place"),
    [
        ("lowest", "NaN", "lowest"),
        ("lowest", "1" + "0" * 400, "lowest"),
        ("closed", "0", "closed"),
        ("goal", '{"criteria": [{"of": "mean", "limit": true}]}', "goal.criteria[0].limit"),
        ("goal", '{"criteria": [{"of": "mean"}]}', "goal.criteria[0].limit"),
        ("goal", '{"criteria": %s}' % ("[" * 900 + "]" * 900), "goal.criteria[0]"),
        ("new", "1", "new"),
    ],
    ids=["not a number", "a huge number", "a number for a flag", "a flag", "missing", "deep", "unknown"],
)
def test_what_is_wrong_is_named_by_its_path(member: str, text: str, place: str) -> None:
    known = {"goal": GOAL, "lowest": 1, "highest": "inf"}
    assert decoded(Task, known, "f", only=True).highest == math.inf
    with pytest.raises(InputError, match=rf"^f: {re.escape(place)}: "):
        decoded(Task, known | {member: parsed(text, "f")}, "f", only=True)


@pytest.mark.parametrize("kind", [Task, Answer, State], ids=lambda kind: kind.__name__)
def test_values_beyond_all_bounds_are_one_line(kind: type) -> None:
    nested: Any = []
    for _ in range(100_000):
        nested = [nested]
    for value in (nested, {"goal": nested, "why": nested, "a\nb": 1}, 10**5000, {"lowest": 10**5000}):
        with pytest.raises(InputError, match=r"^f: [^\n]+$"):
            decoded(kind, value, "f", only=True)


def test_of_two_members_of_a_name_the_last_counts_and_a_lone_surrogate_stays() -> None:
    text = '{"rate": 1, "rate": null, "low": 0, "high": 1, "confidence": 1, "kept": true, "why": "\\ud800"}'
    found = decoded(Answer, parsed(text, "f"), "f")
    assert (found.rate, found.why) == (None, "\ud800")


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"\xff", b"[" * 100_000, b"1" * 5000, b'"\\ud8'],
    ids=["empty", "cut", "bytes", "deep", "digits", "surrogate"],
)
def test_what_is_no_json_is_refused_in_one_line(data: bytes) -> None:
    with pytest.raises(InputError, match=r"^f: [^\n]+$"):
        parsed(data, "f")
