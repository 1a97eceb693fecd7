"""The line of /proc/PID/stat: of any name, of threads, of processes that are gone."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from etude.osutil.processes import Stat, parse_stat, read_stat


def test_this_process_is_read() -> None:
    found = read_stat(os.getpid())
    assert found is not None
    assert (found.pid, found.parent, found.ended) == (os.getpid(), os.getppid(), False)
    thread = read_stat(os.getpid(), threading.get_native_id())
    assert thread is not None
    assert thread.began == found.began


def test_a_name_need_be_no_text(tmp_path: Path) -> None:
    """Its CPU time was not counted in a trial of a server with such a name."""
    program = os.fsencode(tmp_path) + b"/\xff) R 1"
    os.symlink("/bin/sleep", program)
    with subprocess.Popen([program, "60"]) as running:
        found = read_stat(running.pid)
        running.kill()
    assert found is not None
    assert (found.name, found.parent) == ("\ufffd) R 1", os.getpid())


def test_one_that_ended_and_is_not_waited_for_has_ended() -> None:
    with subprocess.Popen(["true"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        found = read_stat(child.pid)
    assert found is not None
    assert found.ended
    assert read_stat(child.pid) is None


numbers = st.integers(0, 2**63)


@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=16),
    st.sampled_from("RSDTZXI"),
    *[numbers] * 6,
)
def test_a_line_is_read_back(
    name: str, state: str, parent: int, flags: int, user: int, system: int, threads: int, began: int
) -> None:
    before, after = f"1 1 0 -1 {flags} 100 0 0 0", f"{user} {system} 77 88 20 0 {threads}"
    line = f"7 ({name}) {state} {parent} {before} {after} 0 {began} 4096 1 0 0\n"
    expected = Stat(7, name, state, parent, flags, user, system, 165, threads, began)
    assert parse_stat(line.encode()) == expected


@given(st.binary(max_size=60) | st.text("()1 2-S\n").map(str.encode))
@example(b"x " * 30)
@example(b"\xb2 " * 30)
def test_nothing_that_a_file_may_hold_makes_it_raise(text: bytes) -> None:
    parse_stat(text)
    parse_stat(b"1 (" + text + b") " + text)
