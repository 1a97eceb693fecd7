"""What travels between a client and a server of NFS, read without the help of either: records, calls and replies.

Record marking and messages after RFC 5531 (sections 9 to 11), procedures after RFC 1813 (section 3). Only what a
check of a load needs is kept of a message: who is asked for what, and what the answer says of names, handles and
sizes. Nothing here has been taken from the client that is checked, nor from a library.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

NFS, MOUNT = 100003, 100005
LARGEST = 1 << 24
"""A fragment that says that it is larger is garbage: no server here takes requests of 16 MiB."""
PROCEDURES = (
    "null",
    "getattr",
    "setattr",
    "lookup",
    "access",
    "readlink",
    "read",
    "write",
    "create",
    "mkdir",
    "symlink",
    "mknod",
    "remove",
    "rmdir",
    "rename",
    "link",
    "readdir",
    "readdirplus",
    "fsstat",
    "fsinfo",
    "pathconf",
    "commit",
)
_NAMED = frozenset({"lookup", "create", "mkdir", "symlink", "mknod", "remove", "rmdir", "rename"})
_MAKING = frozenset({"create", "mkdir", "symlink", "mknod"})
_ATTRIBUTES = 84
"""Bytes of fattr3."""
_LAST_FRAGMENT = 1 << 31


class Garbage(ValueError):
    """What cannot be a record or a message of the protocol."""


@dataclass(frozen=True)
class Record:
    """One message: when its first byte came (ns), how long it is, and its beginning."""

    at_ns: int
    length: int
    head: bytes


@dataclass(frozen=True)
class Call:
    """A request of NFSv3. What its procedure has no place for is empty or 0."""

    at_ns: int
    xid: int
    procedure: str
    handle: bytes = b""
    name: bytes = b""
    offset: int = 0
    count: int = 0
    stable: int = 0
    """Of a write: 0 unstable, 1 data, 2 all."""
    size: int | None = None
    """That setattr and create give a file; None where they leave it."""


@dataclass(frozen=True)
class Entry:
    """A name in a directory, with its handle and, if it is a file whose attributes came with it, its size."""

    name: bytes
    handle: bytes
    size: int | None


@dataclass(frozen=True)
class Reply:
    """An answer: its status (0 is well), the object that was found or made, and a directory's entries."""

    at_ns: int
    xid: int
    status: int
    handle: bytes = b""
    size: int | None = None
    """Of a regular file, by the attributes in the answer."""
    count: int = 0
    """Bytes that were read or written."""
    eof: bool = False
    entries: tuple[Entry, ...] = ()


class Records:
    """Cuts a stream of bytes, as they come, into records; of each the first `keep` bytes are kept."""

    def __init__(self, keep: int = 1 << 16) -> None:
        self._keep = keep
        self._mark = b""
        self._left = 0
        self._last = False
        self._inside = False
        self._at_ns = 0
        self._length = 0
        self._head = bytearray()

    def feed(self, data: bytes, at_ns: int) -> list[Record]:
        """The records that end in these bytes.

        Raises:
            Garbage: these are no records; the stream cannot be followed any more.
        """
        found: list[Record] = []
        place, end = 0, len(data)
        while place < end:
            if not self._left:
                place = self._take_mark(data, place, at_ns)
            taken = min(self._left, end - place)
            room = self._keep - len(self._head)
            if room > 0:
                self._head += data[place : place + min(taken, room)]
            self._length += taken
            self._left -= taken
            place += taken
            if self._inside and not self._left and not self._mark and self._last:
                found.append(Record(self._at_ns, self._length, bytes(self._head)))
                self._inside, self._length = False, 0
                self._head.clear()
        return found

    def _take_mark(self, data: bytes, place: int, at_ns: int) -> int:
        """Take what there is of the four bytes before a fragment; returns where it begins."""
        if not self._inside and not self._mark:
            self._at_ns = at_ns
        wanted = 4 - len(self._mark)
        self._mark += data[place : place + wanted]
        if len(self._mark) == 4:
            (word,) = struct.unpack(">I", self._mark)
            self._mark = b""
            self._last = bool(word & _LAST_FRAGMENT)
            self._left = word & ~_LAST_FRAGMENT
            self._inside = True
            if self._left > LARGEST or (not self._left and not self._last):
                raise Garbage(f"a fragment of {self._left} bytes")
        return min(place + wanted, len(data))


