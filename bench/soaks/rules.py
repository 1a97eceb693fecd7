"""What the n-th call of each lane of peers/soak.c is: its call, its arguments, its result, its texts."""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]

WHOLE, HANDLER, MORTAL, JUMPER = 1, 2, 4, 8
"""Flags of a lane, as in soak.c."""
LANE = np.dtype("u4,u4,u4,u4,u8,u8,u8,u8,i4,i4,i4,i4")
LANE.names = (
    *("flags", "pid", "tid", "times", "begun", "done", "buffer", "pieces"),
    *("null", "zero", "own", "unused"),
)
OWN = 1 << 16
LONGEST, KEPT = 4200, 1899
"""Bytes of the longest path, and how many of a text the recorder keeps."""
AT_FDCWD = -100
F_DUPFD_CLOEXEC = 1030
ANY = np.iinfo(np.int64).min
"""Of an argument or result that does not follow from the number alone."""
SOME = ANY + 1
"""Of a result: any, but no error."""

NAMES = (
    *("pwrite64", "pread64", "pwritev", "write", "read", "openat", "lseek", "dup", "close", "fcntl"),
    *("rename", "mmap", "munmap", "ftruncate", "truncate", "fallocate", "readlink"),
)
FOREIGN = ("madvise", "mprotect", "brk")
"""Calls that no lane makes: those of the C library, at the end of a thread and elsewhere."""
OFFSET = {
    **dict.fromkeys(("pwrite64", "pread64", "pwritev"), 3),
    **dict.fromkeys(("ftruncate", "truncate"), 1),
    "fallocate": 2,
}
"""Which argument of a call holds lane and number."""


def read_lanes(path: Path) -> NDArray[Any]:
    """All lanes that were given out; the first is the head."""
    head = np.fromfile(path, LANE, 1)
    return np.fromfile(path, LANE, int(head["begun"][0]) + 1)


