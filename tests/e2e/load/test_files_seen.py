"""Calls on files are read as the operations of docs/howto/file-load.md."""

from __future__ import annotations

import os

import pytest

from support.files_seen import AT_FDCWD, AT_REMOVEDIR, Call, Incomplete, follow
from support.seen import Operation

pytestmark = pytest.mark.beside
ROOT, DESCRIPTOR = "/disk/etude-load-web-0", 3
ENOSPC = 28


class Made:
    """Calls, one after the other."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def add(
        self, name: str, path: str, *arguments: int, result: int = 0, thread: int = 1, below: str = f"{ROOT}/"
    ) -> Made:
        words = (*arguments, *[0] * (6 - len(arguments)))
        self.calls.append(Call(len(self.calls), thread, name, below + path, words, result))
        return self

    def root(self, descriptor: int = DESCRIPTOR) -> Made:
        return self.add("openat", ROOT, AT_FDCWD, 0, os.O_RDONLY, result=descriptor, below="")

    def seen(self, *, commits: bool = True, **sizes: int) -> list[Operation]:
        seen = follow(self.calls, ROOT, sizes, commits=commits)
        columns = (
            seen.at_ns,
            seen.kind,
            seen.path,
            seen.offset,
            seen.size,
            seen.stable,
            seen.before,
            seen.failed,
        )
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return [
            Operation(at, kind, seen.paths[path], offset, size, stable, before, int(failed))
            for at, kind, path, offset, size, stable, before, failed in rows
        ]


@pytest.mark.parametrize(
    ("name", "arguments", "kind"),
    [
        ("newfstatat", (DESCRIPTOR,), "getattr"),
        ("statx", (DESCRIPTOR, 0, 0x4100, 0), "lookup"),
        ("statx", (DESCRIPTOR, 0, 0x100, 0xFFF), "getattr"),
        ("faccessat", (DESCRIPTOR,), "access"),
        ("readlinkat", (DESCRIPTOR,), "readlink"),
        ("utimensat", (DESCRIPTOR,), "setattr"),
        ("ftruncate", (9, 0), "setattr"),
        ("openat", (DESCRIPTOR, 0, os.O_RDWR | os.O_CREAT | os.O_EXCL), "create"),
        ("unlinkat", (DESCRIPTOR, 0, 0), "remove"),
        ("unlinkat", (DESCRIPTOR, 0, AT_REMOVEDIR), "rmdir"),
        ("mkdirat", (DESCRIPTOR,), "mkdir"),
        ("symlinkat", (DESCRIPTOR,), "symlink"),
        ("renameat", (DESCRIPTOR,), "rename"),
        ("getdents64", (9,), "readdir"),
        ("fdatasync", (9,), "commit"),
    ],
)
def test_a_call_is_an_operation(name: str, arguments: tuple[int, ...], kind: str) -> None:
    made = Made().root().add(name, "d1/f2", *arguments)
    assert made.seen() == [Operation(1, kind, "d1/f2")]


def test_the_space_is_asked_of_the_file_set_itself() -> None:
    made = Made().root().add("fstatfs", ROOT, DESCRIPTOR, below="")
    assert made.seen() == [Operation(1, "fsstat", "")]


def test_what_puts_the_file_set_right_and_what_is_elsewhere_is_left_out() -> None:
    made = Made().root().add("statx", "f1", 4, 0, 0, 0xFFF).root()
    made.add("pread64", "f1", 9, 0, 10, 0).add("pread64", "f1", 9, 0, 10, 0, below=f"{ROOT}-other/")
    # The root's own listing is no beginning.
    made.add("openat", ROOT, DESCRIPTOR, 0, os.O_DIRECTORY, result=8, below="").add(
        "pread64", "f2", 9, 0, 5, 0
    )
    assert [each.path for each in made.seen()] == ["f1", "f2"]
    with pytest.raises(Incomplete):
        Made().add("pread64", "f1", 9, 0, 10, 0).seen()


def test_lengths_of_files_follow_what_is_done_to_them() -> None:
    made = (
        Made()
        .root()
        .add("pwrite64", "f", 9, 0, 100, 50, result=100)
        .add("pread64", "f", 9, 0, 200, 7, result=143)
    )
    made.add("ftruncate", "f", 9, 20).add("pwrite64", "f", 9, 0, 5, 20, result=-ENOSPC)
    made.add("unlinkat", "f", DESCRIPTOR).add("openat", "f", DESCRIPTOR, 0, os.O_CREAT, result=9)
    made.add("pwrite64", "f", 9, 0, 6, 0, result=4).add("pread64", "f", 9, 0, 4, 0).add(
        "pread64", "g", 9, 0, 4, 0
    )
    told = [(each.kind, each.offset, each.size, each.before, each.status) for each in made.seen(f=60)]
    assert told == [
        ("write", 50, 100, 60, 0),
        ("read", 7, 200, 150, 0),
        ("setattr", 0, 0, 150, 0),
        ("write", 20, 5, 20, 1),
        ("remove", 0, 0, 20, 0),
        ("create", 0, 0, -1, 0),
        ("write", 0, 6, 0, 0),
        ("read", 0, 4, 4, 0),
        ("read", 0, 4, -1, 0),
    ]


def test_a_listing_with_attributes_is_told_from_one_without() -> None:
    made = Made().root()
    for thread in (1, 2):
        made.add("openat", "d", DESCRIPTOR, 0, os.O_DIRECTORY, result=7 + thread, thread=thread)
        made.add("getdents64", "d", 7 + thread, thread=thread, result=96)
    for name in ("d/a", "d/b"):
        made.add("newfstatat", name, 9, thread=2)
    assert [each.kind for each in made.seen()] == ["readdir", "readdirplus"]


def test_a_write_is_stable_where_its_own_thread_makes_it_so() -> None:
    made = Made().root()
    for thread, path in ((1, "f"), (2, "g")):
        made.add("pwrite64", path, 9, 0, 5, 0, result=5, thread=thread)
    made.add("fdatasync", "f", 9, thread=1).add("fdatasync", "f", 9, thread=2).add(
        "fdatasync", "f", 9, thread=1
    )
    told = [(each.kind, each.path, each.stable) for each in made.seen(commits=False)]
    assert told == [
        ("write", "f", True),
        ("write", "g", False),
        ("commit", "f", False),
        ("commit", "f", False),
    ]
    assert [each.kind for each in made.seen()] == ["write", "write", "commit", "commit", "commit"]
    assert not any(each.stable for each in made.seen())


def test_a_file_that_cannot_be_opened_is_a_failure() -> None:
    made = Made().root().add("openat", "f", DESCRIPTOR, 0, os.O_RDWR, result=-2)
    made.add("openat", "g", DESCRIPTOR, 0, os.O_RDWR, result=9)
    assert made.seen() == [Operation(1, "open", "f", status=1)]


def test_names_below_the_descriptor_of_the_load_are_operations() -> None:
    made = Made().root(7).root().add("newfstatat", "f", DESCRIPTOR).add("getdents64", "d", 8, result=24)
    made.add("newfstatat", "d/g", 7).add("getdents64", "e", 7, result=24).add("newfstatat", "e/g", 7)
    assert [each.kind for each in made.seen()] == ["getattr", "readdir", "getattr", "readdirplus"]


def test_what_failed_and_what_lies_within_changes_no_length() -> None:
    made = Made().root().add("unlinkat", "f", DESCRIPTOR, result=-2).add("ftruncate", "f", 9, 5, result=-5)
    made.add("pwrite64", "f", 9, 0, 10, 0, result=10).add("pread64", "f", 9, 0, 10, 0, result=10)
    assert [each.before for each in made.seen(f=60)] == [60, 60, 60, 60]
