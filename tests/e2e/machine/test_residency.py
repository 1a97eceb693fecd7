"""`etude-engine residency` on real file systems: what is cached is told, and looking changes nothing."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from etude.program import engine_path
from support.cached import Disk, Watch, disk, drop, fill, listing, look, output, read_all

FILES, SIZE = 250, 20_000
WARM = 0.95 * FILES * SIZE
"""The kernel may give up single pages of what was just read at any time."""
FILE_SYSTEMS = [
    pytest.param("ext4", marks=pytest.mark.needs_program("mkfs.ext4", package="e2fsprogs")),
    pytest.param("xfs", marks=pytest.mark.needs_program("mkfs.xfs", package="xfsprogs")),
    pytest.param("btrfs", marks=pytest.mark.needs_program("mkfs.btrfs", package="btrfs-progs")),
]
needs_ext4 = pytest.mark.needs_program("mkfs.ext4", package="e2fsprogs")


@pytest.fixture
def filled(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    with disk(tmp_path, getattr(request, "param", "ext4")) as made:
        fill(made.root, FILES, SIZE)
        yield made


def refused(*words: str | Path) -> tuple[int, str]:
    command = [engine_path(), "residency", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    (line,) = done.stderr.splitlines()
    return done.returncode, line


def names(listed: Path) -> list[bytes]:
    return [record.split(b" ", 1)[1] for record in listed.read_bytes().split(b"\0") if record]


@pytest.mark.quick
@pytest.mark.serial
@pytest.mark.needs_root
@pytest.mark.parametrize("filled", FILE_SYSTEMS, indirect=True)
def test_what_was_read_is_resident_and_what_was_dropped_is_not(filled: Disk, tmp_path: Path) -> None:
    listed = listing(tmp_path, filled.root)
    read_all(filled.root)
    warm = look(listed)
    assert (warm["files"], warm["names_cached"]) == (FILES, FILES)
    assert warm["bytes"] == FILES * SIZE
    assert warm["resident_bytes"] >= WARM
    assert look(listed, "--how", "mincore")["resident_bytes"] >= WARM, "both calls say the same"
    drop()
    cold = look(listed)
    assert (cold["names_cached"], cold["resident_bytes"], cold["gone"]) == (0, 0, 0)
    assert cold["undisturbed"] is True


@pytest.mark.serial
@pytest.mark.needs_root
@pytest.mark.parametrize("filled", FILE_SYSTEMS, indirect=True)
def test_looking_disturbs_nothing_and_opening_plainly_does(filled: Disk, tmp_path: Path) -> None:
    listed = listing(tmp_path, filled.root)
    drop()
    for _ in range(2):
        assert look(listed)["names_cached"] == 0
    plain = look(listed, "--plainly")
    assert (plain["names_cached"], plain["undisturbed"]) == (None, False)
    assert look(listed)["names_cached"] == FILES


@pytest.mark.serial
@pytest.mark.needs_root
@pytest.mark.parametrize("filled", FILE_SYSTEMS, indirect=True)
@pytest.mark.parametrize("way", ["drop", "remount"])
def test_files_whose_names_are_not_cached_have_no_pages_after(way: str, filled: Disk, tmp_path: Path) -> None:
    listed = listing(tmp_path, filled.root)
    read_all(filled.root)
    if way == "drop":
        drop()
    else:
        filled.unmount()
        filled.mount()
    assert look(listed)["names_cached"] == 0
    assert look(listed, "--plainly")["resident_bytes"] == 0


@pytest.mark.serial
@pytest.mark.needs_root
@pytest.mark.parametrize("filled", FILE_SYSTEMS, indirect=True)
def test_a_watch_finds_pages_of_files_whose_names_are_forgotten(filled: Disk, tmp_path: Path) -> None:
    listed = listing(tmp_path, filled.root)
    read_all(filled.root)
    watch = Watch(listed)
    drop(2)  # Names and inodes; an inode that has pages stays.
    found = watch.look()
    assert found["names_cached"] == 0
    assert found["inodes_cached"] == FILES == watch.watched
    assert found["resident_bytes"] >= WARM
    again = look(listed)
    assert again["names_cached"] == 0, "it was told without looking a name up"
    assert (again["resident_bytes"], again["inodes_cached"]) == (0, None), "a look alone cannot see them"
    assert look(listed, "--plainly")["resident_bytes"] >= WARM


@pytest.mark.serial
@pytest.mark.needs_root
@pytest.mark.parametrize("filled", FILE_SYSTEMS, indirect=True)
def test_a_watch_holds_nothing_in_memory(filled: Disk, tmp_path: Path) -> None:
    listed = listing(tmp_path, filled.root)
    read_all(filled.root)
    watch = Watch(listed)
    drop()
    found = watch.look()
    assert (found["names_cached"], found["inodes_cached"], found["resident_bytes"]) == (0, 0, 0)


@pytest.mark.serial
@pytest.mark.needs_root
@needs_ext4
def test_a_watched_file_system_can_be_unmounted(filled: Disk, tmp_path: Path) -> None:
    listed = listing(tmp_path, filled.root)
    watch = Watch(listed)
    filled.unmount()
    filled.mount()
    assert (filled.root / "d0/f0").read_bytes()
    found = watch.look()
    assert (found["names_cached"], found["resident_bytes"]) == (1, SIZE), "what was read behind the remount"


@pytest.mark.serial
@pytest.mark.needs_root
@needs_ext4
def test_the_file_behind_a_loop_device_stays_cached_over_a_remount_until_it_is_evicted(
    filled: Disk, tmp_path: Path
) -> None:
    listed = listing(tmp_path, filled.root)
    filled.unmount()
    filled.mount()
    image, device = look(listed, "--also", filled.image, "--also", filled.device)["also"]
    assert image["path"] == str(filled.image)
    assert image["resident_bytes"] >= WARM
    assert 0 < device["resident_bytes"] < device["bytes"] == 512 << 20
    left = json.loads(output(engine_path(), "residency", "evict", filled.device, filled.image))
    assert left[str(filled.image)] == 0
    assert left[filled.device] < device["resident_bytes"]
    assert look(listed, "--also", filled.image)["also"][0]["resident_bytes"] == 0


@pytest.mark.serial
@pytest.mark.needs_root
@needs_ext4
def test_evicting_a_directory_evicts_its_files_and_leaves_their_names(filled: Disk, tmp_path: Path) -> None:
    listed = listing(tmp_path, filled.root)
    read_all(filled.root)
    assert json.loads(output(engine_path(), "residency", "evict", filled.root)) == {str(filled.root): 0}
    found = look(listed)
    assert (found["names_cached"], found["resident_bytes"]) == (FILES, 0)


@pytest.mark.serial
@pytest.mark.needs_root
@needs_ext4
def test_another_file_system_below_is_not_listed(filled: Disk, tmp_path: Path) -> None:
    (filled.root / "below").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", filled.root / "below"], check=True)
    try:
        (filled.root / "below/file").write_text("elsewhere")
        assert len(names(listing(tmp_path, filled.root))) == FILES
    finally:
        subprocess.run(["umount", filled.root / "below"], check=True)


@pytest.mark.serial
@pytest.mark.needs_root
@pytest.mark.needs_program("mkfs.btrfs", package="btrfs-progs")
def test_a_subvolume_is_of_the_same_file_system(tmp_path: Path) -> None:
    with disk(tmp_path, "btrfs") as made:
        output("btrfs", "subvolume", "create", made.root / "sub")
        fill(made.root / "sub", 3, 10)
        listed = listing(tmp_path, made.root)
        assert len(names(listed)) == 3
        watch = Watch(listed)
        drop(2)
        assert watch.look()["resident_bytes"] == 30


def test_each_file_is_listed_once_whatever_it_is_called_and_links_are_not_followed(tmp_path: Path) -> None:
    root = os.fsencode(tmp_path / "set")
    for name in (b"a\nb", b"\xff\xfe", b" 12 ", b"plain"):
        os.makedirs(os.path.join(root, b"in " + name))
        Path(os.fsdecode(os.path.join(root, b"in " + name, name))).write_bytes(name)
    os.link(os.path.join(root, b"in plain/plain"), os.path.join(root, b"second name"))
    os.symlink(b"in plain", os.path.join(root, b"link"))
    os.mkfifo(os.path.join(root, b"pipe"))
    top = tmp_path / "link"
    top.symlink_to("set")
    listed = listing(tmp_path, top, tmp_path / "set/in plain")
    assert sorted(os.path.basename(name) for name in names(listed)) in (
        sorted([b"a\nb", b"\xff\xfe", b" 12 ", b"plain"]),
        sorted([b"a\nb", b"\xff\xfe", b" 12 ", b"second name"]),
    )
    assert all(name.startswith(root) for name in names(listed))
    found = look(listed)
    assert (found["files"], found["names_cached"]) == (4, 4)


def test_files_that_are_gone_or_something_else_now_are_counted(tmp_path: Path) -> None:
    root = tmp_path / "set"
    fill(root, 5, 100)
    listed = listing(tmp_path, root)
    (root / "d0/f1").unlink()
    (root / "d0/f2").unlink()
    os.mkfifo(root / "d0/f2")
    found = look(listed)
    assert (found["files"], found["bytes"], found["gone"], found["names_cached"]) == (5, 500, 2, 3)


def test_a_look_is_no_access(tmp_path: Path) -> None:
    root = tmp_path / "set"
    fill(root, 2, 100)
    listed = listing(tmp_path, root)
    before = [(root / f"d0/f{number}").stat().st_atime_ns for number in range(2)]
    for words in ([], ["--plainly"], ["--how", "mincore"]):
        look(listed, *words)
    assert before == [(root / f"d0/f{number}").stat().st_atime_ns for number in range(2)]


def test_what_cannot_be_looked_at_is_one_line(tmp_path: Path) -> None:
    assert refused("list", tmp_path / "absent")[0] == 2
    assert refused("look")[0] == 2
    assert refused("gaze")[0] == 2
    assert refused("look", tmp_path / "absent")[0] == 3
    torn = tmp_path / "torn"
    torn.write_bytes(b"12 /a")
    code, line = refused("look", torn)
    assert code == 3
    assert "cut short" in line
    torn.write_bytes(b"")
    assert refused("look", torn, "--also", tmp_path / "absent")[0] == 2
    empty = look(torn)
    assert (empty["files"], empty["bytes"], empty["names_cached"], empty["resident_bytes"]) == (0, 0, 0, 0)
    assert (empty["how"], empty["inodes_cached"], empty["also"]) == (None, None, [])