def lengths(x: Numbers) -> Numbers:
    """Of the x-th path."""
    return np.where(x % 4 != 0, 1 + x * 37 % 120, 1 + x // 4 * 1543 % LONGEST)


LETTERS = bytes(ord("/") if k % 97 == 0 else ord("a") + (k * k + 3 * k) % 26 for k in range(LONGEST, 0, -1))
"""The longest path; all others are ends of it."""


def text_of(length: int) -> bytes:
    """What is kept of the path of this length."""
    return LETTERS[LONGEST - length :][:KEPT]


def known_texts() -> dict[bytes, int]:
    """The length of each path, by what is kept of it; 0 for one that is none of them."""
    return {text_of(length): length for length in range(LONGEST, 0, -1)} | {b"/dev/null": -1}


@dataclass(frozen=True)
class Calls:
    """Some calls, as expected or as recorded; arrays of shape (calls,), `arguments` (4, calls), `texts` (2, calls)."""

    call: NDArray[Any]
    arguments: Numbers
    result: Numbers
    texts: Numbers
    """Lengths of paths; 0 for none."""

    def __getitem__(self, which: Any) -> Calls:
        return Calls(self.call[which], self.arguments[:, which], self.result[which], self.texts[:, which])

    def as_expected(self, expected: Calls) -> NDArray[np.bool_]:
        same = self.call == expected.call
        same &= ((self.arguments == expected.arguments) | (expected.arguments == ANY)).all(axis=0)
        same &= (self.texts == expected.texts).all(axis=0)
        errors = (self.result < 0) & (self.result >= -4095)
        some = (expected.result == SOME) & ~errors
        return same & ((self.result == expected.result) | some | (expected.result == ANY))


class Rules:
    """The two rules of soak.c, for many calls at once."""

    def __init__(self, names: Sequence[str]) -> None:
        self.code = {name: names.index(name) for name in NAMES}
        self.foreign = [names.index(name) for name in FOREIGN]
        self.offset = np.full(len(names), -1)
        for name, argument in OFFSET.items():
            self.offset[self.code[name]] = argument

    def tagged(self, call: NDArray[Any], arguments: Numbers) -> tuple[Numbers, Numbers]:
        """Lane (0 where a call holds none) and number of each call."""
        at = self.offset[call]
        word = np.take_along_axis(arguments, np.maximum(at, 0)[None, :], axis=0)[0]
        word = np.where((at >= 0) & (word > 0), word, 0)
        return word >> 40, (word & ((1 << 40) - 1)) >> 6

    def expected(self, lane: Mapping[str, Any], number: int, n: Numbers) -> Calls:
        """The n-th calls of a lane."""
        rule = self._whole if int(lane["flags"]) & WHOLE else self._signal
        return rule(lane, number << 40, n)

    def _signal(self, lane: Mapping[str, Any], base: int, n: Numbers) -> Calls:
        table = _Table(self.code, n, n % 8)
        null, zero, buffer = int(lane["null"]), int(lane["zero"]), int(lane["buffer"])
        at, size = base + n * 64, 1 + n * 7 % 61
        for form in (0, 2, 4):
            table.put(form, "pwrite64", (null, buffer, size, at), size)
        for form in (1, 3):
            table.put(form, "pread64", (zero, buffer, size, at), size)
        table.put(5, "pwritev", (null, int(lane["pieces"]), 2, at), 16)
        table.put(6, "truncate", (0, at), _nowhere(n // 8), (n // 8,))
        table.put(7, "ftruncate", (-1, at), -errno.EBADF)
        return table.calls

    def _whole(self, lane: Mapping[str, Any], base: int, n: Numbers) -> Calls:
        table = _Table(self.code, n, n % 32)
        null, zero, own, buffer = (int(lane[name]) for name in ("null", "zero", "own", "buffer"))
        at, size, x, within = base + n * 64, 1 + n * 7 % 61, n // 32, n * 64 % OWN
        memory = 4096 * (1 + x % 3)
        for form in (0, 8, 20, 24, 26):
            table.put(form, "pwrite64", (null, buffer, size, at), size)
        for form in (1, 9, 21, 25):
            table.put(form, "pread64", (zero, buffer, size, at), size)
        table.put(2, "pwrite64", (own, buffer, size, within), size)
        table.put(3, "pread64", (own, buffer, size, within), size)
        table.put(4, "write", (null, buffer, size), size)
        table.put(5, "read", (zero, buffer, size), size)
        table.put(6, "openat", (AT_FDCWD, 0, 0), _nowhere(x), (x,))
        table.put(7, "lseek", (own, n * 64, 0), n * 64)
        table.put(10, "openat", (AT_FDCWD, 0, 0o2000002), SOME)
        table.texts[0][n % 32 == 10] = -1
        table.put(11, "dup", (ANY,), SOME)
        table.put(12, "pwritev", (null, int(lane["pieces"]), 2, at), 16)
        for form in (13, 15, 16):
            table.put(form, "close", (ANY,), 0)
        table.put(14, "fcntl", (ANY, F_DUPFD_CLOEXEC, 100), SOME)
        # Which of two errors comes first is the kernel's.
        too_long = np.maximum(lengths(x), lengths(x + 1)) >= 4096
        table.put(17, "rename", (0, 0), np.where(too_long, ANY, -errno.ENOENT), (x, x + 1))
        table.put(18, "mmap", (0, memory, 3, 0x22), SOME)
        table.put(19, "munmap", (ANY, memory), 0)
        table.put(22, "close", (0x20000000 + n % 0x1000000,), -errno.EBADF)
        table.put(23, "openat", (AT_FDCWD, 8, 0), -errno.EFAULT)
        table.put(27, "ftruncate", (-1, at), -errno.EBADF)
        table.put(28, "fallocate", (-1, 0, at, size), -errno.EBADF)
        table.put(29, "truncate", (0, at), _nowhere(x), (x,))
        table.put(30, "readlink", (0, buffer, 64), _nowhere(x + 2), (x + 2,))
        table.put(31, "pread64", (own, buffer, size, at), 0)
        return table.calls


LINKED = {11: 1, 13: 2, 14: 4, 15: 1, 16: 6, 19: 1}
"""Of the first rule: these calls' first argument is the result of the call so many before."""


def _nowhere(x: Numbers) -> Numbers:
    return np.where(lengths(x) >= 4096, -errno.ENAMETOOLONG, -errno.ENOENT)


class _Table:
    def __init__(self, code: Mapping[str, int], n: Numbers, form: Numbers) -> None:
        self.code, self.form = code, form
        self.call = np.zeros(len(n), np.uint16)
        self.arguments = np.zeros((4, len(n)), np.int64)
        self.result = np.zeros(len(n), np.int64)
        self.texts = np.zeros((2, len(n)), np.int64)

    def put(
        self,
        form: int,
        name: str,
        arguments: Sequence[Numbers | int],
        result: Numbers | int,
        paths: Sequence[Numbers] = (),
    ) -> None:
        which = np.flatnonzero(self.form == form)
        if not len(which):
            return
        self.call[which] = self.code[name]
        for row, value in zip(self.arguments, arguments, strict=False):
            row[which] = value if isinstance(value, int) else value[which]
        self.result[which] = result if isinstance(result, int) else result[which]
        for row, x in zip(self.texts, paths, strict=False):
            row[which] = SAME[lengths(x[which])]

    @property
    def calls(self) -> Calls:
        return Calls(self.call, self.arguments, self.result, self.texts)


def _same_lengths() -> Numbers:
    known = known_texts()
    return np.asarray([0, *(known[text_of(each)] for each in range(1, LONGEST + 1))])


SAME = _same_lengths()
"""By the length of a path: the length of that of which the same is kept."""
