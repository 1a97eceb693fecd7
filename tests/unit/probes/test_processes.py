"""All processes at one moment, from /proc."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from etude.osutil.processes import TICKS_PER_S
from etude.probes.accounting import Process, parse_schedstat, read_processes

Lay = Callable[[Mapping[str, str]], Path]


def stat_line(
    pid: int,
    name: str,
    state: str = "S",
    parent: int = 1,
    user: int = 0,
    system: int = 0,
    threads: int = 1,
    began: int = 0,
) -> str:
    middle = "1 1 0 -1 4194560 100 0 0 0"
    times = f"{user} {system} 77 88"
    return f"{pid} ({name}) {state} {parent} {middle} {times} 20 0 {threads} 0 {began} 4096 1 0 0\n"


def test_processes_have_a_name_a_parent_and_the_times_of_their_threads(lay: Lay) -> None:
    root = lay(
        {
            "proc/1/stat": stat_line(1, "init", parent=0, user=3, system=4, began=5),
            "proc/1/schedstat": "70000123 5 6\n",
            "proc/20/stat": stat_line(20, "a (b) c", parent=1, threads=2),
            "proc/20/schedstat": "99 0 0\n",
            "proc/20/task/20/schedstat": "10 0 0\n",
            "proc/20/task/21/schedstat": "11 0 0\n",
            "proc/30/stat": stat_line(30, "dead", "Z", parent=20),
            "proc/40/nothing": "",
            "proc/self/stat": stat_line(1, "init"),
        }
    )
    before = int(time.monotonic() * TICKS_PER_S)
    snapshot = read_processes(root)
    assert snapshot.taken >= before
    assert snapshot.processes == {
        1: Process(1, "init", False, 0, 7, 5, {1: 70000123}),
        20: Process(20, "a (b) c", False, 1, 0, 0, {20: 10, 21: 11}),
        30: Process(30, "dead", True, 20, 0, 0, {30: 0}),
    }


def test_this_process_and_its_child_and_its_thread_are_there() -> None:
    go_on = threading.Event()
    thread = threading.Thread(target=go_on.wait)
    thread.start()
    with subprocess.Popen(["sleep", "60"]) as child:
        try:
            seen = read_processes().processes
        finally:
            child.kill()
            go_on.set()
            thread.join()
    me = seen[os.getpid()]
    assert me.parent == os.getppid()
    assert set(me.threads) >= {os.getpid(), thread.native_id}
    assert me.threads[os.getpid()] > 1_000_000
    assert abs(me.ticks / TICKS_PER_S - sum(os.times()[:2])) < 1
    assert (seen[child.pid].parent, seen[child.pid].zombie) == (me.pid, False)
    assert me.began <= seen[child.pid].began <= time.monotonic() * TICKS_PER_S + 1


def test_a_process_that_is_dead_and_not_waited_for_is_a_zombie() -> None:
    with subprocess.Popen(["true"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert read_processes().processes[child.pid].zombie


@given(st.binary(max_size=60) | st.text("()1 2-S\n").map(str.encode))
@example(b"x " * 30)
@example(b"\xb2 " * 30)
def test_nothing_that_a_file_may_hold_makes_it_raise(text: bytes) -> None:
    assert parse_schedstat(text) >= 0
