"""What a controller and a node write for each other: whole, the same on both sides, and checked where it was edited."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.cluster.pool.job import JobEnd
from etude.errors import InputError
from etude.experiment.plan import make_plan
from etude.experiment.run import run
from etude.experiment.test import Test
from etude.surface.configuration_jobs import (
    CELL,
    SAMPLE,
    ConfigurationJobs,
    NodeRequest,
    begin_on_node,
    depends_on,
    engine_was_on_node,
    is_begun,
    read_attempt,
    read_request,
    read_sample,
    write_request,
    write_sample,
)
from etude.surface.next_configuration import Visit
from etude.surface.samples import Sample
from support.charting import SPACE, Made
from support.spreading import Response

POSITIVE = st.floats(1e-9, 1e12)
TODO = NodeRequest(Visit((1, 0), 12.0, 0.1, "why"), "/a/spec.toml", "", "text", [["rise", 0.5]], 3.0, None)


@st.composite
def todos(draw: st.DrawFn) -> NodeRequest:
    cell = draw(st.sampled_from(list(SPACE)))
    visit = Visit(cell, draw(st.none() | POSITIVE), draw(st.none() | POSITIVE), draw(st.text()))
    times = st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))
    lesson = draw(st.none() | st.lists(st.tuples(st.text(), st.floats(0, 1)).map(list)))
    texts = st.text(st.characters(exclude_categories=["Cs"]))
    return NodeRequest(
        replace(visit, why=draw(texts)),
        draw(texts),
        draw(texts),
        draw(texts),
        lesson if lesson is None else [["x", weight] for _, weight in lesson],
        draw(st.none() | POSITIVE),
        draw(st.none() | times),
    )


@given(todos())
def test_a_node_is_told_what_the_controller_asked(
    tmp_path_factory: pytest.TempPathFactory, todo: NodeRequest
) -> None:
    place = tmp_path_factory.mktemp("cell")
    write_request(place, todo)
    assert read_request(place) == todo


@given(st.sampled_from(list(SPACE)), st.none() | POSITIVE, POSITIVE, st.booleans(), st.integers(0, 10**6))
def test_the_controller_is_told_what_the_node_found(
    tmp_path_factory: pytest.TempPathFactory,
    cell: tuple[int, ...],
    value: float | None,
    high: float,
    kept: bool,
    trials: int,
) -> None:
    place = tmp_path_factory.mktemp("cell")
    state = "failed" if value is None else "measured"
    sample = Sample(cell, state, value, 0.0, math.inf if kept else high, 0.95, 1.5, trials, kept, "so")
    write_sample(place, sample)
    assert read_sample(place, SPACE) == sample


@given(
    st.text()
    | st.recursive(
        st.none() | st.integers() | st.text(), lambda j: st.lists(j) | st.dictionaries(st.text(), j)
    ).map(json.dumps)
)
def test_what_was_edited_is_refused_in_one_line(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    place = tmp_path_factory.mktemp("cell")
    for name, read in ((CELL, read_request), (SAMPLE, lambda where: read_sample(where, SPACE))):
        (place / name).write_text(text, errors="replace")
        with pytest.raises(InputError, match="was it edited"):
            read(place)


def test_a_node_says_where_it_began_and_a_place_where_nothing_did_says_so(tmp_path: Path) -> None:
    assert not is_begun(tmp_path)
    assert read_sample(tmp_path, SPACE) is None
    write_request(tmp_path, TODO)
    assert not is_begun(tmp_path), "it was but asked for"
    begin_on_node(tmp_path)
    assert is_begun(tmp_path)
    made = read_attempt(tmp_path)
    assert made.boot_id
    assert made.machine


def test_a_missing_cell_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_request(tmp_path)


def test_a_cell_depends_on_its_levels_and_resources_and_not_on_the_budget() -> None:
    def text(spec: str, **settings: str) -> str:
        return depends_on(Made(), spec, settings)

    quota = '[factor.a]\nlevels = [1]\nresource = "quota"\n'
    assert text(quota, a="1") == text(quota + '[budget]\ntime = "1 h"\n', a="1")
    assert len({text(quota, a="1"), text(quota, a="2"), text(quota.replace("quota", "cpus"), a="1")}) == 3


def test_where_the_engine_alone_was_on_the_node_its_experiment_says_which(tmp_path: Path) -> None:
    engine_was_on_node(tmp_path)
    assert not (tmp_path / "node.json").exists()
    ended = JobEnd("7", "done", 0, ("n2", "n3"), "", 1.0, 2.0, 3.0)
    assert (read_attempt(tmp_path, ended).host, read_attempt(tmp_path, ended).system) == ("n2", "n3")
    run(make_plan([Test("t", ("true",))], trials=2), tmp_path / "measured")
    engine_was_on_node(tmp_path)
    document = json.loads((tmp_path / "measured" / "experiment.json").read_text())
    made = read_attempt(tmp_path)
    assert (made.host, made.boot_id) == (document["sittings"][0]["host"], document["sittings"][0]["boot_id"])
    assert made.machine == document["machine"]["before"]


def test_a_job_knows_the_time_that_is_left_and_the_deadline(tmp_path: Path) -> None:
    deadline = datetime(2100, 1, 1, tzinfo=UTC)
    cells = ConfigurationJobs("made", SPACE, Response(), None, "made", deadline)
    job = cells.job(TODO.visit, tmp_path / "cell", 12.5)
    todo = read_request(job.place)
    assert (todo.visit, todo.left_s, todo.deadline) == (TODO.visit, 12.5, deadline)
    assert (todo.simulate, job.nodes) == ("made", 1)
