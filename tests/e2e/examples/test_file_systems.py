"""fs-setup.sh and fs-cleanup.sh with real loop devices, and what hooks make of them."""

import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.laboratory import EXAMPLES, Lab, field_of

pytestmark = [pytest.mark.serial, pytest.mark.needs_root]

FILE_SYSTEMS = [
    pytest.param("ext2", marks=pytest.mark.needs_program("mkfs.ext2", package="e2fsprogs")),
    pytest.param("ext3", marks=pytest.mark.needs_program("mkfs.ext3", package="e2fsprogs")),
    pytest.param("ext4", marks=pytest.mark.needs_program("mkfs.ext4", package="e2fsprogs")),
    pytest.param("xfs", marks=pytest.mark.needs_program("mkfs.xfs", package="xfsprogs")),
    pytest.param("btrfs", marks=pytest.mark.needs_program("mkfs.btrfs", package="btrfs-progs")),
]
needs_ext4 = pytest.mark.needs_program("mkfs.ext4", package="e2fsprogs")
needs_xfs = pytest.mark.needs_program("mkfs.xfs", package="xfsprogs")


def kind(place: Path) -> str:
    """The type of the file system that is mounted there, or in a plain directory "none"."""
    command = ["findmnt", "-n", "-o", "FSTYPE", "--mountpoint", str(place)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "none"


@pytest.fixture
def loop(lab: Lab) -> Iterator[Callable[[], str]]:
    """Makes block devices that are the user's own, not the scripts'."""
    made: list[str] = []

    def make() -> str:
        image = lab.path / f"disk{len(made)}"
        image.touch()
        os.truncate(image, 400 << 20)
        command = ["losetup", "--find", "--show", str(image)]
        made.append(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())
        return made[-1]

    yield make
    for place in lab.mounts():
        subprocess.run(["umount", place], check=False)
    for device in made:
        subprocess.run(["losetup", "--detach", device], check=False)


@pytest.mark.parametrize("fs", FILE_SYSTEMS)
def test_a_fresh_file_system_is_mounted_and_nothing_of_it_is_left(lab: Lab, fs: str) -> None:
    for _ in range(2):
        lab.run("fs-setup.sh", fs)
        assert kind(lab.root) == fs
        assert sorted(path.name for path in lab.root.iterdir()) in ([], ["lost+found"])
        (lab.root / "file").write_text("of the first round")
        lab.run("fs-cleanup.sh", fs)
        assert lab.left() == []


@pytest.mark.parametrize("fs", FILE_SYSTEMS)
def test_the_log_says_how_the_file_system_was_made(lab: Lab, fs: str) -> None:
    lab.run("fs-setup.sh", fs, FSMOUNTOPTS="noatime")
    lab.run("fs-cleanup.sh", fs)
    (block,) = lab.blocks("filesystem")
    assert field_of(block, "fs") == fs
    assert field_of(block, "size") == f"{400 << 20} B"
    assert field_of(block, "device").startswith("/dev/loop")
    assert field_of(block, "backing_file") == str(lab.scratch / f"{fs}.img")
    assert "noatime" in field_of(block, "mount_options")
    assert field_of(block, "version") != ""
    ran = [line for line in block.lines if line.startswith("ran = ")]
    assert ran[0].startswith(f"ran = mkfs.{fs} ")
    assert ran[-1].startswith(f"ran = mount -t {fs} -o noatime ")
    assert lab.blocks("fsinfo")[0].lines != ()
    assert len(lab.blocks("system")) == 1


def test_facts_that_do_not_change_are_logged_in_the_first_trial_only(lab: Lab) -> None:
    lab.run("fs-setup.sh", "tmpfs", APEPOCH="2")
    lab.run("fs-cleanup.sh", "tmpfs", APEPOCH="2")
    assert len(lab.blocks("filesystem")) == 1
    assert lab.blocks("system") == []
    assert lab.blocks("partitions") == []


def test_tmpfs_is_as_large_as_an_image_would_be(lab: Lab) -> None:
    lab.run("fs-setup.sh", "tmpfs")
    assert kind(lab.root) == "tmpfs"
    status = os.statvfs(lab.root)
    assert status.f_blocks * status.f_frsize == 400 << 20
    lab.run("fs-cleanup.sh", "tmpfs")
    assert lab.left() == []


@needs_ext4
def test_the_knobs_of_mkfs_are_used(lab: Lab) -> None:
    lab.run("fs-setup.sh", "ext4", BLOCKSIZE="2048", MKFSOPTS="-L volume -m 0")
    (info,) = lab.blocks("fsinfo")
    lab.run("fs-cleanup.sh", "ext4")
    facts = " ".join(" ".join(info.lines).split())
    assert "volume name: volume" in facts
    assert "Block size: 2048" in facts
    assert "Reserved block count: 0" in facts


@needs_ext4
def test_the_loop_device_passes_by_the_cache_where_it_can_and_is_not_told_otherwise(lab: Lab) -> None:
    found = {}
    for direct in ("on", "off", "auto"):
        done = lab.run("fs-setup.sh", "ext4", check=None, FSDIRECTIO=direct)
        lab.run("fs-cleanup.sh", "ext4")
        if done.returncode == 0:
            found[direct] = field_of(lab.blocks("filesystem")[-1], "direct_io")
    assert found.get("on", "1") == "1"
    assert found["off"] == "0"
    assert found["auto"] == ("1" if "on" in found else "0")


# --- what a failed run has left ---------------------------------------------------------------------


@needs_ext4
@needs_xfs
def test_what_a_killed_run_left_is_removed_before_the_next_begins(lab: Lab) -> None:
    lab.run("fs-setup.sh", "ext4")
    lab.run("fs-setup.sh", "xfs")
    assert len(lab.mounts()) == 1
    assert len(lab.loops()) == 1
    assert kind(lab.root) == "xfs"
    assert [path.name for path in lab.scratch.glob("*.img")] == ["xfs.img"]
    lab.run("fs-cleanup.sh", "xfs")
    assert lab.left() == []


@needs_ext4
@pytest.mark.parametrize("point", ["mkfs", "tunefs", "mount"])
def test_a_set_up_that_was_killed_midway_leaves_nothing_that_is_not_found(lab: Lab, point: str) -> None:
    stay = f"stay() {{ touch {lab.path}/reached; sleep 60; }}; ap_register {point} stay\n"
    process = lab.start("fs-setup.sh", "ext4", APLIB=lab.hooks("stay", stay))
    while not (lab.path / "reached").exists():
        time.sleep(0.01)
        assert process.poll() is None
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert len(lab.loops()) == 1
    lab.run("fs-cleanup.sh", "ext4")
    assert lab.left() == []


@needs_ext4
def test_the_loop_device_of_an_image_that_is_gone_is_found(lab: Lab) -> None:
    lab.run("fs-setup.sh", "ext4")
    (lab.scratch / "ext4.img").unlink()
    lab.run("fs-cleanup.sh", "ext4")
    assert lab.left() == []


def test_cleaning_up_where_nothing_was_set_up_is_no_failure(lab: Lab) -> None:
    lab.run("fs-cleanup.sh", "ext4")
    assert lab.left() == []


@needs_ext4
def test_a_file_system_in_use_is_a_failure_and_is_removed_later(lab: Lab) -> None:
    lab.run("fs-setup.sh", "ext4")
    user = subprocess.Popen(["sleep", "60"], cwd=lab.root)
    done = lab.run("fs-cleanup.sh", "ext4", check=1)
    user.kill()
    user.wait()
    assert "unmounted" in done.stderr
    assert "target is busy" in done.stderr
    lab.run("fs-cleanup.sh", "ext4")
    assert lab.left() == []


@needs_ext4
def test_a_test_does_not_run_on_the_file_system_of_another(lab: Lab) -> None:
    lab.run("fs-setup.sh", "ext4", APTEST="a")
    lab.bash("ap_check_testdir", APTEST="a")
    done = lab.bash("ap_check_testdir", check=1, APTEST="b")
    lab.bash("ap_check_testdir", APTEST="b", TESTDIR=str(lab.path))
    lab.run("fs-cleanup.sh", "ext4")
    assert "the test a" in done.stderr


# --- what is not ours -------------------------------------------------------------------------------


@needs_ext4
def test_what_somebody_else_has_mounted_is_left_alone(lab: Lab) -> None:
    lab.root.mkdir(parents=True)
    lab.scratch.chmod(0o700)
    subprocess.run(["mount", "-t", "tmpfs", "theirs", str(lab.root)], check=True)
    done = lab.run("fs-setup.sh", "ext4", check=1)
    lab.run("fs-cleanup.sh", "ext4")
    assert kind(lab.root) == "tmpfs"
    assert lab.loops() == []
    subprocess.run(["umount", str(lab.root)], check=True)
    assert "theirs is mounted" in done.stderr


@needs_ext4
def test_what_was_mounted_over_by_somebody_else_is_left_alone(lab: Lab) -> None:
    lab.run("fs-setup.sh", "ext4")
    subprocess.run(["mount", "-t", "tmpfs", "theirs", str(lab.root)], check=True)
    done = lab.run("fs-cleanup.sh", "ext4", check=1)
    assert kind(lab.root).split() == ["ext4", "tmpfs"]
    subprocess.run(["umount", str(lab.root)], check=True)
    lab.run("fs-cleanup.sh", "ext4")
    assert "theirs is mounted" in done.stderr
    assert lab.left() == []


def test_files_of_the_user_are_not_mounted_over(lab: Lab) -> None:
    root = lab.path / "home"
    root.mkdir()
    (root / "file").write_text("mine")
    done = lab.run("fs-setup.sh", "tmpfs", check=1, TESTROOT=str(root))
    assert "is not empty" in done.stderr
    assert kind(root) == "none"
    lab.run("fs-setup.sh", "tmpfs", TESTROOT=str(root), FSFORCE="yes")
    lab.run("fs-cleanup.sh", "tmpfs", TESTROOT=str(root))
    assert (root / "file").read_text() == "mine"


def test_the_scratch_directory_of_a_run_that_lives_is_not_taken_down(lab: Lab) -> None:
    lab.run("fs-setup.sh", "tmpfs")
    held = os.open(lab.results, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(held, fcntl.LOCK_EX)
    other = lab.path / "other"
    other.mkdir()
    lab.program(
        "flock", f'[[ $1 == --shared ]] && set -- --shared --nonblock "${{@:4}}"; exec {which("flock")} "$@"'
    )
    for script in ("fs-setup.sh", "fs-cleanup.sh"):
        done = lab.run(script, "tmpfs", check=1, APRESULTS=str(other))
        assert str(lab.results) in done.stderr
    assert kind(lab.root) == "tmpfs"
    os.close(held)
    lab.run("fs-cleanup.sh", "tmpfs", APRESULTS=str(other))
    assert lab.left() == []


def which(program: str) -> str:
    done = subprocess.run(["which", program], capture_output=True, text=True, check=True)
    return done.stdout.strip()


# --- keeping, checking, real devices ----------------------------------------------------------------


@needs_ext4
def test_an_image_that_is_kept_is_mounted_again_without_formatting(lab: Lab) -> None:
    lab.run("fs-setup.sh", "ext4", FSKEEP="yes")
    (lab.root / "file").write_text("kept")
    lab.run("fs-cleanup.sh", "ext4", FSKEEP="yes")
    assert (lab.mounts(), lab.loops()) == ([], [])
    for _ in range(2):
        lab.run("fs-setup.sh", "ext4", FSFORMAT="no")
        assert (lab.root / "file").read_text() == "kept"
        lab.run("fs-cleanup.sh", "ext4", FSFORMAT="no")
    assert (lab.mounts(), lab.loops()) == ([], [])
    assert not any("mkfs" in line for line in lab.blocks("filesystem")[-1].lines)


def test_without_formatting_there_must_be_something_to_mount(lab: Lab) -> None:
    done = lab.run("fs-setup.sh", "ext4", check=1, FSFORMAT="no")
    lab.run("fs-cleanup.sh", "ext4")
    assert "FSFORMAT=no" in done.stderr


@pytest.mark.parametrize("fs", FILE_SYSTEMS[2:])
def test_a_sound_file_system_passes_its_check(lab: Lab, fs: str) -> None:
    lab.run("fs-setup.sh", fs)
    (lab.root / "file").write_text("x" * 100_000)
    lab.run("fs-cleanup.sh", fs, FSCHECK="yes")
    assert lab.left() == []


@needs_ext4
def test_a_damaged_file_system_is_a_failure_of_the_clean_up_and_is_still_removed(lab: Lab) -> None:
    hook = (
        'damage() { fs_unmount "$3" && debugfs -w -R "clri <2>" "$2" 2>/dev/null; }\n'
        "ap_register unmount damage\n"
    )
    lab.run("fs-setup.sh", "ext4")
    done = lab.run("fs-cleanup.sh", "ext4", check=1, FSCHECK="yes", APLIB=lab.hooks("damage", hook))
    assert "has errors" in done.stderr
    assert lab.left() == []


@needs_ext4
@needs_xfs
def test_a_device_is_used_if_nobody_may_want_what_is_on_it(lab: Lab, loop: Callable[[], str]) -> None:
    empty, theirs = loop(), loop()
    subprocess.run(["mkfs.xfs", "-q", theirs], check=True)
    for fs in ("ext4", "xfs"):  # the second time it holds what was made here
        lab.run("fs-setup.sh", fs, DEVICE=empty)
        assert field_of(lab.blocks("filesystem")[-1], "device") == empty
        lab.run("fs-cleanup.sh", fs, DEVICE=empty)
        assert lab.mounts() == []
    done = lab.run("fs-setup.sh", "ext4", check=1, DEVICE=theirs)
    assert "FSFORCE=yes overwrites it" in done.stderr
    assert "xfs" in done.stderr
    lab.run("fs-setup.sh", "ext4", DEVICE=theirs, FSFORCE="yes")
    lab.run("fs-cleanup.sh", "ext4", DEVICE=theirs)
    assert set(lab.loops()) == {empty, theirs}
    assert list(lab.scratch.glob("*.img")) == []


@needs_ext4
def test_a_device_in_use_is_refused_even_by_force(lab: Lab, loop: Callable[[], str]) -> None:
    device, place = loop(), lab.path / "theirs"
    place.mkdir()
    subprocess.run(["mkfs.ext4", "-q", device], check=True)
    subprocess.run(["mount", device, str(place)], check=True)
    done = lab.run("fs-setup.sh", "ext4", check=1, DEVICE=device, FSFORCE="yes")
    assert f"{device} is in use" in done.stderr
    assert str(place) in done.stderr
    lab.run("fs-cleanup.sh", "ext4", DEVICE=device)
    assert lab.mounts() == [str(place)]


def test_a_file_is_no_device(lab: Lab) -> None:
    done = lab.run("fs-setup.sh", "ext4", check=1, DEVICE=str(lab.path))
    assert "no block device" in done.stderr
    lab.run("fs-cleanup.sh", "ext4")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"FSKEEP": "maybe"}, "FSKEEP is 'maybe'"),
        ({"FSPLAIN": "maybe"}, "FSPLAIN is 'maybe'"),
        ({"FSDIRECTIO": "maybe"}, "FSDIRECTIO is 'maybe'"),
        ({"FSIMAGESIZE": "much"}, "FSIMAGESIZE: "),
    ],
)
def test_a_knob_that_makes_no_sense_is_named(lab: Lab, change: dict[str, str], message: str) -> None:
    done = lab.run("fs-setup.sh", "ext4", check=1, **change)
    lab.run("fs-cleanup.sh", "ext4")
    assert message in done.stderr


