"""A trace of `etude record` of a load on a directory as operations on named files: which call is which is the table of
docs/howto/file-load.md.

Calls are those that the kernel was asked for, with their arguments and results. What cannot be seen of them:

- Requests, of which one is several calls. A read or write is its pread64 or pwrite64 (one of more than 1 MiB would be
  seen as several; no preset has one), and the openat before it is only looked at where it failed. fdatasync is a commit
  where the workload has commits; where it has none, it makes the write before it, by the same thread, a stable one.
- Which of the two a listing of an empty directory was: it is taken for a readdir.
- The order in which requests were drawn, where several threads make them: a thread may be held up between. It is that
  of the calls with one thread (`--outstanding 1`).
- What goes through io_uring (`--way io_uring`).
- When a request was due; when its call began is known.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from etude.iotrace.reader import Trace
from support.seen import Operation, Seen, collect

AT_FDCWD, AT_REMOVEDIR = -100, 0x200
BY_NAME = {
    "faccessat": "access",
    "faccessat2": "access",
    "readlinkat": "readlink",
    "utimensat": "setattr",
    "mkdirat": "mkdir",
    "symlinkat": "symlink",
    "renameat": "rename",
    "renameat2": "rename",
    "fstatfs": "fsstat",
    "getdents64": "readdir",
    "pread64": "read",
    "pwrite64": "write",
    "ftruncate": "setattr",
    "fdatasync": "commit",
    "fsync": "commit",
}
"""Calls that are one operation each, whatever they are asked for."""
ABOUT_FILES = frozenset({*BY_NAME, "newfstatat", "statx", "openat", "unlinkat"})


class Incomplete(RuntimeError):
    """The trace does not hold all that was done, or no load; why."""


@dataclass(frozen=True)
class Call:
    """One system call. `path` is absolute: of the file that it is about."""

    at_ns: int
    thread: int
    name: str
    path: str
    arguments: tuple[int, ...]
    result: int
    """-errno for an error."""


def read_load(trace: Trace, root: str, sizes: Mapping[str, int], *, commits: bool) -> Seen:
    """The operations of the load on the file set at `root`, an absolute path.

    `sizes`: of the files that were there before, by their paths below it, B; `commits`: whether the workload has any.
    """
    complete(trace)
    return follow(calls_of(trace), root, sizes, commits=commits)


def complete(trace: Trace) -> None:
    """Nothing was dropped, and all reads and writes that the kernel has counted are there."""
    if trace.footer is None or trace.footer["dropped"]:
        raise Incomplete(f"{trace.path}: calls are missing")
    for each in trace.meta:
        if each.get("what") == "counters" and each["kernel"] != each["recorded"]:
            raise Incomplete(f"{trace.path}: {each}")


def calls_of(trace: Trace) -> Iterator[Call]:
    """Its calls on files, in the order in which they began."""
    names = list(trace.names)
    rows = np.flatnonzero(
        np.isin(trace.call, [code for code, name in enumerate(names) if name in ABOUT_FILES])
    )
    rows = rows[np.argsort(trace.start_ns[rows], kind="stable")]
    yield from map(
        Call,
        trace.start_ns[rows].tolist(),
        trace.thread[rows].tolist(),
        [names[code] for code in trace.call[rows].tolist()],
        [trace.files[place] for place in trace.file[rows].tolist()],
        zip(*(column[rows].tolist() for column in trace.arguments), strict=True),
        trace.result[rows].tolist(),
    )


def follow(calls: Iterable[Call], root: str, sizes: Mapping[str, int], *, commits: bool) -> Seen:
    """The same of calls in order. The load begins where the file set's root is opened for the last time by its whole
    path: its names are relative to that descriptor, and what is before puts the file set right."""
    found = list(calls)
    begins = [place for place, call in enumerate(found) if _opens_root(call, root)]
    if not begins:
        raise Incomplete(f"nobody has opened {root}")
    load = _Load(root, found[begins[-1]].result, dict(sizes), commits)
    for call in found[begins[-1] + 1 :]:
        load.see(call)
    return collect(load.operations, load.sizes)


def _opens_root(call: Call, root: str) -> bool:
    from_outside = call.name == "openat" and call.arguments[0] == AT_FDCWD
    return from_outside and call.path == root and call.result >= 0


class _Load:
    """Takes the calls of a load one after the other."""

    def __init__(self, root: str, descriptor: int, sizes: dict[str, int], commits: bool) -> None:
        self.operations: list[Operation] = []
        self.sizes = sizes
        self._root, self._descriptor, self._commits = root, descriptor, commits
        self._written: dict[int, int] = {}
        """The last write of each thread, by its place in `operations`."""
        self._listed: dict[int, tuple[int, int]] = {}
        """The last listing of each thread: its place, and the descriptor."""

    def see(self, call: Call) -> None:
        if call.path != self._root and not call.path.startswith(f"{self._root}/"):
            return
        path = call.path[len(self._root) + 1 :]
        kind = self._kind(call)
        if kind == "commit" and not self._commits and self._makes_stable(call, path):
            return
        if kind is not None:
            self._note(call, kind, path)

    def _kind(self, call: Call) -> str | None:
        """Which operation it is; None of one that is a part of another."""
        of_root = call.arguments[0] == self._descriptor
        if call.name == "newfstatat":
            return "getattr" if of_root else self._entry(call)
        if call.name == "statx":
            # One that asks for no attributes only resolves the name.
            return "lookup" if call.arguments[3] == 0 else "getattr"
        if call.name == "unlinkat":
            return "rmdir" if call.arguments[2] & AT_REMOVEDIR else "remove"
        if call.name == "openat":
            if call.arguments[2] & os.O_CREAT:
                return "create"
            return "open" if call.result < 0 else None
        return BY_NAME[call.name]

    def _entry(self, call: Call) -> str | None:
        """A file of a listing is looked at, which may have gone since: so it was one with attributes."""
        place, descriptor = self._listed.get(call.thread, (-1, -1))
        if descriptor != call.arguments[0]:
            return "getattr"
        self.operations[place] = replace(self.operations[place], kind="readdirplus")
        return None

    def _makes_stable(self, call: Call, path: str) -> bool:
        place = self._written.pop(call.thread, -1)
        if place < 0 or self.operations[place].path != path or call.result < 0:
            return False
        self.operations[place] = replace(self.operations[place], stable=True)
        return True

    def _note(self, call: Call, kind: str, path: str) -> None:
        """An operation, and what it does to the length of its file."""
        before = self.sizes.get(path, -1)
        offset, size = 0, 0
        if kind in ("read", "write"):
            size, offset = call.arguments[2], call.arguments[3]
        elif kind == "readdir":
            self._listed[call.thread] = (len(self.operations), call.arguments[0])
        if call.result >= 0:
            self._change(call, kind, path, before)
        if kind == "write":
            self._written[call.thread] = len(self.operations)
        status = max(-call.result, 0)
        self.operations.append(Operation(call.at_ns, kind, path, offset, size, False, before, status))

    def _change(self, call: Call, kind: str, path: str, before: int) -> None:
        if kind == "write" and before >= 0:
            self.sizes[path] = max(before, call.arguments[3] + call.result)
        elif kind == "create":
            self.sizes[path] = 0
        elif call.name == "ftruncate":
            self.sizes[path] = call.arguments[1]
        elif kind == "remove":
            self.sizes.pop(path, None)
