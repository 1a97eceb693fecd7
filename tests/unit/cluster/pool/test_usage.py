"""The use of nodes is counted from the journal alone: what ended how, where, and how long it took."""

from __future__ import annotations

from pathlib import Path

import pytest

from etude.cluster.pool.job import How, Job, JobEnd
from etude.cluster.pool.journal import Submitted
from etude.cluster.pool.usage import usage_of
from etude.figures.data import Bars
from etude.figures.pool import MOST_NODES, jobs_over_time


def job(
    name: str, at_s: float, how: How | None, nodes: tuple[str, ...], begin: float | None, end: float
) -> Submitted:
    known = Job(name, ("true",), Path(name), Path("/"))
    ended = None if how is None else JobEnd(name, how, None, nodes, "", at_s, begin, end)
    return Submitted(known, name, at_s, name, ended)


JOBS = (
    job("a", 100.0, "done", ("n1",), 101.0, 111.0),
    job("b", 100.0, "node-lost", ("n2",), 102.0, 105.0),
    job("b", 105.0, "done", ("n1", "n3"), 111.0, 121.0),
    job("c", 105.0, "no-space", (), None, 106.0),
    job("d", 105.0, "failed", ("n3",), 121.0, 120.0),
    job("e", 110.0, None, (), None, 0.0),
)


def test_jobs_are_counted_by_node_and_by_how_they_ended() -> None:
    found = usage_of(JOBS)
    assert [(n.node, n.done, n.lost, n.failed, n.busy_s) for n in found.nodes] == [
        ("n1", 2, 0, 0, 20.0),
        ("n2", 0, 1, 0, 3.0),
        ("n3", 1, 0, 1, 10.0),
    ]
    assert (found.done, len(found.jobs), found.begin_s, found.span_s) == (2, 6, 100.0, 21.0)
    assert [each.what for each in (*found.lost, *found.failed, *found.under_way)] == ["b", "c", "d", "e"]


def test_a_bar_is_a_job_on_a_node() -> None:
    figure = jobs_over_time(usage_of(JOBS))
    bars = {layer.name: layer.boxes for layer in figure.panels[0].layers if isinstance(layer, Bars)}
    assert {name: len(boxes) for name, boxes in bars.items()} == {"done": 3, "lost": 1, "failed": 1}
    (lost,) = bars["lost"]
    assert (lost.x, lost.width) == (pytest.approx(3.5), pytest.approx(3.0))
    assert figure.panels[0].y.ticks == ((2, "n1"), (1, "n2"), (0, "n3"))
    assert bars["failed"][0].width > 0.0, "clocks of nodes differ a little"
    assert [note.partition(" ")[0] for note in figure.notes] == ["2"]


def test_nodes_beyond_those_that_fit_are_counted() -> None:
    many = [job(f"{n}", 0.0, "done", (f"n{n:03}",), 0.0, 600.0) for n in range(MOST_NODES + 2)]
    figure = jobs_over_time(usage_of(many))
    assert len(figure.panels[0].y.ticks or ()) == MOST_NODES
    assert [note.partition(" ")[0] for note in figure.notes] == ["2"]
    assert figure.x.high == pytest.approx(10.2), "minutes"


def test_a_pool_whose_jobs_are_under_way_is_drawn_without_a_bar() -> None:
    found = usage_of([job("a", 5.0, None, (), None, 0.0)])
    assert (found.nodes, found.span_s) == ((), 0.0)
    assert jobs_over_time(found).panels[0].layers == ()
