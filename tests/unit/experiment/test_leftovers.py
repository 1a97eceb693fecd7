"""What a killed run left running is ended before its directory is measured in again, or named."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from etude.errors import MachineRefuses
from etude.experiment import session
from etude.machine.boot.record import boot_id

MEMBERS = "etude.machine.leftovers"


def test_children_of_a_session_are_ended_by_the_next_of_this_directory_alone(tmp_path: Path) -> None:
    here, elsewhere = tmp_path / "a", tmp_path / "b"
    with session.mark_children(here):
        process = subprocess.Popen(["sleep", "600"], start_new_session=True)
    assert session.VARIABLE not in os.environ
    while not Path(f"/proc/{process.pid}/environ").read_bytes():  # the kernel is still at its exec
        time.sleep(0.001)
    try:
        assert session.end_leftovers(elsewhere, []) == []
        assert process.poll() is None
        assert session.end_leftovers(tmp_path / "x" / ".." / "a", []) == [f"sleep (process {process.pid})"]
        assert process.wait() == -15
    finally:
        process.kill()
        process.wait()


def test_one_that_cannot_be_ended_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{MEMBERS}.marked_processes", lambda *_: [os.getpid()])
    monkeypatch.setattr(f"{MEMBERS}.stop", lambda *_: None)
    with pytest.raises(MachineRefuses, match=f"process {os.getpid()}"):
        session.end_leftovers(tmp_path, [])


def test_cgroups_are_those_of_dead_runs_in_this_boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def in_groups_of(pids: set[int]) -> list[int]:
        asked.extend(pids)
        return []

    monkeypatch.setattr(f"{MEMBERS}.in_groups_of", in_groups_of)
    gone = 2**22 + 1  # above any process id
    sessions = [
        {"pid": gone, "boot_id": boot_id()},
        {"pid": gone + 1, "boot_id": "another"},
        {"pid": os.getppid(), "boot_id": boot_id()},  # of an Étude that runs
        {"boot_id": boot_id()},  # of an earlier version
    ]
    session.end_leftovers(tmp_path, sessions)
    assert set(asked) == {gone}


def test_empty_cgroups_of_dead_runs_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone, mine = 2**22 + 1, os.getpid()
    for name in (f"memory/etude-{gone}-a/within", f"cpu/etude-{gone}-b", f"cpu/etude-{mine}-c", "cpu/other"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setattr(f"{MEMBERS}.GROUPS", tmp_path)
    session.end_leftovers(tmp_path, [{"pid": gone, "boot_id": boot_id()}])
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")}
    assert left == {"memory", "cpu", f"cpu/etude-{mine}-c", "cpu/other"}
