"""A disk image that a PC boots: one ext4 partition made from a directory, and GRUB's boot code in front of it.

The boot code is laid down as `grub-install` would lay it on a disk with a DOS partition table: its first sector
beside the table, its core in the gap before the first partition. So no loop device is needed, and no mount.
"""

from __future__ import annotations

import os
import struct
import subprocess
from pathlib import Path

SECTOR = 512
FIRST_SECTOR = 2048
"""Where the partition begins, as fdisk would put it: 1 MiB, the gap in which GRUB's core lies."""

BOOT_CODE_BYTES = 440
"""Of the first sector; then a disk signature and the partition table follow."""

LINUX_PARTITION = 0x83
INODES = 120_000


def make(tree: Path, image: Path, size_bytes: int, uuid: str) -> None:
    """Write `image`, sparse, with `tree` as its only file system, whose UUID is `uuid`.

    Raises:
        subprocess.CalledProcessError: mkfs.ext4 failed.
        ValueError: GRUB's core does not fit before the partition.
    """
    core = (tree / "boot/grub/i386-pc/core.img").read_bytes()
    boot = (tree / "boot/grub/i386-pc/boot.img").read_bytes()
    if len(core) > (FIRST_SECTOR - 1) * SECTOR:
        raise ValueError(f"GRUB's core is {len(core)} bytes: more than the gap before the first partition")
    with image.open("wb") as disk:
        disk.truncate(size_bytes)
    _file_system(tree, image, size_bytes, uuid)
    with image.open("r+b") as disk:
        disk.write(first_sector(boot, size_bytes))
        disk.write(core)


def first_sector(boot: bytes, size_bytes: int) -> bytes:
    """GRUB's first stage with a DOS partition table of one bootable partition."""
    sectors = size_bytes // SECTOR - FIRST_SECTOR
    anywhere = b"\xfe\xff\xff"
    entry = struct.pack("<B3sB3s", 0x80, anywhere, LINUX_PARTITION, anywhere) + struct.pack(
        "<II", FIRST_SECTOR, sectors
    )
    table = entry + bytes(3 * 16)
    return boot[:BOOT_CODE_BYTES] + os.urandom(4) + b"\0\0" + table + b"\x55\xaa"


def _file_system(tree: Path, image: Path, size_bytes: int, uuid: str) -> None:
    offset = FIRST_SECTOR * SECTOR
    # Without lazy_itable_init=0 the kernel writes inode tables in the background of the first boots.
    subprocess.run(
        [
            *("mkfs.ext4", "-q", "-F", "-U", uuid, "-N", str(INODES), "-m", "0", "-d", str(tree)),
            *("-E", f"offset={offset},lazy_itable_init=0,lazy_journal_init=0"),
            *(str(image), f"{(size_bytes - offset) // 1024}k"),
        ],
        check=True,
    )
