"""What is unmounted for a moment is noted first, and mounted by whoever comes next."""

from __future__ import annotations

from pathlib import Path

import pytest

from etude.errors import MachineRefuses
from etude.machine.cool import steps
from etude.osutil.mounts import Mount

MOUNT = Mount("/", "/mnt/data", ("rw",), "ext4", "/dev/loop9")


class Machine:
    """Mounts what it is told to, unless it is broken."""

    def __init__(self) -> None:
        self.mounted = [MOUNT]
        self.done: list[tuple[str, ...]] = []
        self.broken = False

    def tool(self, *words: str, **_: object) -> str:
        if self.broken:
            raise MachineRefuses("broken")
        self.done.append(words)
        self.mounted = [MOUNT]
        return ""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    found = Machine()
    monkeypatch.setattr(steps, "DIRECTORY", tmp_path / "etude")
    monkeypatch.setattr(steps, "mounts", lambda: found.mounted)
    monkeypatch.setattr(steps, "tool", found.tool)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("etude.machine.resources.ledger.check_directory_for_root", lambda _: None)
    monkeypatch.setattr("etude.machine.resources.ledger.open_for_root", lambda path: path)
    return found


def unmounted(machine: Machine, backing: str = "") -> None:
    """As a remount that is killed after its unmount leaves it."""
    with pytest.raises(MachineRefuses), steps.noted_remounts(MOUNT, "noatime,rw", backing):
        machine.mounted, machine.broken = [], True
    machine.broken = False


def test_nothing_is_left_of_a_remount_that_came_to_its_end(machine: Machine) -> None:
    with steps.noted_remounts(MOUNT, "rw", ""):
        pass
    assert (steps.restore_mounts(), machine.done) == ([], [])


def test_the_next_start_mounts_what_was_left_unmounted(machine: Machine) -> None:
    unmounted(machine)
    assert steps.restore_mounts() == ["/mnt/data"]
    assert machine.done == [("mount", "-t", "ext4", "-o", "noatime,rw", "--", "/dev/loop9", "/mnt/data")]
    assert steps.restore_mounts() == []


def test_a_loop_device_that_went_with_its_last_close_is_made_again(machine: Machine) -> None:
    unmounted(machine, "/srv/image")
    steps.restore_mounts()
    assert machine.done[0][4:] == ("noatime,rw,loop", "--", "/srv/image", "/mnt/data")


def test_what_cannot_be_mounted_is_kept_for_the_next_time(machine: Machine) -> None:
    unmounted(machine)
    machine.broken = True
    with pytest.raises(MachineRefuses, match="mount_again"):
        steps.restore_mounts()
    machine.broken = False
    assert steps.restore_mounts() == ["/mnt/data"]


def test_another_remount_first_mounts_what_is_away(machine: Machine) -> None:
    unmounted(machine)
    with steps.noted_remounts(MOUNT, "rw", ""):
        assert len(machine.done) == 1
