"""What a boot loader offers, and whether what runs is what it was to boot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from etude.errors import MachineRefuses
from etude.machine.boot.entries import Entry, booted_as, entries, find, of_bootctl, of_grub, release_of

MENU = """\
menuentry 'Debian' --id simple { linux /boot/vmlinuz-6.1.0-40-amd64 root=/dev/vda1 ro quiet; initrd /boot/i; }
submenu 'More > of it' --id more {
  menuentry 'A' --id a { linux /vmlinuz-6.1.0-40-amd64 root=/dev/vda1 ro; }
  menuentry 'B' --id b { linux /vmlinuz-6.12.1 root=/dev/vda1 ro "x=a b"; }
  menuentry 'B' --id c { linux /kernel $defaults; }
  menuentry 'D' --id d { linux /kernel root=/dev/vda1 ro; }
}
"""
BOOTCTL = [
    {
        "id": "debian-6.1.conf",
        "title": "Debian",
        "showTitle": "Debian (6.1.0-40)",
        "version": "6.1.0-40-amd64",
        "linux": "/d/6.1/linux",
        "initrd": ["/d/6.1/initrd"],
        "options": "root=/dev/vda1 ro",
    },
    {"id": "auto-reboot-to-firmware-setup", "title": "Reboot Into Firmware Interface"},
]


def machine(root: Path, line: str, release: str = "6.1.0-40-amd64") -> Path:
    for name, text in {
        "proc/cmdline": line,
        "proc/sys/kernel/osrelease": release,
        "boot/grub/grub.cfg": MENU,
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text + "\n")
    return root


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("Debian", "simple"),
        ("simple", "simple"),
        ("A", "more>a"),
        ("a", "more>a"),
        ("more>a", "more>a"),
        ("More >> of it>A", "more>a"),
        ("b", "more>b"),
    ],
)
def test_an_entry_goes_by_its_title_its_id_and_the_path_to_it(tmp_path: Path, name: str, key: str) -> None:
    assert find(name, entries(machine(tmp_path, ""))).key == key


def test_an_entry_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(MachineRefuses, match=r"'C'.*'Debian', 'A', 'B', 'B', 'D'"):
        find("C", of_grub(MENU))


def test_a_name_that_several_entries_have_is_refused_with_their_ids() -> None:
    with pytest.raises(MachineRefuses, match=r"'B'.*\b2\b.*'more>b', 'more>c'"):
        find("B", of_grub(MENU))


def test_where_no_loader_is_known_a_hook_is_advised(tmp_path: Path) -> None:
    assert entries(tmp_path) == []
    with pytest.raises(MachineRefuses, match="ETUDE_RESTART"):
        find("A", [])


@pytest.mark.parametrize(
    ("entry", "line", "release", "answer"),
    [
        ("A", "BOOT_IMAGE=/vmlinuz-6.1.0-40-amd64 root=/dev/vda1 ro", "6.1.0-40-amd64", True),
        ("A", "root=/dev/vda1 ro", "6.12.1", False),
        ("A", "root=/dev/vda1 ro quiet", "6.1.0-40-amd64", False),
        ("Debian", "root=/dev/vda1 ro quiet", "6.1.0-40-amd64", True),
        ("b", 'root=/dev/vda1 ro "x=a b"', "6.12.1", True),
        ("c", "root=/dev/vda1 ro", "6.1.0-40-amd64", None),
        ("d", "root=/dev/vda1 ro", "6.1.0-40-amd64", None),
        ("d", "root=/dev/vda1 rw", "6.1.0-40-amd64", False),
        ("nosuch", "root=/dev/vda1 ro", "6.1.0-40-amd64", None),
    ],
)
def test_what_runs_is_compared_with_what_an_entry_boots(
    tmp_path: Path, entry: str, line: str, release: str, answer: bool | None
) -> None:
    found, words = booted_as(entry, machine(tmp_path, line, release))
    assert found is answer, words
    assert words


def test_the_release_is_read_from_the_kernel_s_name() -> None:
    assert release_of("/boot/vmlinuz-6.1.0-40-amd64") == "6.1.0-40-amd64"
    assert release_of("/EFI/x/vmlinuz-6.9.efi") == "6.9"
    assert release_of("/boot/bzImage") is None
    assert release_of(None) is None


def test_entries_of_systemd_boot_are_those_that_bootctl_lists() -> None:
    first, second = of_bootctl(json.dumps(BOOTCTL))
    assert first == Entry(
        "systemd-boot",
        "debian-6.1.conf",
        ("Debian (6.1.0-40)", "Debian", "debian-6.1.conf", "debian-6.1"),
        "/d/6.1/linux",
        "root=/dev/vda1 ro",
        ("/d/6.1/initrd",),
        "6.1.0-40-amd64",
    )
    assert (second.kernel, second.options, second.release) == (None, None, None)


@pytest.mark.parametrize("said", ["", "{}x", "[1]", "[{}]", "7"])
def test_an_answer_of_bootctl_that_is_none_is_one_line(said: str) -> None:
    with pytest.raises(MachineRefuses, match="bootctl list"):
        of_bootctl(said)


def test_systemd_boot_is_known_by_what_it_tells_the_kernel(tmp_path: Path) -> None:
    machine(tmp_path, "")
    told = tmp_path / "sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
    told.parent.mkdir(parents=True)
    told.write_bytes(b"\6\0\0\0" + "systemd-boot 252".encode("utf-16-le"))
    asked: list[tuple[str, ...]] = []

    def ask(*words: str) -> str:
        asked.append(words)
        return json.dumps(BOOTCTL)

    assert [each.loader for each in entries(tmp_path, ask)] == ["systemd-boot"] * 2
    assert asked == [("bootctl", "list", "--json=short")]
