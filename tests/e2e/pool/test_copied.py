"""A node on which nothing of Étude is: the engine goes there by srun, and all that decides stays here."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from etude.cluster.pool.job import Job, JobEnd, Pool
from etude.cluster.pool.spec import open_pool, read_pool
from etude.errors import MachineRefuses
from etude.machine import snapshot
from etude.machine.remote import host
from support.real import called, etude, experiment, lines, one_line
from support.slurm_cluster import Cluster, needs_slurm, wait_until

pytestmark = pytest.mark.beside


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


def left(cluster: Cluster) -> list[str]:
    """Directories of engines in /tmp, without those whose keeper is of another machine, or of nodes of others."""
    ours = {os.readlink(f"/proc/{cluster.first_process(node)}/ns/pid") for node in cluster.nodes}
    found = []
    for path in Path("/tmp").glob("etude-remote-*"):
        keeper = path / "keeper"
        words = keeper.read_text().split() if keeper.exists() else []
        if path.exists() and (len(words) < 4 or words[3] in ours):
            found.append(path.name)
    return found


@needs_slurm
def test_a_bench_measures_on_the_node_and_says_so(cluster: Cluster, held: str, tmp_path: Path) -> None:
    before = left(cluster)
    words = [
        "bench",
        "hostname >>$HOME/seen",
        "sleep 0.001",
        "--trials",
        "3",
        "--setup",
        "hostname",
        "-o",
        "r",
    ]
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
    assert left(cluster) == before, "the engine was removed"


@needs_slurm
def test_a_node_that_goes_away_ends_the_bench_with_one_line(
    cluster: Cluster, held: str, tmp_path: Path
) -> None:
    """With what was measured on disk."""
    command = f"echo >>{tmp_path}/made; sleep 0.01"
    running = subprocess.Popen(
        [sys.executable, "-m", "etude.cli.main", "bench", command, "--shell", "-o", "r", "--trials", "9999"],
        cwd=tmp_path, env=there(cluster, held), stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        made = tmp_path / "made"
        wait_until(lambda: made.exists() and len(made.read_text()) > 3, cluster.log)
        cluster.run("scancel", held)
        _, said = running.communicate(timeout=60)
    finally:
        running.kill()
        running.communicate()
    assert running.returncode == 5, said
    assert "n2" in one_line(said)
    assert experiment(tmp_path / "r")["machine"]["after"] is None


REFUSED = [
    pytest.param(["run", "s.ap"], "etude run: needs", id="script"),
    pytest.param(["bench", "true", "--cool", "drop"], "--cool: needs", id="cool"),
    pytest.param(["peak", "h.toml"], "a harness: needs", id="harness"),
]


@pytest.mark.parametrize(("words", "said"), REFUSED)
def test_what_measures_with_more_than_the_engine_is_refused(
    tmp_path: Path, words: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "s.ap").write_text("TEST t 1\n  EXEC true\nDONE\n")
    (tmp_path / "h.toml").write_text(
        '[goal]\nmean = "40 ms"\n[load]\nlowest = 1\nhighest = 9\n[reader]\nkind = "windows"\n'
        '[commands]\nload = "x {load}"\n'
    )
    monkeypatch.setenv("ETUDE_NODE", "1:n2")
    assert said in one_line(called(*words, "-o", "r", cwd=tmp_path, check=2).stderr)


def test_a_machine_is_read_from_what_was_brought_of_it_as_it_is_read_there() -> None:
    def run(line: str) -> bytes:
        return subprocess.run(["/bin/sh", "-c", line], capture_output=True, check=True).stdout

    brought, here = host.take_snapshot(run), snapshot.take(directory=Path("/"), files=False)
    for part in ("cpu", "frequency", "kernel", "sysctl", "limits", "virtualisation", "disks"):
        assert brought[part] == here[part], part
    for name in ("hostname", "boot_id", "kernel_release", "kernel_version"):
        assert brought["system"][name] == here["system"][name]
    assert brought["memory"]["total_bytes"] == here["memory"]["total_bytes"]


def test_what_is_no_archive_is_one_line() -> None:
    with pytest.raises(MachineRefuses, match="cannot be read"):
        host.take_snapshot(lambda line: b"bash: tar: command not found")


def job(place: Path, script: str) -> Job:
    command = (sys.executable, "-m", "etude.cli.main", "bench", script, "--shell", "--trials", "3", "-o", "r")
    return Job(place.name, command, place, place)


def waited(pool: Pool) -> JobEnd:
    found: list[JobEnd] = []
    wait_until(lambda: found.extend(pool.ended(1.0)) or found, lambda: "no job has ended")
    assert len(found) == 1
    return found[0]


@needs_slurm
def test_jobs_of_a_pool_measure_on_its_nodes_and_leave_nothing_there(
    cluster: Cluster, near: None, tmp_path: Path
) -> None:
    before = left(cluster)
    with open_pool(read_pool("slurm,etude=copied"), tmp_path) as pool:
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            pool.submit(job(tmp_path / name, "true"))
        ends: list[JobEnd] = []
        wait_until(lambda: ends.extend(pool.ended(1.0)) or len(ends) == 2, cluster.log)
    assert {end.how for end in ends} == {"done"}, ends
    assert {end.nodes for end in ends} == {("n1",), ("n2",)}
    hosts = {experiment(tmp_path / name / "r")["sittings"][0]["host"] for name in ("one", "two")}
    assert hosts == {"n1", "n2"}
    cluster.wait_for_nodes("idle")
    wait_until(lambda: left(cluster) == before, lambda: f"{left(cluster)}")


@needs_slurm
def test_a_job_that_is_cancelled_has_not_failed_and_one_that_failed_was_not_lost(
    cluster: Cluster, near: None, tmp_path: Path
) -> None:
    with open_pool(read_pool("slurm,etude=copied"), tmp_path) as pool:
        (tmp_path / "lost").mkdir()
        id = pool.submit(job(tmp_path / "lost", f"echo >>{tmp_path}/made; sleep 1000"))
        wait_until(lambda: pool.ended(0.2) or (tmp_path / "made").exists(), cluster.log)
        cluster.run("scancel", id)
        assert waited(pool).how == "cancelled"
        (tmp_path / "failed").mkdir()
        pool.submit(job(tmp_path / "failed", "exit 3"))
        failed = waited(pool)
        assert (failed.how, failed.code) == ("failed", 4), failed
