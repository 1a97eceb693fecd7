"""Whether a trace of peers/soak.c holds each call once, whole and in order; read as a stream, in bounded memory."""

from __future__ import annotations

import itertools
import json
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from soaks.rules import HANDLER, JUMPER, LINKED, MORTAL, WHOLE, Calls, Numbers, Rules, known_texts

TOGETHER = 1 << 18
"""Calls that are in memory at a time."""
EARLIER = 8
"""Calls of a lane that are kept from one part to the next: later ones take up their results."""
AHEAD, FAR = 64, 1 << 13
"""How many calls are looked through for one that does not name its number; then how many."""
SHOWN = 20


@dataclass
class Found:
    """What was found: faults are `lost` (where they were not dropped), `torn`, `doubled` and `strange`."""

    events: int = 0
    checked: int = 0
    others: int = 0
    """Calls of the C library and of ld.so: of these only the kernel's counts tell."""
    lost: int = 0
    torn: int = 0
    doubled: int = 0
    jumped: int = 0
    """Calls that a handler left by a jump, and that are not there: each jump may lose one."""
    unfinished: int = 0
    """Calls of killed threads that had not returned to the program, and are there."""
    strange: int = 0
    """Lanes that are in another thread than they were."""
    back_ns: int = 0
    """The farthest that a call of a lane begins before the one before it has ended."""
    back: int = 0
    lost_by_thread: dict[int, int] = field(default_factory=dict)
    examples: list[str] = field(default_factory=list)

    def tell(self, what: str) -> None:
        if len(self.examples) < SHOWN:
            self.examples.append(what)


