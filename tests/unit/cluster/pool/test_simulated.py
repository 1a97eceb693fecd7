"""A pool in virtual time keeps every promise of a pool: each job has its nodes to itself, and each end is told once."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.cluster.pool.job import Job, JobEnd, Pool
from etude.cluster.pool.simulated import Death, SimulatedPool
from etude.errors import MachineRefuses

PLACE = Path("/nowhere")


def job(name: str, nodes: int = 1, avoid: tuple[str, ...] = (), only: str | None = None) -> Job:
    return Job(name, ("true",), PLACE, PLACE, nodes, frozenset(avoid), only)


def lasting(job: Job, node: str) -> float:
    """As long as its name says."""
    return float(job.name)


def drained(pool: SimulatedPool) -> list[JobEnd]:
    found: list[JobEnd] = []
    while ended := pool.ended():
        found += ended
    return found


def test_it_is_a_pool() -> None:
    pool: Pool = SimulatedPool(2, lasting)
    assert (pool.name, pool.width(), pool.width(2), pool.width(3), pool.clock_s()) == (
        "simulated",
        2,
        1,
        1,
        0.0,
    )
    pool.close()


def test_jobs_begin_as_soon_as_there_is_a_node_and_end_in_virtual_time() -> None:
    finished: list[tuple[str, str]] = []
    pool = SimulatedPool(2, lasting, lambda job, node: finished.append((job.name, node)))
    ids = [pool.submit(job(name)) for name in ("30", "10", "5")]
    assert pool.running() == {ids[0], ids[1]}
    first, second, third = drained(pool)
    assert (first.id, first.started_s, first.ended_s, first.nodes) == (ids[1], 0.0, 10.0, ("node002",))
    assert (second.id, second.started_s, second.ended_s, second.nodes) == (ids[2], 10.0, 15.0, ("node002",))
    assert (third.how, third.code, third.ended_s, third.why) == ("done", 0, 30.0, "")
    assert finished == [("10", "node002"), ("5", "node002"), ("30", "node001")]
    assert pool.busy_s == {"node001": 30.0, "node002": 15.0}
    assert pool.ended() == []


def test_at_a_timeout_time_has_passed_and_nothing_is_told() -> None:
    pool = SimulatedPool(1, lasting)
    pool.submit(job("30"))
    assert pool.ended(12.0) == []
    assert pool.clock_s() == 12.0
    assert [each.ended_s for each in pool.ended(18.0)] == [30.0]


def test_ends_of_one_instant_are_told_together() -> None:
    pool = SimulatedPool(3, lasting)
    for name in ("10", "10", "11"):
        pool.submit(job(name))
    assert [len(pool.ended()), len(pool.ended())] == [2, 1]


def test_a_node_that_dies_takes_its_job_with_it_and_is_used_again_when_it_is_back() -> None:
    pool = SimulatedPool(2, lasting, deaths=[Death("node001", 5.0, 50.0)])
    lost, kept = pool.submit(job("10")), pool.submit(job("20"))
    (end,) = pool.ended()
    assert (end.id, end.how, end.code, end.nodes, end.ended_s) == (lost, "node-lost", None, ("node001",), 5.0)
    assert "node001 died" in end.why
    assert pool.width() == 1
    again = pool.submit(job("30", avoid=("node002",)))
    assert [each.id for each in pool.ended()] == [kept]
    assert [(each.id, each.started_s, each.nodes) for each in pool.ended()] == [(again, 50.0, ("node001",))]
    assert pool.width() == 2


def test_a_job_that_ends_as_its_node_dies_is_lost() -> None:
    pool = SimulatedPool(1, lasting, deaths=[Death("node001", 10.0)])
    pool.submit(job("10"))
    assert [each.how for each in pool.ended()] == ["node-lost"]


@pytest.mark.parametrize(
    "impossible",
    [job("1", nodes=3), job("1", avoid=("node001", "node002")), job("1", only="node009"),
     job("1", only="node001", avoid=("node001",))],
    ids=["too-many", "avoids-all", "unknown", "contradiction"],
)  # fmt: skip
def test_a_job_that_no_node_can_run_is_held_when_all_else_has_ended(impossible: Job) -> None:
    pool = SimulatedPool(2, lasting)
    held, other = pool.submit(impossible), pool.submit(job("7"))
    first, last = drained(pool)
    assert (first.id, first.how) == (other, "done")
    assert (last.id, last.how, last.nodes, last.started_s, last.ended_s) == (held, "held", (), None, 7.0)


def test_a_job_of_two_nodes_waits_for_both_and_begins_at_the_one_it_has_to() -> None:
    pool = SimulatedPool(3, lasting)
    for name in ("10", "20", "30"):
        pool.submit(job(name))
    pair = pool.submit(job("5", nodes=2, only="node002"))
    found = {each.id: each for each in drained(pool)}[pair]
    assert (found.started_s, found.nodes) == (20.0, ("node002", "node001"))


def test_a_cancelled_job_is_never_told_of_and_frees_its_node() -> None:
    pool = SimulatedPool(1, lasting)
    first, second = pool.submit(job("10")), pool.submit(job("20"))
    pool.cancel(first)
    assert pool.running() == {second}
    assert [(each.id, each.ended_s) for each in drained(pool)] == [(second, 20.0)]


def test_only_its_own_jobs_can_be_adopted() -> None:
    pool = SimulatedPool(1, lasting)
    pool.adopt(pool.submit(job("10")), job("10"))
    with pytest.raises(MachineRefuses, match="no such job"):
        pool.adopt("99", job("10"))


@given(
    st.integers(1, 4),
    st.lists(st.tuples(st.integers(1, 50), st.integers(1, 2)), max_size=25),
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 60), st.integers(1, 60)), max_size=4),
)
def test_no_node_has_two_jobs_at_once_and_every_job_ends_once(
    nodes: int, wanted: list[tuple[int, int]], dying: list[tuple[int, int, int]]
) -> None:
    last: dict[str, float] = {}
    deaths = []
    for number, at_s, for_s in sorted(dying, key=lambda each: each[1]):
        node = f"node{min(number, nodes):03d}"
        if at_s > last.get(node, -math.inf):
            deaths.append(Death(node, at_s, at_s + for_s))
            last[node] = at_s + for_s
    pool = SimulatedPool(nodes, lasting, deaths=deaths)
    ids = [pool.submit(job(str(duration), min(count, nodes))) for duration, count in wanted]
    ends = drained(pool)
    assert sorted(each.id for each in ends) == sorted(ids)
    for node in pool.nodes:
        spans = sorted((each.started_s or 0.0, each.ended_s) for each in ends if node in each.nodes)
        assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))
        for death in deaths:
            if death.node == node:
                assert not any(begun < death.back_s and end > death.at_s for begun, end in spans)
    assert all(each.how == "done" or each.how == "node-lost" for each in ends)
