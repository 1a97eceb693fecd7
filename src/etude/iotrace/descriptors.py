"""Open descriptors of each process over time, from the calls that open, copy and close them."""

from __future__ import annotations

import posixpath
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from etude.iotrace.calls import CWD
from etude.iotrace.reader import Trace, Whole

STANDARD = ("(standard input)", "(standard output)", "(standard error)")
CLOEXEC = 0o2000000
APPEND = 0o2000
_DUPFD, _SETFD, _DUPFD_CLOEXEC = 0, 2, 1030
_RANGE_CLOEXEC = 4
CLOSED = 0
"""The opening behind a descriptor of which nothing is known, or not any more."""
_SET, _LOOK, _UNSET = 0, 1, 2

_OPENS = ("open", "openat", "openat2", "creat")
_DUPS = ("dup", "dup2", "dup3")
_PAIRS = ("pipe", "pipe2", "socketpair")
_OTHERS = ("socket", "accept", "accept4", "memfd_create", "eventfd2", "io_uring_setup")
CHANGES = (*_OPENS, *_DUPS, *_PAIRS, *_OTHERS, "close", "close_range", "fcntl", "chdir", "fchdir")
"""Calls that change what stands behind descriptors, or where relative paths begin."""
_STREAMS = {"socket": "(socket)", "accept": "(socket)", "accept4": "(socket)", "eventfd2": "(event)"}
_KINDS = {"pipe": "(pipe)", "socket": "(socket)", "anon_inode": "(event)"}
"""Names in /proc of descriptors that are no files."""
_CLOEXEC_AT = {
    "open": 1,
    "openat": 2,
    "dup3": 2,
    "socket": 1,
    "accept4": 3,
    "eventfd2": 1,
    "pipe2": 1,
    "socketpair": 1,
}


@dataclass
class Table:
    """The descriptors of one process: numbers of openings."""

    openings: dict[int, int] = field(default_factory=dict)
    closed_at_exec: set[int] = field(default_factory=set)

    def copy(self) -> Table:
        """The table of a forked process."""
        return Table(dict(self.openings), set(self.closed_at_exec))


@dataclass
class Opened:
    """All that was opened, numbered; 0 stands for what is not known."""

    names: list[str] = field(default_factory=lambda: [""])
    """Names of files, each once."""
    files: list[int] = field(default_factory=lambda: [0])
    """Place of its name, by opening."""
    streams: list[bool] = field(default_factory=lambda: [False])
    """True, by opening, if it has no offset: a pipe, a socket."""
    appends: list[bool] = field(default_factory=lambda: [False])
    """True, by opening, if each write appends."""
    _places: dict[str, int] = field(default_factory=dict)

    def name(self, name: str) -> int:
        """The place of a name."""
        place = self._places.setdefault(name, len(self.names))
        if place == len(self.names):
            self.names.append(name)
        return place

    def add(self, name: str, *, stream: bool = False, appends: bool = False) -> int:
        """A new opening of this file."""
        self.files.append(self.name(name))
        self.streams.append(stream)
        self.appends.append(appends)
        return len(self.files) - 1

    def path(self, directory: int, path: str) -> str:
        """A path that begins at an opened directory, without `.` and doubled slashes. Links are not followed."""
        if not path.startswith("/"):
            path = posixpath.join(self.names[self.files[directory]], path)
        return path if path[:1] == "(" else posixpath.normpath(path)


@dataclass(frozen=True)
class History:
    """Every change of what stands behind a descriptor, and who was in which process."""

    opened: Opened
    keys: Whole
    times: Whole
    kinds: NDArray[np.int8]
    openings: Whole

    def at(self, processes: Whole, descriptors: Whole, times: Whole) -> Whole:
        """The opening behind each descriptor at a time, shape (calls,); CLOSED where nothing is known."""
        keys = np.concatenate((self.keys, key_of(processes, descriptors)))
        kinds = np.concatenate((self.kinds, np.full(times.size, _LOOK, np.int8)))
        every = np.concatenate((self.times, times))
        order = np.lexsort((kinds, every, keys))
        changes = np.where(order < self.keys.size, np.arange(order.size), 0)
        last = np.maximum.accumulate(changes)
        looks = np.flatnonzero(order >= self.keys.size)
        found = order[last[looks]]
        known = (found < self.keys.size) & (keys[found] == keys[order[looks]])
        openings = np.full(times.size, CLOSED, np.int64)
        values = np.zeros(looks.size, np.int64)
        values[known] = self.openings[found[known]]
        openings[order[looks] - self.keys.size] = values
        return openings