@pytest.mark.parametrize("fs", ["zfs", "../x", ""])
def test_a_file_system_that_no_hook_knows_is_refused(lab: Lab, fs: str) -> None:
    done = lab.run("fs-setup.sh", fs, check=1)
    (said,) = done.stderr.splitlines()
    assert fs in said
    assert ("hook" in said) == (fs == "zfs")  # another is no name of a file system
    assert lab.left() == []


# --- hooks ------------------------------------------------------------------------------------------


@needs_ext4
@pytest.mark.parametrize(("htree", "there"), [("on", True), ("off", False)])
def test_the_htree_hook_makes_directories_with_and_without_an_index(
    lab: Lab, htree: str, there: bool
) -> None:
    around = {"APLIB": str(EXAMPLES / "hooks" / "htree"), "HTREE": htree}
    lab.run("fs-setup.sh", "ext4", **around)
    lab.run("readdir.sh", "generate", READDIR_DIRECTORIES="2", READDIR_FILES="300", **around)
    lab.run("readdir.sh", **around)
    lab.run("fs-cleanup.sh", "ext4", FSCHECK="yes", **around)
    features = next(line for line in lab.blocks("fsinfo")[0].lines if "features" in line)
    assert ("dir_index" in features) == there
    (row,) = lab.measurements()
    assert (row["command"].split()[0], row["status"]) == ("find", "0")
    assert lab.left() == []


