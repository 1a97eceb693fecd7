from __future__ import annotations

from pathlib import Path

import pytest

from etude.cluster.pool.job import Job, PoolSpec
from etude.cluster.pool.slurm.answers import Node
from etude.cluster.pool.slurm.pool import arguments, fits

KNOWN = tuple(Node(f"n{number}", True, "p", True, frozenset()) for number in (1, 2, 3, 4))


def of(spec: PoolSpec, **changes: object) -> list[str]:
    job = Job(**{"name": "a", "command": ("true",), "place": Path("/r/1"), "directory": Path("/")} | changes)  # type: ignore[arg-type]
    return arguments(job, "etude-1", spec, KNOWN)


def test_keys_pass_through_and_time_is_whole_minutes() -> None:
    spec = PoolSpec("slurm", "p", "a", "q", "c&d", "r", 90.0)
    words = {"--partition=p", "--account=a", "--qos=q", "--constraint=c&d", "--reservation=r", "--time=2"}
    assert words <= set(of(spec))


def test_nodes_are_exclusive_and_nothing_is_run_twice() -> None:
    assert {"--exclusive", "--no-requeue", "--nodes=2-2", "--mem=0"} <= set(of(PoolSpec("slurm"), nodes=2))


def test_nodes_to_avoid_are_those_of_job_and_pool_that_slurm_knows() -> None:
    words = of(PoolSpec("slurm", exclude="n2"), avoid=frozenset(("n1", "gone")))
    assert "--exclude=n1,n2" in words


@pytest.mark.parametrize(("nodes", "avoided"), [(1, True), (2, False)])
def test_nodes_are_avoided_as_long_as_enough_others_are_left(nodes: int, avoided: bool) -> None:
    words = of(PoolSpec("slurm", exclude="n4"), avoid=frozenset(("n1", "n2")), nodes=nodes)
    assert ("--exclude=n1,n2,n4" in words, "--exclude=n4" in words) == (avoided, not avoided)


def test_a_nodelist_means_no_other_nodes() -> None:
    words = of(PoolSpec("slurm", nodelist="n[1-3]"), avoid=frozenset(("n3",)))
    assert "--exclude=n3,n4" in words
    assert not any(word.startswith("--nodelist") for word in words)


def test_a_job_of_one_node_asks_for_it() -> None:
    words = of(PoolSpec("slurm", nodelist="n[1-3]"), only="n4", avoid=frozenset(("n4",)))
    assert "--nodelist=n4" in words
    assert not any(word.startswith("--exclude") and "n4" in word for word in words)


@pytest.mark.parametrize(
    ("constraint", "met"),
    [("", True), ("epyc", True), ("epyc&ib", False), ("ib|epyc", True), ("arm", False), ("[a*2&b*1]", True)],
)
def test_constraints_are_looked_at_where_they_are_simple(constraint: str, met: bool) -> None:
    node = Node("n1", True, "p", True, frozenset(("epyc",)))
    assert fits(node, PoolSpec("slurm", constraint=constraint)) == met