def key_of(processes: Whole, descriptors: Whole) -> Whole:
    """One number of a process and a descriptor."""
    key: Whole = (processes << 32) + (descriptors & 0xFFFFFFFF)
    return key


def history_of(trace: Trace, processes: Whole) -> History:
    """Follow all descriptors through the trace. `processes`: that of each call."""
    walk = _Walk(trace)
    walk.run(processes)
    columns = zip(*walk.changes, strict=True) if walk.changes else ((),) * 5
    numbers, descriptors, times, kinds, openings = columns
    return History(
        walk.opened,
        key_of(np.array(numbers, np.int64), np.array(descriptors, np.int64)),
        np.array(times, np.int64),
        np.array(kinds, np.int8),
        np.array(openings, np.int64),
    )


class _Walk:
    """Goes through the changes in order of time."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.opened = Opened()
        self.tables: dict[int, Table] = {}
        self.changes: list[tuple[int, int, int, int, int]] = []
        self.texts: dict[int, str] = {}

    def run(self, processes: Whole) -> None:
        coming = deque(_lives(self.trace, processes))
        for time, process, name, result, arguments, text in self._calls(processes):
            while coming and coming[0][0] <= time:
                self._life(*coming.popleft())
            self._call(time, process, name, result, arguments, text)
        while coming:
            self._life(*coming.popleft())

    def _calls(self, processes: Whole) -> Iterator[tuple[int, int, str, int, tuple[int, ...], int]]:
        """Calls that changed something, when they did: a descriptor is free from the beginning of its close on."""
        trace = self.trace
        codes = {name: code for code, name in enumerate(trace.names)}
        wanted = np.zeros(len(trace.names), bool)
        wanted[[codes[name] for name in CHANGES if name in codes]] = True
        rows = np.flatnonzero(wanted[trace.call] & (trace.result >= 0))
        calls = trace.call[rows]
        closes = np.isin(calls, [codes.get("close", 0), codes.get("close_range", 0)])
        times = trace.start_ns[rows] + np.where(closes, 0, trace.duration_ns[rows])
        order = np.lexsort((trace.start_ns[rows], times))
        rows, calls, times = rows[order], calls[order], times[order]
        words = (column[rows].tolist() for column in trace.arguments[:4])
        names = trace.names
        yield from zip(
            times.tolist(),
            processes[rows].tolist(),
            [names[code] for code in calls.tolist()],
            trace.result[rows].tolist(),
            zip(*words, strict=True),
            trace.texts[0][rows].tolist(),
            strict=True,
        )

    def _life(self, time: int, life: Mapping[str, Any]) -> None:
        """A process begins, becomes another program, or begins to be recorded with descriptors that it had."""
        process = life["process"]
        if life["what"] == "descriptors":
            for each in life["open"]:
                path, flags = each["path"], each["flags"]
                stream = not path.startswith("/") and _KINDS.get(path.split(":")[0])
                opening = self.opened.add(stream or path, stream=bool(stream), appends=bool(flags & APPEND))
                self._set(time, process, each["descriptor"], opening, closed=bool(flags & CLOEXEC))
            return
        if life["what"] == "exec":
            table = self._table(process)
            for descriptor in list(table.closed_at_exec):
                self._unset(time, process, descriptor)
            return
        parent = life["parent"]
        if parent in self.tables:
            table = self.tables[process] = self.tables[parent].copy()
        else:
            table = self.tables[process] = Table(
                {n: self.opened.add(name) for n, name in enumerate(STANDARD)}
            )
            table.openings[CWD] = self.opened.add(str(life["cwd"]) or ".")
        for descriptor, opening in table.openings.items():
            self._note(time, process, descriptor, _SET, opening)

    def _call(
        self, time: int, process: int, name: str, result: int, words: tuple[int, ...], text: int
    ) -> None:
        if name == "close":
            self._unset(time, process, words[0])
        elif name in _OPENS:
            self._open(time, process, name, result, words, text)
        elif name == "fcntl":
            if words[1] in (_DUPFD, _DUPFD_CLOEXEC):
                self._copy(time, process, words[0], result, closed=words[1] == _DUPFD_CLOEXEC)
            elif words[1] == _SETFD:
                self._mark(process, words[0], closed=bool(words[2] & 1))
        elif name in _DUPS:
            if words[0] != result:
                self._copy(time, process, words[0], result, closed=name == "dup3" and _closes(name, words))
        elif name in ("chdir", "fchdir"):
            self._change_directory(time, process, name, words[0], text)
        elif name == "close_range":
            self._close_range(time, process, words)
        else:
            self._stream(time, process, name, result, words, text)

    def _open(
        self, time: int, process: int, name: str, result: int, words: tuple[int, ...], text: int
    ) -> None:
        table = self._table(process)
        directory = table.openings.get(words[0] if name.startswith("openat") else CWD, CLOSED)
        path = self.opened.path(directory, self._text(text)) if text else f"(descriptor {result})"
        flags = words[_CLOEXEC_AT[name]] if name in _CLOEXEC_AT else 0
        opening = self.opened.add(path, appends=bool(flags & APPEND))
        self._set(time, process, result, opening, closed=bool(flags & CLOEXEC))

    def _stream(
        self, time: int, process: int, name: str, result: int, words: tuple[int, ...], text: int
    ) -> None:
        closed = _closes(name, words)
        if name in _PAIRS:
            pair = np.frombuffer(self.trace.text(text)[:8], np.int32).tolist() if text else []
            what = "(pipe)" if name != "socketpair" else "(socket)"
            for descriptor in pair:
                self._set(time, process, descriptor, self.opened.add(what, stream=True), closed=closed)
        elif name == "memfd_create":
            opening = self.opened.add(f"(memory {self._text(text)})")
            self._set(time, process, result, opening, closed=bool(words[1] & 1))
        else:
            opening = self.opened.add(_STREAMS.get(name, "(io_uring)"), stream=True)
            self._set(time, process, result, opening, closed=closed)

    def _change_directory(self, time: int, process: int, name: str, descriptor: int, text: int) -> None:
        table = self._table(process)
        if name == "fchdir":
            opening = table.openings.get(descriptor, CLOSED)
        else:
            opening = self.opened.add(self.opened.path(table.openings.get(CWD, CLOSED), self._text(text)))
        self._set(time, process, CWD, opening)

    def _close_range(self, time: int, process: int, words: tuple[int, ...]) -> None:
        for descriptor in [d for d in self._table(process).openings if words[0] <= d <= words[1]]:
            if words[2] & _RANGE_CLOEXEC:
                self._mark(process, descriptor, closed=True)
            else:
                self._unset(time, process, descriptor)

    def _copy(self, time: int, process: int, old: int, new: int, *, closed: bool) -> None:
        self._set(time, process, new, self._table(process).openings.get(old, CLOSED), closed=closed)

    def _set(self, time: int, process: int, descriptor: int, opening: int, *, closed: bool = False) -> None:
        self._table(process).openings[descriptor] = opening
        self._mark(process, descriptor, closed=closed)
        self._note(time, process, descriptor, _SET, opening)

    def _unset(self, time: int, process: int, descriptor: int) -> None:
        table = self._table(process)
        table.closed_at_exec.discard(descriptor)
        if table.openings.pop(descriptor, None) is not None:
            self._note(time, process, descriptor, _UNSET, CLOSED)

    def _mark(self, process: int, descriptor: int, *, closed: bool) -> None:
        marked = self._table(process).closed_at_exec
        (marked.add if closed else marked.discard)(descriptor)

    def _note(self, time: int, process: int, descriptor: int, kind: int, opening: int) -> None:
        self.changes.append((process, descriptor, time, kind, opening))

    def _table(self, process: int) -> Table:
        return self.tables.setdefault(process, Table())

    def _text(self, code: int) -> str:
        found = self.texts.get(code)
        if found is None:
            found = self.texts[code] = self.trace.text(code).decode("utf-8", "backslashreplace")
        return found


def _lives(trace: Trace, processes: Whole) -> list[tuple[int, Mapping[str, Any]]]:
    """Beginnings and execs, in order. A process begins before its first call, though its parent be told of it later."""
    numbers, places = np.unique(processes, return_inverse=True)
    earliest = np.full(numbers.size, np.iinfo(np.int64).max)
    np.minimum.at(earliest, places, trace.start_ns)
    firsts = dict(zip(numbers.tolist(), earliest.tolist(), strict=True))
    found = []
    for each in trace.meta:
        if each.get("what") in ("exec", "descriptors"):
            found.append((int(each["at_ns"]), each))
        elif each.get("what") == "process":
            begins = int(each["at_ns"])
            found.append((min(firsts.get(each["process"], begins), begins), each))
    return sorted(found, key=lambda life: life[0])


def _closes(name: str, words: Iterable[int]) -> bool:
    """True if the flags of a call have an exec close its descriptor."""
    at = _CLOEXEC_AT.get(name)
    return at is not None and bool(tuple(words)[at] & CLOEXEC)
