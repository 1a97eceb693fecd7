"""What the kernel itself saw of a run: a program of bpftrace at its tracepoints, and what it printed, by thread.

The calls of a thread are numbered in the kernel, and its end says how many there were: that none is lost is proved of
each run, and does not rest on bpftrace's word.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from signal import SIGBUS, SIGKILL, SIGSEGV, SIGSTOP, SIGTRAP

import orjson

from support.places import ROOT

TABLE = ROOT / "engine" / "trace" / "calls" / "src" / "table.rs"
STRING = 200
"""The most bytes that bpftrace 0.17 keeps of a text, its final zero byte among them."""
PAGES = 16384
"""Of the buffer of each CPU: 64 MiB. bpftrace's own choice is 64."""
LAUNCHERS_MASK = ~sum(1 << (number - 1) for number in (SIGTRAP, SIGSEGV, SIGBUS, SIGKILL, SIGSTOP)) % (
    1 << 64
)
"""The signals that a thread blocks while it makes calls for the launcher (ALL_SIGNALS in borrow.rs): all but those that
the processor raises, and those that cannot be blocked. Programs that block all do not leave those out."""
WITHIN_S = 20.0
PAIRS = ("pipe", "pipe2", "socketpair")


@dataclass(frozen=True)
class Row:
    """A call of the recorder's table: its name, and what its arguments are, as the table's own words."""

    name: str
    kinds: Sequence[str]


def table() -> Mapping[int, Row]:
    """By number on x86-64."""
    rows = re.findall(r'^ {4}row\("(\w+)", Some\((\d+)\), [^&]*&\[(.*?)\],', TABLE.read_text(), re.MULTILINE)
    return {int(number): Row(name, kinds.split(", ") if kinds else []) for name, number, kinds in rows}


@dataclass(frozen=True)
class Seen:
    """A call as the kernel saw it."""

    number: int
    result: int
    arguments: Sequence[int]
    """The registers."""
    texts: Mapping[int, bytes]
    """By argument; cut off at STRING bytes."""
    pair: bytes
    """Of those that answer with two descriptors: what stood there after the call."""
    by_launcher: bool


Program = list[Seen]
"""The calls of a thread from one exec to the next, or to its end."""


def script() -> str:
    """The program for bpftrace; its parameter is a process whose children, and all that they start, are watched."""

    def numbers(wanted: Iterator[int]) -> str:
        return " || ".join(f"$id == {number}" for number in wanted)

    rows = table()
    texts = []
    for argument in range(4):
        kind = [n for n, row in rows.items() if row.kinds[argument : argument + 1] in (["Path"], ["Name"])]
        texts.append(
            f"if ({numbers(iter(kind))}) "
            f'{{ printf("T %d %llu {argument} %s", tid, @n[tid], str(uptr(@a[tid].{argument + 1}))); }}'
        )
    for argument in (0, 3):
        kind = [n for n, row in rows.items() if row.kinds[argument : argument + 1] == ["Pair"]]
        texts.append(
            f"if ({numbers(iter(kind))}) "
            f'{{ printf("D %d %llu %llx", tid, @n[tid], *(uint64*)uptr(@a[tid].{argument + 1})); }}'
        )
    arguments = ", ".join(f"args->args[{n}]" for n in range(6))
    kept = ", ".join(f"@a[tid].{n}" for n in range(8))
    return f"""
tracepoint:sched:sched_process_fork /@watched[tid] || pid == $1/ {{ @watched[args->child_pid] = 1; }}
tracepoint:sched:sched_process_exec /@watched[args->old_pid]/ {{
    @watched[tid] = 1;
    printf("X %d %llu", tid, @n[tid]);
}}
tracepoint:raw_syscalls:sys_enter /@watched[tid]/ {{
    @a[tid] = (1, {arguments}, curtask->blocked.sig[0]);
}}
tracepoint:raw_syscalls:sys_exit /@watched[tid] && @a[tid].0/ {{
    $id = args->id;
    @n[tid] += 1;
    {" ".join(texts)}
    printf("C %d %llu %ld %ld {" ".join(["%llx"] * 7)}", tid, @n[tid], $id, args->ret, {kept[11:]});
    delete(@a[tid]);
}}
tracepoint:sched:sched_process_exit /@watched[tid]/ {{
    printf("E %d %llu", tid, @n[tid]);
    delete(@watched[tid]); delete(@n[tid]); delete(@a[tid]);
}}
END {{ clear(@watched); clear(@n); clear(@a); }}
"""