@needs_ext4
def test_the_stackable_hook_mounts_an_overlay_on_any_other(lab: Lab) -> None:
    around = {"APLIB": str(EXAMPLES / "hooks" / "stackable")}
    for fs in ("overlay-ext4", "overlay-tmpfs"):
        lab.run("fs-setup.sh", fs, **around)
        assert kind(lab.root) == "overlay"
        (lab.root / "file").write_text("written")
        assert (lab.scratch / "mnt.below" / "upper" / "file").read_text() == "written"
        lab.run("fs-cleanup.sh", fs, **around)
        assert lab.left() == []


@needs_ext4
def test_what_a_hook_has_mounted_is_removed_without_the_hook(lab: Lab) -> None:
    lab.run("fs-setup.sh", "overlay-ext4", APLIB=str(EXAMPLES / "hooks" / "stackable"))
    assert len(lab.mounts()) == 2
    lab.run("fs-setup.sh", "tmpfs")
    assert (len(lab.mounts()), lab.loops()) == (1, [])
    lab.run("fs-cleanup.sh", "tmpfs")
    assert lab.left() == []


def test_what_is_mounted_within_a_mount_is_unmounted_first(lab: Lab) -> None:
    hook = (
        'nested() { fs_mount tmpfs outer "$3" && fs_mount tmpfs inner "$3/inner"; }\n'
        "ap_register mount nested\n"
    )
    lab.run("fs-setup.sh", "tmpfs", APLIB=lab.hooks("nested", hook))
    assert len(lab.mounts()) == 2
    lab.run("fs-setup.sh", "tmpfs")
    lab.run("fs-cleanup.sh", "tmpfs")
    assert lab.left() == []


def test_a_new_file_system_is_a_hook_and_no_change_of_a_script(lab: Lab) -> None:
    hook = (
        'ram_medium() { [[ $1 == ram ]] || return "$AP_DECLINED"; echo none; }\n'
        'ram_mount() { [[ $1 == ram ]] || return "$AP_DECLINED"; fs_mount ramfs ram "$3"; }\n'
        "ap_register medium ram_medium; ap_register mount ram_mount\n"
    )
    aplib = lab.hooks("ram", hook)
    lab.run("fs-setup.sh", "ram", APLIB=aplib)
    assert kind(lab.root) == "ramfs"
    lab.run("fs-cleanup.sh", "ram", APLIB=aplib)
    assert lab.left() == []


@needs_ext4
def test_a_hook_that_fails_is_told_with_what_could_not_be_done(lab: Lab) -> None:
    hook = "no() { return 4; }; ap_register mkfs no\n"
    done = lab.run("fs-setup.sh", "ext4", check=1, APLIB=lab.hooks("no", hook))
    lab.run("fs-cleanup.sh", "ext4")
    assert "no file system ext4" in done.stderr
    assert lab.left() == []
