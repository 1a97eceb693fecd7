"""The critical path of a run: what its last thread did, back in time, and before that what it had waited for.

The path is walked from the end of the command to its begin. A thread that was woken by another one of the run had
waited for it: the path goes on with the waker. A thread that was created goes on with its creator. So each moment of
the run has one thread, and the causes on the path add up to the run's time.

Source: Yang and Miller, Critical path analysis for the execution of parallel and distributed programs (1988).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from etude.why.causes import UNKNOWN, Cause, Frame, cause_of
from etude.why.timeline import Off, Sample, Stack, Thread, Timeline

_NS = 1e-9
_WAIT = re.compile(r"^(?:wait(?:4|id|pid)?|rt_sigsuspend|rt_sigtimedwait|pause)$")


@dataclass(frozen=True)
class Stretch:
    """A part of the path: one thread, on a CPU or not."""

    tid: int
    from_ns: int
    to_ns: int
    cause: Cause | None
    """None: on a CPU, where samples say what it did."""
    stack: Stack = ()
    """Functions in which it was blocked."""


def path_times(timeline: Timeline) -> dict[tuple[Cause, Stack], float]:
    """Seconds of each cause and stack on the critical path, whose sum is the time of the run; what has no stack has the
    name of its cause in its place.

    Time on a CPU is shared out among the samples of the same process on the path, so that stretches too short for a
    sample have their part.
    """
    found: defaultdict[tuple[Cause, Stack], float] = defaultdict(float)
    on_cpu: defaultdict[str, float] = defaultdict(float)
    sampled: dict[str, Counter[tuple[Cause, Stack]]] = {}
    for stretch in path_of(timeline):
        seconds = (stretch.to_ns - stretch.from_ns) * _NS
        if stretch.cause is not None:
            found[stretch.cause, stretch.stack or _named(stretch.cause)] += seconds
            continue
        thread = timeline.threads[stretch.tid]
        on_cpu[thread.name_at(stretch.from_ns)] += seconds
        for sample in _within(thread.samples, stretch):
            cause = cause_of(sample.process, sample.stack)
            sampled.setdefault(sample.process, Counter())[cause, sample.stack or _named(cause)] += 1
    for process, seconds in on_cpu.items():
        nothing = Cause(process, "function", "not sampled")
        seen = sampled.get(process) or Counter({(nothing, _named(nothing)): 1})
        for key, count in seen.items():
            found[key] += seconds * count / seen.total()
    return dict(found)


def _named(cause: Cause) -> Stack:
    return (Frame(cause.name, ""),)


def path_of(timeline: Timeline) -> list[Stretch]:
    """The stretches of the path in order of time; empty for an empty timeline."""
    if timeline.root is None:
        return []
    return list(reversed(list(_backwards(timeline, timeline.threads[timeline.root]))))


def _backwards(timeline: Timeline, thread: Thread) -> Iterator[Stretch]:
    at_ns = thread.end_ns
    created: set[int] = set()
    places = {tid: len(each.offs) - 1 for tid, each in timeline.threads.items()}
    while True:
        off = _last_off(thread, places, at_ns)
        if off is None:
            yield Stretch(thread.tid, min(thread.begin_ns, at_ns), at_ns, None)
            parent = timeline.threads.get(thread.parent) if thread.parent is not None else None
            if parent is None or thread.tid in created:
                return
            created.add(thread.tid)
            thread, at_ns = parent, min(thread.begin_ns, at_ns)
            continue
        end_ns = min(off.to_ns or at_ns, at_ns)
        if end_ns < at_ns:
            yield Stretch(thread.tid, end_ns, at_ns, None)
        waiting = Cause(thread.name_at(off.from_ns), "waiting for a CPU", "waiting for a CPU")
        if off.preempted:
            yield Stretch(thread.tid, off.from_ns, end_ns, waiting)
            at_ns = off.from_ns
            continue
        woken_ns = min(max(off.woken_ns, off.from_ns), end_ns) if off.woken_ns is not None else end_ns
        if woken_ns < end_ns:
            yield Stretch(thread.tid, woken_ns, end_ns, waiting)
        waker = timeline.threads.get(off.waker) if off.waker is not None else None
        if waker is None and (ended := _ended_child(timeline, thread, off, end_ns)) is not None:
            if ended.end_ns < end_ns:
                yield Stretch(thread.tid, ended.end_ns, end_ns, _blocked(thread, off), off.stack)
            thread, at_ns = ended, ended.end_ns
            continue
        if waker is not None and waker is not thread and waker.begin_ns <= woken_ns:
            thread, at_ns = waker, woken_ns
            continue
        yield Stretch(thread.tid, off.from_ns, woken_ns, _blocked(thread, off), off.stack)
        at_ns = off.from_ns


def _blocked(thread: Thread, off: Off) -> Cause:
    process = thread.name_at(off.from_ns)
    return cause_of(process, off.stack) if off.stack else Cause(process, "call", UNKNOWN)


def _ended_child(timeline: Timeline, thread: Thread, off: Off, until_ns: int) -> Thread | None:
    """The child whose end a thread had waited for, or the thread of its process that it has joined: the kernel tells of
    no wake-up by a thread that ends."""
    call = cause_of("", off.stack).name if off.stack else ""
    joins = call == "futex" and off.woken_ns is None
    if call and not joins and not _WAIT.match(call):
        return None
    ended = [
        each
        for each in timeline.threads.values()
        if (each.pid == thread.pid if joins else each.parent == thread.tid)
        and each.tid != thread.tid
        and off.from_ns < each.end_ns <= until_ns
    ]
    return max(ended, key=lambda each: each.end_ns, default=None)


def _last_off(thread: Thread, places: dict[int, int], at_ns: int) -> Off | None:
    """The last time without a CPU that began before a time. places: where the search goes on, by thread: it only goes
    back."""
    while places[thread.tid] >= 0:
        off = thread.offs[places[thread.tid]]
        places[thread.tid] -= 1
        if off.from_ns < at_ns:
            return off
    return None


def _within(samples: list[Sample], stretch: Stretch) -> list[Sample]:
    first = bisect_left(samples, stretch.from_ns, key=_at)
    return samples[first : bisect_right(samples, stretch.to_ns, lo=first, key=_at)]


def _at(sample: Sample) -> int:
    return sample.at_ns
