"""Sequential or random, call by call."""

from __future__ import annotations

import pytest

from etude.iotrace.profile import sequential
from support.traces import Make

OPEN = 'openat(AT_FDCWD, "/a", O_RDWR) = 3'
APPENDING = 'openat(AT_FDCWD, "/a", O_WRONLY|O_APPEND) = 3'
READ, WRITE = 'read(3, "x"..., 10) = 10', 'write(3, "x"..., 10) = 10'


def at(offset: int, descriptor: int = 3) -> str:
    return f'pread64({descriptor}, "x"..., 10, {offset}) = 10'


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([OPEN, READ, READ, WRITE], [True, True, True]),
        ([OPEN, at(0), at(10), at(30), at(40)], [True, True, False, True]),
        ([OPEN, at(5)], [False]),
        ([OPEN, READ, "lseek(3, 0, SEEK_SET) = 0", READ, READ], [True, False, True]),
        ([OPEN, READ, "lseek(3, 0, SEEK_CUR) = 10", READ], [True, True]),
        ([OPEN, "lseek(3, 100, SEEK_SET) = 100", READ], [False]),
        ([OPEN, READ, at(50), READ], [True, False, False]),  # a placed read leaves the file's own place
        ([OPEN, READ, "dup(3) = 4", at(10, 4)], [True, True]),
        ([APPENDING, WRITE, "lseek(3, 0, SEEK_SET) = 0", WRITE], [True, True]),
        ([OPEN, 'read(3, "", 10) = 0', READ], [True]),  # what moves nothing is not judged
        ([OPEN, "read(3, 0x7ffe00000000, 10) = -1 EIO (Input/output error)", READ], [True]),
        (
            [OPEN, WRITE, "fcntl(3, F_SETFL, O_RDWR|O_APPEND) = 0", "lseek(3, 0, SEEK_SET) = 0", WRITE, READ],
            [True] * 3,
        ),
        ([OPEN, "pwritev2(3, [], 1, 50, RWF_APPEND) = 10"], [True]),
        ([OPEN, "sendfile(1, 3, NULL, 10) = 10", at(10)], [False]),
        ([OPEN, "sendfile(1, 3, NULL, 10) = 10", READ, at(20)], [False, True]),
        (['sendto(1, "x", 10, 0, NULL, 0) = 10', 'write(1, "x"..., 10) = 10'], [True]),  # a send has no place
        (["socket(AF_UNIX, SOCK_STREAM, 0) = 3", READ], []),
        (["pipe([3, 4]) = 0", READ], []),
        ([OPEN, "close(3) = 0", OPEN, READ], [True]),
        ([OPEN, READ, "close(3) = 0", OPEN, READ], [True, True]),
    ],
)
def test_a_transfer_is_sequential_where_the_one_before_ended(
    make: Make, calls: list[str], expected: list[bool]
) -> None:
    lines = ['execve("/bin/x", ["x"], 0x7ffe00000000 /* 9 vars */) = 0', *calls]
    trace = make("".join(f"1 {1 + n / 1000:.6f} {line} <0.000010>\n" for n, line in enumerate(lines)))
    judged, found = sequential(trace)
    assert found[judged].tolist() == expected
