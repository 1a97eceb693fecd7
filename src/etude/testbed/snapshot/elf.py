"""What an ELF file says of itself: its build id, and the loader that starts it."""

from __future__ import annotations

import os
import struct
from typing import NamedTuple

NOTE, INTERPRETER = 4, 3
MOST_HEADERS = 128
LONGEST_NOTE = 4096
GNU_BUILD_ID = 3


class Elf(NamedTuple):
    """Of a file that is one."""

    build_id: str | None
    """The linker's digest of the content, hexadecimal."""
    loader: str | None
    """The program that maps it and its libraries; None where it is static."""


def read_elf(file: int) -> Elf | None:
    """What the open file says; None where it is no ELF file, or a damaged one.

    Source: System V ABI, chapters 4 and 5; elf(5).
    """
    try:
        return _read(file)
    except (OSError, struct.error, OverflowError, ValueError):
        return None


def _read(file: int) -> Elf | None:
    head = os.pread(file, 64, 0)
    if head[:4] != b"\x7fELF" or head[4:5] not in (b"\x01", b"\x02") or head[5:6] not in (b"\x01", b"\x02"):
        return None
    order = "<" if head[5] == 1 else ">"
    wide = head[4] == 2
    (start,) = struct.unpack_from(order + ("Q" if wide else "I"), head, 32 if wide else 28)
    size, count = struct.unpack_from(order + "HH", head, 54 if wide else 42)
    table = os.pread(file, size * min(count, MOST_HEADERS), start)
    build_id = loader = None
    for place in range(0, len(table) - (55 if wide else 31), size or len(table) + 1):
        (kind,) = struct.unpack_from(order + "I", table, place)
        offset, length = (
            (
                struct.unpack_from(order + "Q", table, place + 8)[0],
                struct.unpack_from(order + "Q", table, place + 32)[0],
            )
            if wide
            else (
                struct.unpack_from(order + "I", table, place + 4)[0],
                struct.unpack_from(order + "I", table, place + 16)[0],
            )
        )
        if kind == NOTE and build_id is None:
            build_id = _build_id(os.pread(file, min(length, LONGEST_NOTE), offset), order)
        elif kind == INTERPRETER:
            found = os.pread(file, min(length, LONGEST_NOTE), offset)
            loader = found.partition(b"\0")[0].decode("utf-8", "replace") or None
    return Elf(build_id, loader)


def _build_id(notes: bytes, order: str) -> str | None:
    place = 0
    while place + 12 <= len(notes):
        name_length, length, kind = struct.unpack_from(order + "III", notes, place)
        name_end = place + 12 + (name_length + 3) // 4 * 4
        if kind == GNU_BUILD_ID and notes[place + 12 : place + 16] == b"GNU\0":
            return notes[name_end : name_end + min(length, 64)].hex() or None
        place = name_end + (length + 3) // 4 * 4
    return None
