"""Jobs on a real Slurm cluster: munged, slurmctld and a slurmd for each node, on this machine."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from etude.cluster.pool.job import RETRYABLE, Job, JobEnd, Pool
from etude.cluster.pool.journal import Journal, JournaledPool, timeline
from etude.cluster.pool.slurm import commands
from etude.cluster.pool.slurm import pool as slurm_pool
from etude.cluster.pool.spec import open_pool, read_pool
from etude.errors import MachineRefuses
from etude.osutil.commands import Done
from support.slurm_cluster import Cluster, needs_slurm, wait_until

pytestmark = pytest.mark.beside

PATIENCE_S = 60.0


@contextmanager
def opened(text: str, directory: Path) -> Iterator[Pool]:
    with open_pool(read_pool(text), directory) as pool:
        yield pool


def sh(directory: Path, name: str, line: str, **changes: object) -> Job:
    return Job(name, ("sh", "-c", line), directory / name, directory, **changes)  # type: ignore[arg-type]


def all_ends(pool: Pool, count: int) -> list[JobEnd]:
    until, ends = time.monotonic() + PATIENCE_S, list[JobEnd]()
    while len(ends) < count:
        assert time.monotonic() < until, ends
        ends += pool.ended(1.0)
    return ends


def wait_for(path: Path) -> None:
    wait_until(path.exists, lambda: f"{path} does not come")


@pytest.mark.quick
@needs_slurm
def test_jobs_have_nodes_of_their_own(near: Cluster, tmp_path: Path) -> None:
    with opened("slurm,partition=bench,time=5m", tmp_path) as pool:
        assert (pool.width(), pool.width(2)) == (2, 1)
        meet = "touch here-$NAME; while [ ! -e here-a ] || [ ! -e here-b ]; do sleep 0.05; done; uname -n"
        for name in ("a", "b"):
            pool.submit(sh(tmp_path, name, meet, environment={"NAME": name}))
        both = pool.submit(sh(tmp_path, "both", "srun -N2 --overlap uname -n; exit 3", nodes=2))
        first, second, last = all_ends(pool, 3)
        near.drain("n1")
        assert pool.width() == 1
    assert {first.nodes, second.nodes} == {("n1",), ("n2",)}
    assert (tmp_path / "a" / "output").read_text() != (tmp_path / "b" / "output").read_text()
    assert (last.id, last.nodes, last.how, last.code) == (both, ("n1", "n2"), "failed", 3)
    assert sorted((tmp_path / "both" / "output").read_text().split()) == ["n1", "n2"]
    assert last.why in ("exit status 3: n1", "exit status 3: n2")


@needs_slurm
def test_each_end_that_is_slurms_doing_is_told(start: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = start(
        nodes=3,
        options={
            "PreemptType": "preempt/partition_prio",
            "PreemptMode": "REQUEUE",
            "SlurmdTimeout": "3",
        },
        partitions=("urgent Nodes=ALL PriorityTier=9 PreemptMode=OFF",),
    )
    with opened("slurm", tmp_path) as pool:
        pools = JournaledPool(pool, Journal(tmp_path))
        ids = {}
        for name, node in (("late", "n1"), ("moved", "n2"), ("dark", "n3")):
            line = f"touch runs-{name}; sleep 1000"
            ids[name] = pools.submit(sh(tmp_path, name, line, only=node), name)
        for name in ids:
            wait_for(tmp_path / f"runs-{name}")
        for name in ("kept", "dropped"):
            ids[name] = pools.submit(sh(tmp_path, name, "true"), name)
        cluster.run("scontrol", "uhold", ids["kept"])
        cluster.run("scancel", ids["dropped"])
        cluster.run("scontrol", "update", f"JobId={ids['late']}", "EndTime=now")
        cluster.kill_node("n3")
        cluster.run("sbatch", "-p", "urgent", "-w", "n2", "--exclusive", "-o", "/dev/null", "--wrap", "true")
        ends = {}
        until = time.monotonic() + PATIENCE_S
        while pools.under_way:
            assert time.monotonic() < until, (ends, cluster.log())
            for submitted, ended in pools.ended(1.0):
                pools.conclude(submitted, ended)
                ends[submitted.what] = ended
    assert {name: ended.how for name, ended in ends.items()} == {
        "late": "out-of-time",
        "moved": "preempted",
        "dark": "node-lost",
        "kept": "held",
        "dropped": "cancelled",
    }
    assert ends["dark"].nodes == ("n3",)
    assert ends["kept"].nodes == ()
    assert "(JobHeldUser)" in ends["kept"].why
    assert ids["kept"] not in cluster.run("squeue", "-h", "-o", "%A")
    assert len(timeline(pools.journal.jobs)) == 6


def repeated(pool: Pool, directory: Path, line: str) -> list[JobEnd]:
    """Until it ran somewhere, each time on another node."""
    ends: list[JobEnd] = []
    while not ends or ends[-1].how in RETRYABLE:
        avoid = frozenset(node for end in ends for node in end.nodes)
        pool.submit(sh(directory, f"attempt-{len(ends) + 1}", line, avoid=avoid))
        ends += all_ends(pool, 1)
    return ends


@needs_slurm
def test_a_node_that_cannot_run_it_says_why_and_another_does(
    start: Callable[..., Cluster], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm_pool, "SHARED_S", 1.0)
    results, python = tmp_path / "results", tmp_path / "bin" / "python"
    results.mkdir()
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    cluster = start(nodes=4)
    foreign = tmp_path / "uname"
    foreign.write_text('#!/bin/sh\n[ "$1" = -m ] && echo s390x || echo n1\n')
    foreign.chmod(0o755)
    cluster.enter("n1", "mount", "--bind", str(foreign), shutil.which("uname") or "")
    cluster.enter("n2", "mount", "-t", "tmpfs", "none", str(python.parent))
    cluster.enter("n3", "mount", "-t", "tmpfs", "none", str(results))
    with opened(f"slurm,python={python}", results) as pool:
        *refused, last = repeated(pool, results, "uname -n")
    assert {end.nodes: end.how for end in refused} == {
        ("n1",): "other-architecture",
        ("n2",): "no-etude",
        ("n3",): "no-space",
    }
    whys = {end.nodes[0]: end.why for end in refused}
    assert "s390x" in whys["n1"]
    assert f"{python}" in whys["n2"]
    assert "shared" in whys["n3"]
    assert (last.how, last.nodes) == ("done", ("n4",))


@needs_slurm
def test_a_results_directory_without_space_is_told(start: Callable[..., Cluster], tmp_path: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", str(tmp_path)], check=True)
    try:
        start(nodes=1)
        with opened("slurm", tmp_path) as pool:
            pool.submit(sh(tmp_path, "a", "true"))
            (end,) = all_ends(pool, 1)
    finally:
        subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)
    assert (end.how, end.nodes) == ("no-space", ("n1",))
    assert re.match(r"\d MiB .* 64", end.why)


@needs_slurm
def test_slurm_may_be_away_while_jobs_run(
    start: Callable[..., Cluster], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = start(nodes=2, options={"MessageTimeout": "1"})
    with opened("slurm", tmp_path) as pool:
        for name, code in (("good", 0), ("bad", 5)):
            pool.submit(
                sh(tmp_path, name, f"touch runs-{name}; while [ ! -e go ]; do sleep 0.05; done; exit {code}")
            )
        wait_for(tmp_path / "runs-good")
        wait_for(tmp_path / "runs-bad")
        cluster.stop_controller()
        (tmp_path / "go").touch()
        assert [end.how for end in all_ends(pool, 1)] == ["done"]
        monkeypatch.setattr(slurm_pool, "ANSWER_S", 1.0)
        with pytest.raises(MachineRefuses, match="for 1 s: "):
            all_ends(pool, 1)
        monkeypatch.setattr(slurm_pool, "OPEN_S", 0.0)
        with (
            pytest.raises(MachineRefuses, match="scontrol ping"),
            opened("slurm", tmp_path),
        ):
            raise AssertionError("a pool without Slurm")
        monkeypatch.setattr(slurm_pool, "ANSWER_S", PATIENCE_S)
        cluster.start_controller()
        assert [(end.how, end.code) for end in all_ends(pool, 1)] == [("failed", 5)]


CONTROLLER = """
import sys, time
from pathlib import Path
from etude.cluster.pool.journal import JournaledPool
from etude.cluster.pool.job import Job
from etude.cluster.pool.journal import Journal
from etude.cluster.pool.spec import open_pool, read_pool
place = Path(sys.argv[1])
with open_pool(read_pool("slurm"), place) as pool:
    pools = JournaledPool(pool, Journal(place))
    for name in ("quick", "slow"):
        line = f"echo {name} >>ran-{name}; [ {name} = quick ] || while [ ! -e go ]; do sleep 0.05; done"
        pools.submit(Job(name, ("sh", "-c", line), place / name, place), name)
    (place / "all").touch()
    time.sleep(1000)
