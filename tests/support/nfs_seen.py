"""A tape of nfs_proxy.py as operations on named files.

A handle is known by the answer that brought it (LOOKUP, CREATE, MKDIR, SYMLINK, READDIRPLUS): a name in a directory,
whose handle was brought by another. One that nothing brought is where the client began, and is called "".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from support.nfs_proxy import BROKEN, CALLS, tape_records
from support.nfs_wire import Call, Garbage, Record, Reply, call, reply
from support.seen import Operation, Seen, collect

IN_PARENT = frozenset({"lookup", "create", "mkdir", "symlink", "mknod", "remove", "rmdir", "rename", "link"})
"""Procedures that are asked for a name in a directory, which is what they are about."""


@dataclass(frozen=True)
class Tape:
    """What was on a tape: operations, and what could not be read."""

    seen: Seen
    garbage: tuple[str, ...]
    unanswered: int


def read_tape(path: Path, sizes: Mapping[str, int] | None = None) -> Tape:
    """The operations of NFSv3 on a tape, with their outcomes; `sizes`: of files that were there, by their paths,
    B."""
    return follow(tape_records(path), sizes or {})


def follow(records: Iterable[tuple[int, int, Record]], sizes: Mapping[str, int]) -> Tape:
    """The same of records: which way, which connection, and what."""
    names, files = Names(), Files(sizes)
    asked: dict[tuple[int, int], tuple[int, Call] | None] = {}
    operations: list[Operation] = []
    garbage: list[str] = []
    for way, connection, record in records:
        if way == BROKEN:
            garbage.append(f"connection {connection}: {record.head.decode('utf-8', 'replace')}")
            continue
        key = (connection, int.from_bytes(record.head[:4]))
        try:
            if way == CALLS:
                one = call(record)
                # Of another program: its answer is to be passed over, and not to be taken for one to an earlier call.
                asked[key] = None if one is None else (len(operations), one)
                if one is not None:
                    operations.append(files.asked(one, names.path_of(one)))
                continue
            due = asked.pop(key, None)
            if due is not None:
                place, one = due
                answer = reply(record, one.procedure)
                names.learn(one, answer)
                operations[place] = replace(
                    files.answered(operations[place], one, answer, names), status=answer.status
                )
        except Garbage as error:
            garbage.append(f"connection {connection}, message {key[1]:#x}: {error}")
    unanswered = sum(each.status is None for each in operations)
    return Tape(collect(operations, files.sizes), tuple(garbage), unanswered)


class Names:
    """Which path a handle stands for, as far as answers have told."""

    def __init__(self) -> None:
        self._of: dict[bytes, str] = {}

    def path_of(self, one: Call) -> str:
        """What a call is about."""
        here = self._of.get(one.handle, "")
        return self.below(here, one.name) if one.procedure in IN_PARENT else here

    @staticmethod
    def below(directory: str, name: bytes) -> str:
        """A name in a directory. A byte that is no text stays what it is."""
        text = name.decode("utf-8", "surrogateescape")
        return f"{directory}/{text}" if directory else text

    def handle(self, handle: bytes) -> str:
        """Its path."""
        return self._of.get(handle, "")

    def learn(self, one: Call, answer: Reply) -> None:
        """What an answer tells of handles."""
        if answer.status:
            return
        if answer.handle and one.name not in (b".", b".."):
            self._of[answer.handle] = self.path_of(one)
        here = self._of.get(one.handle, "")
        for entry in answer.entries:
            if entry.handle and entry.name not in (b".", b".."):
                self._of[entry.handle] = self.below(here, entry.name)


class Files:
    """How long files are: by what is known at first, by what is written to them, and by what answers say."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes = dict(sizes)

    def asked(self, one: Call, path: str) -> Operation:
        """A call, before its answer. Of several that are under way the sizes follow the order of their calls."""
        before = self.sizes.get(path, -1)
        if one.procedure == "write" and before >= 0:
            self.sizes[path] = max(before, one.offset + one.count)
        elif one.procedure in ("create", "setattr") and one.size is not None:
            self.sizes[path] = one.size
        elif one.procedure == "create":
            self.sizes.setdefault(path, 0)
        elif one.procedure == "remove":
            self.sizes.pop(path, None)
        stable = one.procedure == "write" and one.stable > 0
        return Operation(one.at_ns, one.procedure, path, one.offset, one.count, stable, before, None)

    def answered(self, operation: Operation, one: Call, answer: Reply, names: Names) -> Operation:
        """What is known with the answer: sizes of files of which none was known, and the path of what was unnamed."""
        path = operation.path or names.path_of(one)
        if answer.size is not None and path and answer.status == 0 and one.procedure != "remove":
            self.sizes.setdefault(path, answer.size)
        here = names.handle(one.handle)
        for entry in answer.entries:
            if entry.size is not None:
                self.sizes.setdefault(names.below(here, entry.name), entry.size)
        return replace(operation, path=path)
