"""This machine as a pool: real processes, a lock of the test's own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from etude.cluster.pool import local
from etude.cluster.pool.job import Job
from etude.cluster.pool.job_files import read_start
from etude.cluster.pool.journal import Journal, JournaledPool
from etude.cluster.pool.local import LocalPool
from etude.errors import MachineRefuses
from etude.osutil.files import lock_holder

PATIENCE_S = 30.0


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[LocalPool]:
    pool = LocalPool(lock=tmp_path / "lock")
    yield pool
    pool.close()


def sh(tmp_path: Path, name: str, line: str) -> Job:
    return Job(name, ("sh", "-c", line), tmp_path / name, tmp_path)


def wait_for(path: Path) -> None:
    until = time.monotonic() + PATIENCE_S
    while not path.exists():
        assert time.monotonic() < until, f"{path} does not come"
        time.sleep(0.01)


def test_jobs_run_one_after_the_other_and_say_how_they_ended(pool: LocalPool, tmp_path: Path) -> None:
    for name, line in (("a", "true"), ("b", "echo no; exit 4"), ("c", "kill -KILL $PPID")):
        pool.submit(sh(tmp_path, name, line))
    assert len(pool.running()) == 1
    ends = [end for _ in range(3) for end in pool.ended(PATIENCE_S)]
    assert [(end.how, end.code, end.why) for end in ends] == [
        ("done", 0, ""),
        ("failed", 4, "exit status 4: no"),
        ("failed", None, "signal 9 ended it"),
    ]
    assert [end.nodes for end in ends] == [(os.uname().nodename,)] * 3
    for former, later in pairwise(ends):
        assert later.started_s is not None
        assert former.ended_s <= later.started_s or former.code is None
    assert pool.ended() == ()
    assert pool.width() == 1


def test_a_second_controller_waits_until_the_machine_is_free_and_says_so(
    pool: LocalPool, tmp_path: Path
) -> None:
    said: list[str] = []
    other = LocalPool(lock=tmp_path / "lock", say=said.append)
    pool.submit(sh(tmp_path, "a", "while [ ! -e go ]; do sleep 0.01; done"))
    other.submit(sh(tmp_path, "b", "test -e go"))
    assert other.ended(0.0) == ()
    assert len(said) == 1
    assert lock_holder(tmp_path / "lock") == os.getpid()
    assert str(os.getpid()) in said[0]
    assert other.running() == frozenset()
    (tmp_path / "go").touch()
    assert [end.how for end in pool.ended(PATIENCE_S)] == ["done"]
    assert [end.how for end in other.ended(PATIENCE_S)] == ["done"]
    other.close()


def test_a_controller_does_not_wait_for_ever(
    pool: LocalPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "PATIENCE_S", -1.0)
    other = LocalPool(lock=tmp_path / "lock")
    pool.submit(sh(tmp_path, "a", "while [ ! -e go ]; do sleep 0.01; done"))
    other.submit(sh(tmp_path, "b", "true"))
    with pytest.raises(MachineRefuses, match=str(os.getpid())):
        other.ended(0.0)
    (tmp_path / "go").touch()
    assert [end.how for end in pool.ended(PATIENCE_S)] == ["done"]


def test_nobody_else_can_hold_the_lock_of_root(tmp_path: Path) -> None:
    assert local.lock_path().parent == Path("/run" if os.geteuid() == 0 else "/tmp")


def test_a_job_that_is_cancelled_is_gone_with_its_children_and_not_told_of(
    pool: LocalPool, tmp_path: Path
) -> None:
    id = pool.submit(sh(tmp_path, "a", "sleep 1000 & echo $! >child; wait"))
    wait_for(tmp_path / "child")
    pool.cancel(id)
    assert pool.ended(0.1) == ()
    child = int((tmp_path / "child").read_text())
    assert not Path(f"/proc/{child}/exe").exists() or "sleep" not in os.readlink(f"/proc/{child}/exe")


CONTROLLER = """
import sys, time
from pathlib import Path
from etude.cluster.pool.journal import JournaledPool
from etude.cluster.pool.job import Job
from etude.cluster.pool.journal import Journal
from etude.osutil.files import lock_holder
from etude.cluster.pool.local import LocalPool
place = Path(sys.argv[1])
pool = JournaledPool(LocalPool(lock=place / "lock"), Journal(place))
for name in ("a", "b"):
    line = f"echo {name} >>ran; touch began-{name}; while [ ! -e go ]; do sleep 0.01; done"
    pool.submit(Job(name, ("sh", "-c", line), place / name, place), name)
time.sleep(1000)
"""


def test_a_controller_that_is_killed_leaves_its_jobs_to_the_next(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    first = subprocess.Popen([sys.executable, "-c", CONTROLLER, str(tmp_path)], env=environment)
    wait_for(tmp_path / "b" / "job.sh")
    wait_for(tmp_path / "began-a")
    until = time.monotonic() + PATIENCE_S
    while len(Journal(tmp_path).unfinished()) < 2 or None in [
        each.id for each in Journal(tmp_path).unfinished()
    ]:
        assert time.monotonic() < until
        time.sleep(0.01)
    first.send_signal(signal.SIGKILL)
    first.wait()
    pool = JournaledPool(LocalPool(lock=tmp_path / "lock"), Journal(tmp_path))
    try:
        assert [each.what for each in pool.recover()] == ["a", "b"]
        (tmp_path / "go").touch()
        told = []
        while pool.under_way:
            for submitted, ended in pool.ended(PATIENCE_S):
                told.append((submitted.what, ended.how))
                pool.conclude(submitted, ended)
    finally:
        pool.pool.close()
    assert told == [("a", "done"), ("b", "done")]
    assert (tmp_path / "ran").read_text() == "a\nb\n"
    assert Journal(tmp_path).unfinished() == ()
    assert read_start(tmp_path / "a") is not None


def test_a_job_that_ran_on_another_machine_is_told_of_that_one(pool: LocalPool, tmp_path: Path) -> None:
    job = sh(tmp_path, "a", "true")
    there = LocalPool(lock=tmp_path / "other")
    id = there.submit(job)
    wait_for(job.place / "end.json")
    written = (job.place / "end.json").read_text()
    (job.place / "end.json").write_text(written.replace(f'"{os.uname().nodename}"', '"other"'))
    pool.adopt(id, job)
    (ended,) = pool.ended(PATIENCE_S)
    assert (ended.how, ended.nodes) == ("done", ("other",))
    there.close()