"""


@needs_slurm
def test_jobs_outlive_their_controller_and_slurms_memory_of_them(
    start: Callable[..., Cluster], tmp_path: Path
) -> None:
    cluster = start(nodes=2)
    first = subprocess.Popen([sys.executable, "-c", CONTROLLER, str(tmp_path)])
    try:
        wait_for(tmp_path / "all")
        wait_for(tmp_path / "quick" / "end.json")
        wait_for(tmp_path / "ran-slow")
    finally:
        first.send_signal(signal.SIGKILL)
        first.wait()
    with opened("slurm", tmp_path) as pool:
        pools = JournaledPool(pool, Journal(tmp_path))
        assert [each.what for each in pools.recover()] == ["quick", "slow"]
        told = [(submitted.what, ended.how) for submitted, ended in pools.ended(PATIENCE_S)]
        assert told == [("quick", "done")]
        (tmp_path / "go").touch()
        wait_for(tmp_path / "slow" / "end.json")
    cluster.stop_controller()
    cluster.start_controller(forgetful=True)
    with opened("slurm", tmp_path) as pool:
        pools = JournaledPool(pool, Journal(tmp_path))
        # Neither was concluded: the next controller is told of both.
        assert [each.what for each in pools.recover()] == ["quick", "slow"]
        for submitted, ended in (pair for _ in range(2) for pair in pools.ended(PATIENCE_S)):
            assert ended.how == "done"
            pools.conclude(submitted, ended)
    assert Journal(tmp_path).unfinished() == ()
    assert [(tmp_path / f"ran-{name}").read_text() for name in ("quick", "slow")] == ["quick\n", "slow\n"]


@needs_slurm
def test_a_job_whose_submission_was_not_answered_runs_once(
    near: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = commands._run

    def loses_the_answer(words: Sequence[str]) -> Done:
        done = real(words)
        if words[0] == "sbatch":
            return Done(1, b"", b"sbatch: error: Socket timed out on send/recv operation")
        return done

    monkeypatch.setattr(commands, "_run", loses_the_answer)
    with opened("slurm", tmp_path) as pool:
        pool.submit(sh(tmp_path, "a", "echo ran >>ran"))
        assert [end.how for end in all_ends(pool, 1)] == ["done"]
    assert (tmp_path / "ran").read_text() == "ran\n"


@needs_slurm
def test_what_slurm_will_never_run_is_told(start: Callable[..., Cluster], tmp_path: Path) -> None:
    start(nodes=2, partitions=("small Nodes=ALL MaxNodes=1 MaxTime=10",))
    with opened("slurm,partition=small", tmp_path) as pool:
        pool.submit(sh(tmp_path, "wide", "true", nodes=2))
        (end,) = all_ends(pool, 1)
        assert end.how == "held"
        assert "(Partition" in end.why
        with pytest.raises(MachineRefuses, match=r"^nowhere: .*sbatch: "):
            pool.submit(sh(tmp_path, "nowhere", "true", only="n9"))
    with opened("slurm,partition=small,time=1h", tmp_path) as pool:
        pool.submit(sh(tmp_path, "long", "true"))
        (end,) = all_ends(pool, 1)
        assert end.how == "held"
        assert "(Partition" in end.why
    for text in ("slurm,partition=none", "slurm,constraint=arm"):
        with pytest.raises(MachineRefuses, match="Slurm has no"), opened(text, tmp_path):
            raise AssertionError("a pool that there is not")


@needs_slurm
def test_nothing_of_ours_stays_on_a_node(near: Cluster, tmp_path: Path) -> None:
    before = near.enter("n1", "ps", "-e", "-o", "comm=").split()
    with opened("slurm,nodelist=n1", tmp_path) as pool:
        pool.submit(sh(tmp_path, "a", "sleep 1000 & true"))
        all_ends(pool, 1)
        wait_until(
            lambda: near.enter("n1", "ps", "-e", "-o", "comm=").split() == before,
            lambda: near.enter("n1", "ps", "-e", "-o", "pid,args"),
        )