class Kernel:
    """A bpftrace that watches the children of this process."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.read = 0
        self.lost = 0
        self.calls: dict[int, dict[int, Seen]] = defaultdict(dict)
        self.texts: dict[tuple[int, int], dict[int, bytes]] = defaultdict(dict)
        self.pairs: dict[tuple[int, int], bytes] = {}
        self.execs: dict[int, list[int]] = defaultdict(list)
        self.ends: dict[int, int] = {}

    def programs(self, tids: set[int]) -> Mapping[int, Sequence[Program]]:
        """Of these threads, which have ended, what each did between its execs.

        Raises:
            AssertionError: calls of them are missing.
        """
        deadline = time.monotonic() + WITHIN_S
        while not all(self.whole(tid) for tid in tids):
            assert time.monotonic() < deadline, (
                f"bpftrace lost calls: {self.missing(tids)}; it says {self.lost}"
            )
            time.sleep(0.05)
            self.catch_up()
        return {tid: self.split(tid) for tid in tids}

    def whole(self, tid: int) -> bool:
        return tid in self.ends and len(self.calls[tid]) == self.ends[tid]

    def missing(self, tids: set[int]) -> str:
        return ", ".join(
            f"{len(self.calls[tid])} of {self.ends.get(tid, 'an unknown number')} of thread {tid} are there"
            for tid in tids
            if not self.whole(tid)
        )

    def split(self, tid: int) -> Sequence[Program]:
        calls = [self.calls[tid][number] for number in range(1, self.ends[tid] + 1)]
        at = [0, *self.execs[tid], len(calls)]
        return [calls[begin:end] for begin, end in pairwise(at)]

    def catch_up(self) -> None:
        """Read what was printed since. Texts stand before the call that they are of."""
        with self.out.open("rb") as file:
            file.seek(self.read)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self.read += len(line)
                if b'"lost_events"' in line:
                    self.lost += orjson.loads(line)["data"]["events"]
                elif line.startswith(b'{"type": "printf", "data": "'):
                    # orjson takes no bytes that are not UTF-8; file names may have them.
                    self.line(orjson.loads(line.decode("latin-1").encode())["data"].encode("latin-1"))

    def line(self, line: bytes) -> None:
        kind, word, rest = line.split(b" ", 2)
        tid = int(word)
        if kind == b"T":
            place, argument, text = rest.split(b" ", 2)
            self.texts[tid, int(place)][int(argument)] = text
        elif kind == b"D":
            place, pair = rest.split()
            self.pairs[tid, int(place)] = int(pair, 16).to_bytes(8, "little")
        elif kind == b"X":
            self.execs[tid].append(int(rest))
        elif kind == b"E":
            self.ends[tid] = int(rest)
        else:
            words = rest.split()
            number = int(words[0])
            *arguments, blocked = (int(word, 16) for word in words[3:])
            self.calls[tid][number] = Seen(
                int(words[1]),
                int(words[2]),
                arguments,
                self.texts.pop((tid, number), {}),
                self.pairs.pop((tid, number), b""),
                blocked == LAUNCHERS_MASK,
            )


@contextmanager
def watching(directory: Path) -> Iterator[Kernel]:
    """From when it sees a child of this process begin and end; files go into a directory."""
    (directory / "watch.bt").write_text(script())
    out = directory / "seen"
    # The memory below is locked; a limit on it would be bpftrace's to complain about.
    variables = {**os.environ, "BPFTRACE_STRLEN": str(STRING), "BPFTRACE_PERF_RB_PAGES": str(PAGES)}
    command = ["bpftrace", "-f", "json", str(directory / "watch.bt"), str(os.getpid())]
    with out.open("wb") as file, (directory / "said").open("wb") as said:
        bpftrace = subprocess.Popen(
            command, stdout=file, stderr=said, stdin=subprocess.DEVNULL, env=variables
        )
    kernel = Kernel(out)
    try:
        deadline = time.monotonic() + WITHIN_S
        while not kernel.ends:  # all probes are there when the calls and the end of one child were seen
            assert bpftrace.poll() is None, (directory / "said").read_text()
            assert time.monotonic() < deadline, (directory / "said").read_text()
            child = subprocess.Popen(["true"])
            child.wait()
            time.sleep(0.2)
            kernel.catch_up()
            if not kernel.whole(child.pid) or not kernel.execs[child.pid]:
                kernel.ends.clear()
        yield kernel
    finally:
        while bpftrace.poll() is None:  # it does not notice a signal that comes while it prints
            bpftrace.terminate()
            time.sleep(0.1)
