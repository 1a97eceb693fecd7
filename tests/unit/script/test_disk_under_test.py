"""Which file system a test of a script works on."""

from __future__ import annotations

from pathlib import Path

from etude.script.disk import file_system_under_test

MOUNTINFO = """\
1 0 8:1 / / rw - ext4 /dev/sda1 rw
2 1 7:0 / /scratch/mnt rw - xfs /dev/loop0 rw
3 1 0:5 / /proc rw - proc proc rw
"""


def test_it_is_that_of_testdir_else_what_was_mounted_since_the_beginning(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text(MOUNTINFO)

    def found(environment: dict[str, str], *before: str) -> object:
        part = file_system_under_test(environment, before, tmp_path)
        return part and (part["type"], part["mount_point"])

    assert found({}, "/") == ("xfs", "/scratch/mnt")
    assert found({"TESTDIR": "/home"}, "/") == ("ext4", "/")
    assert found({"TESTDIR": "/scratch/mnt/work"}, "/", "/scratch/mnt") == ("xfs", "/scratch/mnt")
    assert found({}, "/", "/scratch/mnt") is None