class Columns:
    """The columns of a trace (docs/reference/trace-format.md), in a file that is mapped and read part by part."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            magic, at, length = struct.unpack("<8s8xQQ", file.read(32))
            if magic != b"etudeevc":
                raise ValueError(f"{path}: no columns of a trace")
            file.seek(at)
            self.index = json.loads(file.read(length))
        self.events, self.places = self.index["events"], self.index["columns"]
        self.path = path
        known = known_texts()
        ends = self.column("texts_at", self.index["texts"] + 1)
        texts = self.column("texts", int(ends[-1])).tobytes()
        lengths = [known.get(texts[int(a) : int(b)], 0) for a, b in itertools.pairwise(ends)]
        self.lengths = np.asarray([0, *(each or -2 for each in lengths)])
        """Of the paths of soak.c, by their codes; -2 for all other texts."""

    def column(self, name: str, many: int, first: int = 0) -> NDArray[Any]:
        [place] = [each for each in self.places if each["name"] == name]
        kind = np.dtype(place["kind"])
        return np.fromfile(self.path, kind, many, offset=place["at"] + first * kind.itemsize)

    def parts(self) -> Iterator[tuple[NDArray[Any], Calls, Numbers, Numbers]]:
        for first in range(0, self.events, TOGETHER):
            many = min(TOGETHER, self.events - first)
            get = lambda name, many=many, first=first: self.column(name, many, first)  # noqa: E731
            arguments = np.stack([get(f"argument{place}") for place in range(4)])
            texts = np.stack([self.lengths[get("text0")], self.lengths[get("text1")]])
            start, calls = get("start_ns"), Calls(get("call"), arguments, get("result"), texts)
            yield get("thread"), calls, start, start + get("duration_ns")


def columns_of(engine: Path, trace: Path, place: Path) -> Columns:
    with place.open("wb") as out:
        subprocess.run([engine, "trace", "columns", trace], stdout=out, check=True)
    return Columns(place)


class Check:
    """Follows each lane through the trace."""

    def __init__(self, columns: Columns, lanes: NDArray[Any], *, gaps: bool) -> None:
        """`gaps`: calls may be missing (`--full drop`)."""
        self.columns, self.lanes, self.gaps = columns, lanes, gaps
        self.rules = Rules(columns.index["calls"])
        self.next = np.zeros(len(lanes), np.int64)
        self.ended = np.zeros(len(lanes), np.int64)
        threads, processes = (
            [each for each in columns.index["meta"] if each["what"] == what] for what in ("thread", "process")
        )
        self.tids = {each["thread"]: each["tid"] for each in threads}
        pids = {each["process"]: each["pid"] for each in processes}
        self.threads = {(pids[each["process"]], each["tid"]): each["thread"] for each in threads}
        self.main: dict[int, int] = {}
        self.thread_of: dict[int, int] = {}
        self.before: dict[int, Calls] = {}
        self.found = Found()

    def run(self) -> Found:
        """All of the trace, then what is missing at the end of each lane."""
        for threads, calls, start, end in self.columns.parts():
            cuts = np.flatnonzero(np.diff(threads)) + 1
            for low, high in zip([0, *cuts], [*cuts, len(threads)], strict=True):
                self._thread(int(threads[low]), calls[low:high], start[low:high], end[low:high])
            self.found.events += len(threads)
        self._ends()
        return self.found

    def _thread(self, thread: int, calls: Calls, start: Numbers, end: Numbers) -> None:
        if (foreign := np.isin(calls.call, self.rules.foreign)).any():
            self.found.others += int(foreign.sum())
            calls, start, end = calls[~foreign], start[~foreign], end[~foreign]
        lane, n = self.rules.tagged(calls.call, calls.arguments)
        if int(lane.max(initial=0)) >= len(self.lanes):
            wild = lane >= len(self.lanes)
            self._torn(int(wild.sum()), f"thread {thread}: a lane that was never given out")
            lane = np.where(wild, 0, lane)
        in_handler = (lane > 0) & ((self.lanes["flags"][lane] & HANDLER) > 0)
        for each in np.unique(lane[in_handler]):
            which = np.flatnonzero(lane == each)
            self._lane(thread, int(each), calls[which], n[which], start[which], end[which])
        rest = np.flatnonzero(~in_handler)
        named = np.flatnonzero(lane[rest])
        if thread not in self.main:
            if not len(named):
                self.found.others += len(rest)
                return
            self.main[thread] = int(lane[rest[named[0]]])
            self.found.others += int(named[0])
            rest = rest[named[0] :]
        main = self.main[thread]
        wrong = (lane[rest] > 0) & (lane[rest] != main)
        if wrong.any():
            self._torn(int(wrong.sum()), f"thread {thread}: calls of another lane than {main}")
            rest = rest[~wrong]
        # What comes when the lane is at its end is the C library's.
        last = np.flatnonzero(lane[rest] > 0)
        limit = int(self.lanes["begun"][main])
        if int(self.next[main]) + len(rest) > limit:
            stop = limit - int(self.next[main])
            if len(last) and (last[-1] >= stop or n[rest[last[-1]]] != self.next[main] + last[-1]):
                stop = self._own(main, calls[rest], n[rest], last)
            self.found.others += len(rest) - stop
            rest = rest[:stop]
        if len(rest):
            numbers = np.where(lane[rest] > 0, n[rest], -1)
            self._lane(thread, main, calls[rest], numbers, start[rest], end[rest])

    def _own(self, main: int, calls: Calls, n: Numbers, named: Numbers) -> int:
        """How many of these calls, of which some are missing, are the lane's: those behind are the C library's."""
        stop = int(named[-1]) + 1 if len(named) else 0
        number = int(n[named[-1]]) + 1 if len(named) else int(self.next[main])
        limit = int(self.lanes["begun"][main])
        while stop < len(calls.call):
            found = self._later(main, calls[stop : stop + 1], number, limit)
            if found < 0:
                break
            stop, number = stop + 1, found + 1
        return stop

    def _later(self, main: int, one: Calls, number: int, limit: int) -> int:
        """The first number from `number` on, soon, that may be this call; -1 for none."""
        some = np.arange(number, min(limit, number + 64))
        if not len(some):
            return -1
        same = _repeated(one, len(some)).as_expected(self.rules.expected(self.lanes[main], main, some))
        return int(some[np.argmax(same)]) if same.any() else -1

    def _lane(self, thread: int, lane: int, calls: Calls, n: Numbers, start: Numbers, end: Numbers) -> None:
        """Calls of one lane: `n` is -1 where they do not name it."""
        known = self.thread_of.setdefault(lane, thread)
        if known != thread or self.tids.get(thread) != self.lanes["tid"][lane]:
            self.found.strange += 1
            self.found.tell(f"lane {lane} is in thread {thread}, and was {self.lanes['tid'][lane]}")
        self._times(lane, start, end)
        first = int(self.next[lane])
        numbers = np.arange(first, first + len(n))
        good = self._good(lane, calls, numbers)
        if not good.all():
            numbers = self._numbered(lane, calls, n)
            self._gaps(thread, lane, first, numbers)
            good = self._good(lane, calls, numbers)
            self.before.pop(lane, None)
        elif int(self.lanes["flags"][lane]) & WHOLE:
            self._linked(lane, numbers, calls)
        if not good.all():
            at = int(np.flatnonzero(~good)[0])
            what = f"lane {lane} call {numbers[at]}: {self.columns.index['calls'][calls.call[at]]}"
            self._torn(int((~good).sum()), f"{what} {calls.arguments[:, at]} = {calls.result[at]}")
        self.next[lane] = max(first, int(numbers.max()) + 1)
        self.found.checked += len(n)

    def _good(self, lane: int, calls: Calls, numbers: Numbers) -> NDArray[np.bool_]:
        """Which of these calls are as those of these numbers have to be."""
        expected = self.rules.expected(self.lanes[lane], lane, np.maximum(numbers, 0))
        good = calls.as_expected(expected) & (numbers >= 0)
        if int(self.lanes["flags"][lane]) & MORTAL:
            # That which did not return to the program any more: of this one the recorder does not read the texts.
            good |= (numbers == int(self.lanes["done"][lane])) & (calls.call == expected.call)
        return good

    def _numbered(self, lane: int, calls: Calls, n: Numbers) -> Numbers:
        """Which call each is, where some are missing: those that name it do; of others what fits before the next."""
        limit, low = int(self.lanes["begun"][lane]), int(self.next[lane])
        numbers = np.where(n < limit, n, -1)
        high = min(max(int(numbers.max(initial=0)) + 1, low) + 2 * FAR + len(n), limit)
        rules = self.rules.expected(self.lanes[lane], lane, np.arange(low, max(high, low)))
        named = np.flatnonzero(numbers >= 0).tolist()
        for before, at in reversed(list(itertools.pairwise([-1, *named]))):
            least, after = int(numbers[before]) + 1 if before >= 0 else low, int(numbers[at])
            for back in range(at - 1, before, -1):
                found = _fits(calls, back, rules, low, max(least, after - AHEAD), after)[-1:]
                if not found:
                    break
                numbers[back] = after = found[0]
        after = low
        for at in range(len(n)):
            if numbers[at] < 0:
                near = _fits(calls, at, rules, low, after, after + AHEAD)
                twice = near or _fits(calls, at, rules, low, after - 1, after)
                numbers[at] = (twice or _fits(calls, at, rules, low, after, after + FAR) or [-1])[0]
            after = max(int(numbers[at]) + 1, after)
        if int(self.lanes["flags"][lane]) & MORTAL and numbers[-1] < 0:
            numbers[-1] = self.lanes["done"][lane]
        return numbers

    def _gaps(self, thread: int, lane: int, first: int, numbers: Numbers) -> None:
        known = numbers[numbers >= 0]
        doubled = int((np.diff(known, prepend=first - 1) < 1).sum())
        lost = max(int(known.max(initial=0)) + 1 - first, 0) - len(np.unique(known[known >= first]))
        if doubled:
            self.found.doubled += doubled
            self.found.tell(f"lane {lane} in thread {thread}: {doubled} calls twice, or out of order")
        self._lost(thread, lane, lost, f"from {first} on")

    def _lost(self, thread: int, lane: int, many: int, where: str) -> None:
        if not many:
            return
        if int(self.lanes["flags"][lane]) & JUMPER:
            self.found.jumped += many
            return
        self.found.lost += many
        self.found.lost_by_thread[thread] = self.found.lost_by_thread.get(thread, 0) + many
        if not self.gaps:
            self.found.tell(f"lane {lane} in thread {thread}: {many} calls lost, {where}")

    def _torn(self, many: int, what: str) -> None:
        self.found.torn += many
        self.found.tell(what)

    def _times(self, lane: int, start: Numbers, end: Numbers) -> None:
        back = np.concatenate([[self.ended[lane]], end[:-1]]) - start
        self.found.back += int((back > 0).sum())
        self.found.back_ns = max(self.found.back_ns, int(back.max(initial=0)))
        self.ended[lane] = end[-1]

    def _linked(self, lane: int, numbers: Numbers, calls: Calls) -> None:
        """Descriptors and addresses: what a call gave is what a later one takes."""
        if (before := self.before.get(lane)) is not None:
            many = len(before.call)
            numbers = np.concatenate([numbers[0] - many + np.arange(many), numbers])
            result = np.concatenate([before.result, calls.result])
            first = np.concatenate([before.arguments[0], calls.arguments[0]])
        else:
            many, result, first = 0, calls.result, calls.arguments[0]
        for form, back in LINKED.items():
            at = np.flatnonzero(numbers % 32 == form)
            at = at[(at >= back) & (at >= many)]
            if bad := int((first[at] != result[at - back]).sum()):
                self._torn(bad, f"lane {lane}: {bad} calls of form {form} with another's result")
        if before is not None and len(calls.call) < EARLIER:
            calls = _joined(before, calls)
        self.before[lane] = calls[-min(EARLIER, len(calls.call)) :]
        if int(self.next[lane]) + len(calls.call) >= int(self.lanes["done"][lane]):
            self.before.pop(lane, None)

    def _ends(self) -> None:
        for lane in range(1, len(self.lanes)):
            row, come = self.lanes[lane], int(self.next[lane])
            killed = int(row["flags"]) & MORTAL
            made = int(row["done"]) if killed else int(row["begun"])
            if come < made:
                # A lane of which every call was dropped was in no thread of the trace.
                thread = self.thread_of.get(lane, self.threads.get((int(row["pid"]), int(row["tid"])), -1))
                self._lost(thread, lane, made - come, f"at the end ({come} of {made})")
            elif come > made and killed and come <= int(row["begun"]):
                self.found.unfinished += 1
            elif come > made:
                self._torn(come - made, f"lane {lane}: {come} calls of {made}")


def _fits(calls: Calls, at: int, rules: Calls, base: int, low: int, high: int) -> list[int]:
    """The numbers, of some, that may be a call's. The rules begin with that of `base`."""
    low = max(low, base)
    some = rules[low - base : max(high - base, 0)]
    same = np.flatnonzero(_repeated(calls[at : at + 1], len(some.call)).as_expected(some))
    return [low + int(each) for each in same]


def _repeated(one: Calls, many: int) -> Calls:
    return one[np.zeros(many, np.int64)]


def _joined(a: Calls, b: Calls) -> Calls:
    return Calls(
        np.concatenate([a.call, b.call]),
        np.concatenate([a.arguments, b.arguments], axis=1),
        np.concatenate([a.result, b.result]),
        np.concatenate([a.texts, b.texts], axis=1),
    )
