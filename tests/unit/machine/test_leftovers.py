"""Processes that outlived their run are found by a mark and ended; this one and its ancestors never are."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from etude.machine import leftovers


@pytest.fixture
def marked() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        ["sleep", "600"], env={**os.environ, "ETUDE_TEST_MARK": "7"}, start_new_session=True
    )
    while not Path(f"/proc/{process.pid}/environ").read_bytes():  # the kernel is still at its exec
        time.sleep(0.001)
    yield process
    process.kill()
    process.wait()


def test_a_mark_is_found_as_a_whole(marked: subprocess.Popen[bytes]) -> None:
    assert leftovers.marked_processes("ETUDE_TEST_MARK", "7") == [marked.pid]
    assert (
        leftovers.marked_processes("ETUDE_TEST_MARK", "77")
        == leftovers.marked_processes("TEST_MARK", "7")
        == []
    )


def test_what_is_stopped_is_waited_for(marked: subprocess.Popen[bytes]) -> None:
    leftovers.stop(lambda: leftovers.marked_processes("ETUDE_TEST_MARK", "7"), 2.0, marked.poll)
    assert marked.poll() == -15


def test_members_of_the_cgroups_of_one_run_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for pid, group in (
        (501, "/a/etude-42-x-1"),
        (502, "/etude-421-x-1"),
        (503, "/a"),
        (os.getpid(), "/etude-42-x-1"),
    ):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "cgroup").write_text(f"4:memory:{group}\n0::/\n")
    monkeypatch.setattr(leftovers, "PROC", tmp_path)
    assert leftovers.in_groups_of({42}) == [501]
    assert sorted(leftovers.in_groups_of({42, 421})) == [501, 502]
    assert leftovers.in_groups_of(set()) == []
