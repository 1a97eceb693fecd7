"""Volumes, as far as they can be told without disks."""

import re
from pathlib import Path

import pytest

from etude.errors import InputError, MachineRefuses
from etude.machine.resources import ledger, volume
from etude.machine.resources import ledger as ledgers
from etude.machine.resources.ledger import Ledger
from etude.machine.resources.resource import Setting
from etude.machine.resources.volume import Volume, file_system_lacking, md_lacking, reason_in_use


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tools that would be run, in order; no disk is in use."""
    lines: list[str] = []

    def tool(*words: str, **_: object) -> str:
        lines.append(" ".join(words))
        return f"/dev/loop{len(lines)}\n" if words[0] == "losetup" else ""

    monkeypatch.setattr(ledgers, "tool", tool)
    monkeypatch.setattr(ledger, "tool", tool)
    monkeypatch.setattr(volume, "reason_in_use", lambda path: None)
    return lines


def test_disks_are_striped_by_md(said: list[str], ledger: Ledger, tmp_path: Path) -> None:
    disks = Volume(join="md", filesystem="xfs", devices=("/dev/x", "/dev/y", "/dev/z"), mount=tmp_path / "m")
    setting = disks.apply("2", Setting(), ledger)
    array = f"/dev/md/{ledger.name}"
    assert said == [
        f"mdadm --create {array} --run --force --level=0 --raid-devices=2 /dev/x /dev/y",
        f"mkfs.xfs -q -f {array}",
        f"mount {array} {tmp_path / 'm'}",
    ]
    assert setting.values == {"volume": f"{tmp_path / 'm'}", "device": array, "devices": "/dev/x /dev/y"}


def test_an_md_is_stopped_and_its_marks_are_taken_off(said: list[str], tmp_path: Path) -> None:
    array = tmp_path / "md"
    array.touch()
    ledger.stop_md(str(array), ["/dev/x", "/dev/y"])
    assert said == [
        f"mdadm --stop {array}",
        "mdadm --zero-superblock --force /dev/x",
        "mdadm --zero-superblock --force /dev/y",
    ]


def test_a_btrfs_of_one_disk_is_single(said: list[str], ledger: Ledger, tmp_path: Path) -> None:
    Volume(devices=("/dev/x",), mount=tmp_path / "m").apply("1", Setting(), ledger)
    assert said[0] == "mkfs.btrfs -q -f -d single -m single /dev/x"
    assert said[1] == f"mount -o device=/dev/x /dev/x {tmp_path / 'm'}"


def test_disks_are_sparse_files_of_their_size(said: list[str], ledger: Ledger, tmp_path: Path) -> None:
    Volume(directory=tmp_path, size_bytes=1 << 30).apply("3", Setting(), ledger)
    files = sorted(tmp_path.glob("etude-held-*-disk*"))
    assert [file.stat().st_size for file in files] == [1 << 30] * 3
    assert all(file.stat().st_blocks == 0 for file in files)


def test_a_directory_with_something_in_it_is_not_mounted_over(
    said: list[str], ledger: Ledger, tmp_path: Path
) -> None:
    (tmp_path / "kept").touch()
    with pytest.raises(MachineRefuses, match=str(tmp_path)):
        Volume(devices=("/dev/x",), mount=tmp_path).apply("1", Setting(), ledger)


def test_more_disks_than_are_named_are_refused() -> None:
    with pytest.raises(InputError, match="at most 2"):
        Volume(devices=("/dev/x", "/dev/y")).accept("3")
    Volume().accept("3")


def test_what_is_no_disk_is_refused(tmp_path: Path) -> None:
    assert "No such file" in str(reason_in_use(str(tmp_path / "none")))
    assert "/dev/null" in (reason_in_use("/dev/null") or "")


@pytest.mark.skipif(not Path("/dev/loop0").is_block_device(), reason="no block device to ask of")
@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        pytest.param("proc/self/mountinfo", "24 1 7:0 / /d rw - ext4 /dev/loop0 rw\n", "mounted at /d:", id="mounted"),
        pytest.param("proc/swaps", "Filename Type\n/dev/loop0 partition 1 0 -2\n", "is swap", id="swap"),
        pytest.param("sys/dev/block/7:0/holders/dm-0", "", "is part of dm-0", id="held"),
        pytest.param("sys/dev/block/7:0/loop0p1/partition", "1\n", r"has partitions \(loop0p1\)", id="partitions"),
        pytest.param("sys/dev/block/7:0/size", "8\n", "None", id="free"),
    ],
)  # fmt: skip
def test_a_disk_in_use_is_not_erased(tmp_path: Path, path: str, text: str, said: str) -> None:
    write(tmp_path, path, text)
    assert re.search(said, str(reason_in_use("/dev/loop0", tmp_path)))


def test_a_kernel_has_a_file_system_built_in_or_as_a_module(tmp_path: Path) -> None:
    write(tmp_path, "proc/filesystems", "nodev\tproc\n\text4\n")
    write(tmp_path, "proc/sys/kernel/osrelease", "6.1.0\n")
    assert file_system_lacking("ext4", tmp_path) is None
    assert "no btrfs" in str(file_system_lacking("btrfs", tmp_path))
    write(tmp_path, "lib/modules/6.1.0/modules.dep", "kernel/fs/btrfs/btrfs.ko.xz: kernel/lib/raid6.ko.xz\n")
    assert file_system_lacking("btrfs", tmp_path) is None


def test_a_kernel_has_md_running_or_as_a_module(tmp_path: Path) -> None:
    write(tmp_path, "proc/sys/kernel/osrelease", "6.1.0\n")
    assert "no md" in str(md_lacking(tmp_path))
    write(tmp_path, "proc/mdstat", "Personalities :\n")
    assert md_lacking(tmp_path) is None
    (tmp_path / "proc/mdstat").unlink()
    write(
        tmp_path, "lib/modules/6.1.0/modules.dep", "kernel/drivers/md/raid0.ko: kernel/drivers/md/md-mod.ko\n"
    )
    assert md_lacking(tmp_path) is None


def test_a_lacking_tool_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    why = Volume().check() or ""
    assert "mkfs.btrfs" in why
    assert "btrfs-progs" in why


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def test_a_directory_that_is_not_there_is_found_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("etude.machine.resources.volume.first_missing_tool", lambda programs: None)
    monkeypatch.setattr("etude.machine.resources.volume.file_system_lacking", lambda kind, root: None)
    monkeypatch.setattr(Volume, "_tried", lambda self: None)
    none = tmp_path / "none"
    assert str(none) in (Volume(directory=none).check() or "")
    assert str(none) in (Volume(mount=none / "here").check() or "")
    assert Volume(directory=tmp_path, mount=tmp_path / "here").check() is None
