"""Slurm's nodes: two that all tests share, each of which finds them idle and empty; or a cluster of a test's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from etude.cluster.pool.slurm import pool as slurm_pool
from etude.cluster.pool.staging import EngineStaging, ResultStaging
from support.places import ROOT
from support.slurm_cluster import Cluster


@pytest.fixture(scope="session")
def shared_cluster() -> Iterator[Cluster]:
    with Cluster(nodes=2) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared_cluster: Cluster) -> Cluster:
    """Nodes n1 and n2. A test that kills one, or wants another slurm.conf, starts a cluster of its own."""
    shared_cluster.tidy()
    return shared_cluster


def use(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make it the one that Slurm's commands in this process speak to, which look at their jobs without long pauses."""
    for name in ("PATH", "SLURM_CONF"):
        monkeypatch.setenv(name, cluster.environment[name])
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    monkeypatch.setattr(EngineStaging, "look_s", 0.1)
    monkeypatch.setattr(ResultStaging, "look_s", 0.1)
    monkeypatch.setattr(slurm_pool, "QUEUE_S", 0.2)


@pytest.fixture
def near(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """The shared cluster, which this process uses."""
    use(cluster, monkeypatch)
    return cluster


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Cluster]]:
    """Starts a cluster of the test's own, which this process uses."""
    with ExitStack() as stack:

        def started(**options: object) -> Cluster:
            cluster = stack.enter_context(Cluster(**options))  # type: ignore[arg-type]
            use(cluster, monkeypatch)
            return cluster

        yield started
