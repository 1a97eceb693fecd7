"""Nodes that have their own disks: a job's files go there, and its results come back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from etude.cluster.pool.job import Job, JobEnd, Pool
from etude.cluster.pool.spec import open_pool, read_pool
from etude.errors import MachineRefuses
from support.slurm_cluster import Cluster, needs_slurm, wait_until

pytestmark = pytest.mark.beside

POOL = "slurm,results=copied"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("results")


@pytest.fixture(scope="module")
def cluster(base: Path) -> Iterator[Cluster]:
    """For all tests of this file: its node has this directory of its own."""
    with Cluster(nodes=1, private=base) as cluster:
        yield cluster


def job(place: Path, script: str) -> Job:
    place.mkdir()
    (place / "part.json").write_text(json.dumps({"trials": 3}))
    return Job(place.name, ("/bin/sh", "-c", script), place, place)


def waited(pool: Pool, cluster: Cluster) -> JobEnd:
    found: list[JobEnd] = []
    wait_until(lambda: found.extend(pool.ended(1.0)) or found, cluster.log)
    return found[0]


def there(cluster: Cluster, base: Path) -> str:
    """What stands below the results directory on the node."""
    return cluster.run("srun", "find", str(base), "-type", "f")


@needs_slurm
def test_what_a_job_writes_on_its_node_is_fetched_and_removed_there(
    cluster: Cluster, near: None, base: Path
) -> None:
    place = base / "a job"
    with open_pool(read_pool(POOL), base) as pool:
        pool.submit(job(place, "mkdir results; cp part.json results/copy; hostname; exit 3"))
        found = waited(pool, cluster)
    assert (found.how, found.code, found.nodes) == ("failed", 3, ("n1",)), found
    assert (place / "results" / "copy").read_text() == '{"trials": 3}'
    assert (place / "output").read_text() == "n1\n"
    assert found.why == "exit status 3: n1"
    assert there(cluster, base) == ""


@needs_slurm
def test_results_are_kept_for_the_controller_after_the_one_that_died(
    cluster: Cluster, near: None, base: Path, tmp_path: Path
) -> None:
    begun, end = tmp_path / "begun", tmp_path / "end"
    script = f"echo >{begun}; while [ ! -e {end} ]; do sleep 0.05; done; echo measured >results"
    made = job(base / "kept", script)
    with open_pool(read_pool(POOL), base) as pool:
        id = pool.submit(made)
        wait_until(lambda: pool.ended(0.1) or begun.exists(), cluster.log)
    end.touch()
    wait_until(lambda: "etude-ended-0" in cluster.run("squeue", "-h", "-o", "%k"), cluster.log)
    with open_pool(read_pool(POOL), base) as another:
        another.adopt(id, made)
        found = waited(another, cluster)
    assert found.how == "done"
    assert (made.place / "results").read_text() == "measured\n"
    assert there(cluster, base) == ""


@needs_slurm
def test_a_node_that_sees_the_results_directory_is_told_of_and_nothing_is_removed(
    cluster: Cluster, near: None, tmp_path: Path
) -> None:
    made = job(tmp_path / "shared", "echo measured >results")
    with open_pool(read_pool(POOL), tmp_path) as pool:
        pool.submit(made)
        with pytest.raises(MachineRefuses, match=r"n1 .*/shared, .* results="):
            waited(pool, cluster)
    assert (made.place / "part.json").read_text() == '{"trials": 3}'
    wait_until(lambda: not cluster.run("squeue", "-h"), cluster.log)
