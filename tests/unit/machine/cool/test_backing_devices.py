"""Where a data set lies: on a mount table and a /sys that are laid out here."""

from __future__ import annotations

from pathlib import Path

import pytest

from etude.errors import MachineRefuses
from etude.machine.cool.dataset import Loop, loops, mount_of
from etude.osutil.mounts import parsed

TABLE = """\
20 1 254:0 / / rw - ext4 /dev/vda rw
21 20 0:5 / /proc rw - proc proc rw
22 20 7:0 / /mnt/a rw - ext4 /dev/loop0 rw
23 20 7:1 / /mnt/a\\040b rw - xfs /dev/loop1 rw
24 22 7:2 / /mnt/a rw - xfs /dev/loop2 rw
25 20 0:40 / /mnt/pool rw - btrfs /dev/loop4 rw
26 20 254:17 / /mnt/part rw - ext4 /dev/loop6p1 rw
27 20 9:0 / /mnt/array rw - ext4 /dev/md0 rw
"""
MOUNTS = list(parsed(TABLE))


def block(sys: Path, name: str, *, backing: str = "", direct: bool = False, below: str = "") -> Path:
    """A block device of /sys; `below`: the disk that it is a partition of."""
    directory = sys / "devices" / below / name
    directory.mkdir(parents=True)
    if below:
        (directory / "partition").write_text("1\n")
    if backing:
        (directory / "loop").mkdir()
        for member, text in (("backing_file", backing), ("dio", str(int(direct))), ("autoclear", "0")):
            (directory / "loop" / member).write_text(f"{text}\n")
    link = sys / "class/block" / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(directory)
    return directory


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("/mnt/a/x", "/dev/loop2"),
        ("/mnt/a", "/dev/loop2"),
        ("/mnt/ab", "/dev/vda"),
        ("/mnt/a b/c", "/dev/loop1"),
        ("/etc", "/dev/vda"),
    ],
)
def test_a_path_lies_on_the_mount_of_the_longest_directory_made_last(path: str, source: str) -> None:
    assert mount_of(path, MOUNTS).source == source


def test_a_path_on_no_mount_is_refused() -> None:
    with pytest.raises(MachineRefuses, match=r"^/etc: "):
        mount_of("/etc", MOUNTS[1:])


def test_the_loop_below_a_mount_is_found_with_its_file(tmp_path: Path) -> None:
    block(tmp_path, "loop2", backing="/data/a b.img", direct=True)
    assert loops(mount_of("/mnt/a", MOUNTS), tmp_path) == [Loop("/dev/loop2", "/data/a b.img", True, False)]


def test_loops_below_partitions_arrays_and_pools_are_found(tmp_path: Path) -> None:
    block(tmp_path, "loop6", backing="/six")
    block(tmp_path, "loop6p1", below="loop6")
    array = block(tmp_path, "md0")
    (array / "slaves").mkdir()
    for name in ("loop7", "loop8"):
        (array / "slaves" / name).symlink_to(block(tmp_path, name, backing=f"/{name}"))
    pool = tmp_path / "fs/btrfs/1234/devices"
    pool.mkdir(parents=True)
    for name in ("loop4", "loop5"):
        block(tmp_path, name, backing=f"/{name}")
        (pool / name).symlink_to(tmp_path / "class/block" / name)
    found = {
        path: [loop.backing for loop in loops(mount_of(path, MOUNTS), tmp_path)]
        for path in ("/mnt/part", "/mnt/array", "/mnt/pool", "/etc")
    }
    assert found == {
        "/mnt/part": ["/six"],
        "/mnt/array": ["/loop7", "/loop8"],
        "/mnt/pool": ["/loop4", "/loop5"],
        "/etc": [],
    }
