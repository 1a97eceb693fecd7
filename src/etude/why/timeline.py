"""The timeline of one run: samples, blocks and wake-ups of each of its threads, as `perf script` prints them.

Source: perf-script(1) of Linux 6.1, with --show-switch-events and --show-task-events.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from etude.why.causes import UNKNOWN, Frame

Stack = tuple[Frame, ...]
_HEAD = re.compile(
    r"^\s*(?P<process>.*?)\s+(?P<pid>-?\d+)/(?P<tid>-?\d+)\s+(?P<seconds>\d+)\.(?P<rest>\d{1,9}):\s+(?P<event>\S.*?)\s*$"
)
_FRAME = re.compile(r"^\s+(?P<address>[0-9a-f]+) (?P<symbol>.*?) \((?P<place>.*)\)$")
_FORK = re.compile(r"^PERF_RECORD_FORK\((\d+):(\d+)\):\((\d+):(\d+)\)")
_EXEC = re.compile(r"^PERF_RECORD_COMM exec: (.*):\d+/\d+$")
_SUFFIX = re.compile(r"(?:@+GLIBC[\w.]*)?(?:\+0x[0-9a-f]+)?$")
_MAP = re.compile(r"/tmp/perf-\d+\.map$")
"""Code that was made at run time, with the names in a file of the process if it wrote one; it has one place in all."""
_STATE = re.compile(r"prev_state=(\S+)")
_WOKEN = re.compile(r" pid=(\d+) ")
_INTERRUPT = re.compile(
    r"^(?:asm_)?(?:sysvec_|common_interrupt)|^handle_softirqs$|^__do_softirq$|^__irq_exit_rcu$|^el1h_64_irq"
)
"""Functions of the kernel by which the thread that was on the CPU is interrupted: it has not woken anybody itself."""
MOST_FRAMES = 256
UNNAMED = "[unnamed]"


@dataclass(frozen=True)
class Sample:
    """A moment at which a thread was on a CPU."""

    at_ns: int
    process: str
    stack: Stack


@dataclass
class Off:
    """A time without a CPU."""

    from_ns: int
    to_ns: int | None = None
    """None: until the end."""
    preempted: bool = True
    """True if it could have gone on."""
    stack: Stack = ()
    waker: int | None = None
    """Thread of this run that woke it; None: something else, such as a device or a timer."""
    woken_ns: int | None = None


@dataclass
class Thread:
    """One thread of the run."""

    tid: int
    process: str
    parent: int | None = None
    """Thread that created it; None: the first one."""
    pid: int = 0
    """Process to which it belongs."""
    begin_ns: int = 0
    end_ns: int = 0
    samples: list[Sample] = field(default_factory=list)
    offs: list[Off] = field(default_factory=list)
    names: list[tuple[int, str]] = field(default_factory=list)
    """Names of its process, each with the time from which on it has it."""

    def name_at(self, at_ns: int) -> str:
        """Name of its process at a time."""
        return next((name for since, name in reversed(self.names) if since <= at_ns), self.process)


@dataclass
class Timeline:
    """All threads of one run by thread id."""

    threads: dict[int, Thread] = field(default_factory=dict)
    root: int | None = None
    """The first thread: that of the command."""
    lost: int = 0
    """Number of events that were lost."""


def timeline_of(lines: Iterable[str]) -> Timeline:
    """The timeline of what `perf script` printed. Lines that are of no known form are lost events."""
    found = Timeline()
    for event in _events(found, lines):
        _take(found, event)
    for thread in found.threads.values():
        if thread.offs and thread.offs[-1].to_ns is None:
            thread.offs[-1].to_ns = max(thread.end_ns, thread.offs[-1].from_ns)
    return found


@dataclass
class _Event:
    process: str
    pid: int
    tid: int
    at_ns: int
    text: str
    stack: list[Frame]


def _events(found: Timeline, lines: Iterable[str]) -> Iterator[_Event]:
    event: _Event | None = None
    for line in lines:
        if not line.strip():
            continue
        if event is not None and (frame := _FRAME.match(line)):
            if len(event.stack) < MOST_FRAMES:
                symbol = frame["symbol"].strip() or UNKNOWN
                event.stack.append(Frame(_SUFFIX.sub("", symbol), _MAP.sub("perf.map", frame["place"])))
        elif head := _HEAD.match(line):
            if event is not None:
                yield event
            at_ns = int(head["seconds"]) * 10**9 + int(head["rest"].ljust(9, "0"))
            event = _Event(
                head["process"] or UNNAMED, int(head["pid"]), int(head["tid"]), at_ns, head["event"], []
            )
        else:  # a name with a line break in it, or cut off
            found.lost += 1
    if event is not None:
        yield event


def _take(found: Timeline, event: _Event) -> None:
    text = event.text
    if text.startswith("PERF_RECORD_LOST"):
        found.lost += 1
        return
    if event.tid <= 0:
        return
    if text.startswith("PERF_RECORD_COMM") and found.root is None and not _EXEC.match(text):
        return
    thread = found.threads.get(event.tid)
    if thread is None:
        thread = found.threads[event.tid] = Thread(
            event.tid, event.process, None, event.pid, event.at_ns, event.at_ns
        )
        found.root = event.tid if found.root is None else found.root
    thread.end_ns = max(thread.end_ns, event.at_ns)
    if fork := _FORK.match(text):
        child = int(fork[2])
        found.threads[child] = Thread(
            child, event.process, int(fork[4]), int(fork[1]), event.at_ns, event.at_ns
        )
    elif execd := _EXEC.match(text):
        thread.names.append((event.at_ns, execd[1]))
    elif text.startswith("PERF_RECORD_SWITCH OUT"):
        _off(thread, event.at_ns, preempted="preempt" in text)
    elif text.startswith("PERF_RECORD_SWITCH IN"):
        if thread.offs and thread.offs[-1].to_ns is None:
            thread.offs[-1].to_ns = event.at_ns
    elif text.startswith("sched:sched_switch"):
        state = _STATE.search(text)
        _off(
            thread,
            event.at_ns,
            preempted=state is not None and state[1].startswith("R"),
            stack=tuple(event.stack),
        )
    elif text.startswith(("sched:sched_wakeup", "sched:sched_waking")):
        if (woken := _WOKEN.search(text)) and (sleeper := found.threads.get(int(woken[1]))):
            _wake(sleeper, event)
    elif not text.startswith("PERF_RECORD"):
        thread.samples.append(Sample(event.at_ns, thread.name_at(event.at_ns), tuple(event.stack)))


def _off(thread: Thread, at_ns: int, *, preempted: bool, stack: Stack = ()) -> None:
    """The begin of a time without a CPU; the tracepoint and perf's own record both tell it."""
    if not thread.offs or thread.offs[-1].to_ns is not None:
        thread.offs.append(Off(at_ns, None, preempted, stack))
    elif stack:
        thread.offs[-1].stack = stack
        thread.offs[-1].preempted = preempted


def _wake(sleeper: Thread, event: _Event) -> None:
    if sleeper.offs and sleeper.offs[-1].to_ns is None and sleeper.offs[-1].woken_ns is None:
        by_interrupt = any(map(_INTERRUPT.match, (frame.symbol for frame in event.stack)))
        sleeper.offs[-1].waker = None if by_interrupt else event.tid
        sleeper.offs[-1].woken_ns = event.at_ns
