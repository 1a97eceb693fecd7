"""Files of calls in the columns of the engine: descriptors through open, dup, fork, exec and close."""

from __future__ import annotations

import pytest

from etude.iotrace.reader import Trace
from support.traces import Make

FORK = (
    "clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD, child_tidptr=0x7f0000000a10) = 2 <0.000200>"
)
EXEC = 'execve("/bin/x", ["x"], 0x7ffe00000000 /* 9 vars */) = 0 <0.000500>'
THREAD = (
    "clone(child_stack=0x7f00, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD|CLONE_SYSVSEM, "
    "parent_tid=[2], tls=0x7f00, child_tidptr=0x7f00) = 2 <0.000200>"
)


def lines(*calls: str) -> str:
    """Each `PID CALL`, a millisecond apart."""
    return "".join(
        f"{c.split(' ', 1)[0]} {1 + n / 1000:.6f} {c.split(' ', 1)[1]}\n" for n, c in enumerate(calls)
    )


def names(trace: Trace) -> list[str]:
    return [trace.files[place] for place in trace.file]


def opened(path: str, descriptor: int, flags: str = "O_RDONLY") -> str:
    return f'1 openat(AT_FDCWD, "{path}", {flags}) = {descriptor} <0.000010>'


def read(descriptor: int, process: int = 1) -> str:
    return f'{process} read({descriptor}, "x"..., 10) = 10 <0.000010>'


BEGIN = f"1 {EXEC}"


def test_a_descriptor_is_what_was_last_opened_as_it(make: Make) -> None:
    close = "1 close(3) = 0 <0.000010>"
    trace = make(lines(BEGIN, opened("/a", 3), read(3), close, opened("/b", 3), read(3), close, read(3)))
    assert names(trace) == ["/a", "/a", "/a", "/b", "/b", "/b", "(descriptor 3)"]


def test_standard_descriptors_and_unknown_ones_are_named_as_such(make: Make) -> None:
    assert names(make(lines(BEGIN, read(0), read(9)))) == ["(standard input)", "(descriptor 9)"]


@pytest.mark.parametrize(
    "copy", ["dup(3) = 5", "dup2(3, 5) = 5", "dup3(3, 5, O_CLOEXEC) = 5", "fcntl(3, F_DUPFD, 5) = 5"]
)
def test_a_copied_descriptor_is_the_same_file_and_opening(make: Make, copy: str) -> None:
    trace = make(lines(BEGIN, opened("/a", 3), f"1 {copy} <0.000010>", "1 close(3) = 0 <0.000010>", read(5)))
    assert names(trace)[-1] == "/a"
    assert trace.opening[-1] == trace.opening[2] != 0


def test_a_child_has_what_its_parent_had_and_then_its_own(make: Make) -> None:
    other = '2 openat(AT_FDCWD, "/b", O_RDONLY) = 3 <0.000010>'
    closed = "2 close(3) = 0 <0.000010>"
    trace = make(lines(BEGIN, opened("/a", 3), f"1 {FORK}", read(3, 2), closed, other, read(3, 2), read(3)))
    by_process = sorted(zip(trace.process.tolist(), names(trace), strict=True))
    assert by_process == [(0, "/a"), (0, "/a"), (1, "/a"), (1, "/a"), (1, "/b"), (1, "/b")]


def test_a_thread_shares_descriptors(make: Make) -> None:
    trace = make(lines(BEGIN, f"1 {THREAD}", opened("/a", 3), read(3, 2)))
    assert set(trace.process.tolist()) == {0}
    assert names(trace) == ["/a", "/a"]


def test_an_exec_closes_what_was_marked_so(make: Make) -> None:
    mark = "1 fcntl(4, F_SETFD, FD_CLOEXEC) = 0 <0.000010>"
    begin = [BEGIN, opened("/a", 3, "O_RDONLY|O_CLOEXEC"), opened("/b", 4), mark, opened("/c", 5)]
    trace = make(lines(*begin, f"1 {EXEC}", read(3), read(4), read(5)))
    assert names(trace)[-3:] == ["(descriptor 3)", "(descriptor 4)", "/c"]


def test_a_range_of_descriptors_is_closed(make: Make) -> None:
    ranged = "1 close_range(4, 5, 0) = 0 <0.000010>"
    trace = make(lines(BEGIN, opened("/a", 3), opened("/b", 4), ranged, read(3), read(4)))
    assert names(trace)[-2:] == ["/a", "(descriptor 4)"]


def test_paths_begin_at_the_directory_of_the_process_or_at_a_descriptor(make: Make) -> None:
    calls = [
        BEGIN,
        '1 chdir("/data") = 0 <0.000010>',
        opened("./a//b", 3),
        opened("/dir", 4, "O_RDONLY|O_DIRECTORY"),
        '1 unlinkat(4, "gone", 0) = 0 <0.000010>',
        '1 newfstatat(4, "", 0x7ffe00000000, AT_EMPTY_PATH) = 0 <0.000010>',
        "1 fchdir(4) = 0 <0.000010>",
        '1 stat("c", 0x7ffe00000000) = 0 <0.000010>',
        '1 symlink("target", "link") = 0 <0.000010>',
    ]
    assert names(make(lines(*calls)))[1:] == [
        "/data/a/b",
        "/dir",
        "/dir/gone",
        "/dir",
        "/dir",
        "/dir/c",
        "/dir/link",
    ]


def test_a_close_that_takes_long_does_not_hide_what_is_opened_meanwhile(make: Make) -> None:
    text = lines(BEGIN, f"1 {THREAD}", opened("/a", 3)) + (
        "1 1.010000 close(3) = 0 <0.005000>\n"
        '2 1.011000 openat(AT_FDCWD, "/b", O_RDONLY) = 3 <0.000010>\n'
        '2 1.020000 read(3, "x"..., 10) = 10 <0.000010>\n'
    )
    trace = make(text)
    found = dict(zip([trace.names[code] for code in trace.call], names(trace), strict=True))
    assert (found["close"], found["read"]) == ("/a", "/b")


def test_what_is_copied_between_descriptors_has_a_source(make: Make) -> None:
    calls = [BEGIN, opened("/a", 3), opened("/b", 4), "1 sendfile(4, 3, NULL, 10) = 10 <0.000010>"]
    trace = make(lines(*calls))
    assert (trace.files[trace.file[-1]], trace.files[trace.source[-1]]) == ("/b", "/a")
