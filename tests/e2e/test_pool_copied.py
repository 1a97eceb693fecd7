"""A node on which nothing of Étude is: the engine goes there by srun, and all that decides stays here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from real import etude, experiment, lines

from slurm_cluster import Cluster, needs_slurm, wait_until


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=2) as cluster:
        yield cluster


@pytest.fixture
def held(cluster: Cluster) -> Iterator[str]:
    """A job that only holds node n2."""
    job = cluster.run("sbatch", "--parsable", "-wn2", "--exclusive", "-o/dev/null", "--wrap", "sleep 600")
    job = job.strip()
    wait_until(lambda: cluster.run("squeue", "-h", "-j", job, "-o", "%T").strip() == "RUNNING", cluster.log)
    yield job
    cluster.run("scancel", job, check=False)
    wait_until(lambda: cluster.state("n2") == "idle", cluster.log)


def there(cluster: Cluster, job: str) -> dict[str, str]:
    """The environment of a process whose engine is to be on the node."""
    return {**cluster.environment, "ETUDE_NODE": f"{job}:n2"}


def left(node: str) -> list[str]:
    return [path.name for path in Path("/tmp").glob("etude-remote-*")]


@needs_slurm
def test_a_bench_measures_on_the_node_and_says_so(cluster: Cluster, held: str, tmp_path: Path) -> None:
    before = left("n2")
    words = ("bench", "hostname >>$HOME/seen", "sleep 0.001", "--trials", "3", "--setup", "hostname", "-o", "r")
    etude(*words, "--shell", cwd=tmp_path, env={**there(cluster, held), "HOME": str(tmp_path)})
    document = experiment(tmp_path / "r")
    assert {*(tmp_path / "seen").read_text().split()} == {"n2"}
    for test in (test for test in document["tests"] if test["role"] != "again"):
        rows = lines(tmp_path / "r", test["directory"])
        assert {row["host"] for row in rows} == {"n2"}
        assert sum(row["kept"] for row in rows) >= 3
    assert document["machine"]["before"]["system"]["hostname"] == "n2"
    assert document["machine"]["after"]["cpu"] == document["machine"]["before"]["cpu"]
    assert document["sittings"][0]["copied"] == {"job": held, "node": "n2"}
    assert left("n2") == before, "the engine was removed"