class _Text:
    """XDR (RFC 4506), read from its beginning."""

    def __init__(self, data: bytes, place: int = 0) -> None:
        self.data = data
        self.place = place

    def number(self) -> int:
        self.place += 4
        if self.place > len(self.data):
            raise Garbage("it ends within a number")
        return int.from_bytes(self.data[self.place - 4 : self.place])

    def long(self) -> int:
        return self.number() << 32 | self.number()

    def truth(self) -> bool:
        word = self.number()
        if word > 1:
            raise Garbage(f"{word} for a truth")
        return bool(word)

    def skip(self, size: int) -> None:
        self.place += size
        if self.place > len(self.data):
            raise Garbage("it ends early")

    def opaque(self, most: int) -> bytes:
        size = self.number()
        if size > most:
            raise Garbage(f"{size} bytes where at most {most} may be")
        begin = self.place
        self.skip(size + -size % 4)
        return self.data[begin : begin + size]

    def handle(self) -> bytes:
        return self.opaque(64)

    def name(self) -> bytes:
        return self.opaque(1024)

    def attributes(self) -> int | None:
        """The size, where it is a regular file's (type 1)."""
        kind = self.number()
        self.skip(16)
        size = self.long()
        self.skip(_ATTRIBUTES - 28)
        return size if kind == 1 else None

    def optional_attributes(self) -> int | None:
        return self.attributes() if self.truth() else None

    def optional_handle(self) -> bytes:
        return self.handle() if self.truth() else b""

    def around(self) -> int | None:
        """wcc_data: what of the attributes was before, and those after; the size after."""
        if self.truth():
            self.skip(24)
        return self.optional_attributes()

    def settings(self) -> int | None:
        """sattr3: the size that is set."""
        size = None
        for place in range(4):
            if self.truth():
                if place == 3:
                    size = self.long()
                else:
                    self.skip(4)
        for _ in range(2):
            how = self.number()
            if how > 2:
                raise Garbage(f"{how} for how a time is set")
            self.skip(8 if how == 2 else 0)
        return size


def call(record: Record) -> Call | None:
    """A call of NFSv3; None where it is one of another program.

    Raises:
        Garbage: it is no call.
    """
    text = _Text(record.head)
    xid = text.number()
    if text.number() != 0 or text.number() != 2:
        raise Garbage("it is no call of RPC version 2")
    program, version, number = text.number(), text.number(), text.number()
    for _ in range(2):  # credential and verifier
        text.number()
        text.opaque(400)
    if program != NFS:
        return None
    if version != 3 or number >= len(PROCEDURES):
        raise Garbage(f"procedure {number} of version {version}")
    return _arguments(text, record.at_ns, xid, PROCEDURES[number])


def _arguments(text: _Text, at_ns: int, xid: int, procedure: str) -> Call:
    if procedure == "null":
        return Call(at_ns, xid, procedure)
    handle = text.handle()
    name, offset, count, stable, size = b"", 0, 0, 0, None
    if procedure in _NAMED:
        name = text.name()
    if procedure == "read":
        offset, count = text.long(), text.number()
    elif procedure == "write":
        offset, count, stable = text.long(), text.number(), text.number()
        if stable > 2 or text.number() != count:
            raise Garbage("a write whose count is not that of its data")
    elif procedure == "commit":
        offset, count = text.long(), text.number()
    elif procedure == "setattr":
        size = text.settings()
    elif procedure == "create":
        size = text.settings() if text.number() < 2 else 0
    elif procedure in ("readdir", "readdirplus"):
        offset = text.long()
        text.skip(8)
        count = text.number()
        if procedure == "readdirplus":
            count = text.number()
    return Call(at_ns, xid, procedure, handle, name, offset, count, stable, size)


def reply(record: Record, procedure: str) -> Reply:
    """The answer to a call of that procedure.

    Raises:
        Garbage: it is none.
    """
    text = _Text(record.head)
    xid = text.number()
    if text.number() != 1:
        raise Garbage("it is no reply")
    if text.number() != 0:
        return Reply(record.at_ns, xid, -1)  # refused
    text.number()
    text.opaque(400)
    if text.number() != 0:
        return Reply(record.at_ns, xid, -1)  # not executed
    if procedure == "null":
        return Reply(record.at_ns, xid, 0)
    status = text.number()
    if status:
        return Reply(record.at_ns, xid, status)
    return _results(text, record.at_ns, xid, procedure)


def _results(text: _Text, at_ns: int, xid: int, procedure: str) -> Reply:
    if procedure == "getattr":
        return Reply(at_ns, xid, 0, size=text.attributes())
    if procedure == "lookup":
        handle = text.handle()
        return Reply(at_ns, xid, 0, handle, text.optional_attributes())
    if procedure in _MAKING:
        handle = text.optional_handle()
        return Reply(at_ns, xid, 0, handle, text.optional_attributes())
    if procedure == "read":
        size = text.optional_attributes()
        count = text.number()
        return Reply(at_ns, xid, 0, size=size, count=count, eof=text.truth())
    if procedure == "write":
        size = text.around()
        return Reply(at_ns, xid, 0, size=size, count=text.number())
    if procedure in ("setattr", "commit"):
        return Reply(at_ns, xid, 0, size=text.around())
    if procedure in ("access", "readlink"):
        return Reply(at_ns, xid, 0, size=text.optional_attributes())
    if procedure == "readdirplus":
        text.optional_attributes()
        text.skip(8)
        return Reply(at_ns, xid, 0, entries=_entries(text))
    return Reply(at_ns, xid, 0)


def _entries(text: _Text) -> tuple[Entry, ...]:
    found = []
    while text.truth():
        text.skip(8)
        name = text.name()
        text.skip(8)
        size = text.optional_attributes()
        found.append(Entry(name, text.optional_handle(), size))
    return tuple(found)
