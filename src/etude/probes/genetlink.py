"""Generic netlink, as far as taskstats needs it: messages of attributes, in the machine's byte order.

The layouts are those of linux/netlink.h and linux/genetlink.h.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

NETLINK_GENERIC = 16
CONTROLLER = 16  # the family that knows the others
GET_FAMILY, FAMILY_ID, FAMILY_NAME = 3, 1, 2  # its command, and the attributes of its answer
ERROR = 2  # the type of a message that is an error, or with number 0 an acknowledgement

REQUEST = 1
ACKNOWLEDGE = 4

_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, port
_COMMAND = struct.Struct("=BBH")  # command, version, reserved
_ATTRIBUTE = struct.Struct("=HH")  # length, type
_TYPE_MASK = 0x3FFF  # the two highest bits say "nested" and "network byte order"


class Message(NamedTuple):
    """One message: what it is (a family, or ERROR), its sequence number, and all behind its header."""

    kind: int
    sequence: int
    body: bytes

    @property
    def error(self) -> int | None:
        """The errno of an error, 0 of an acknowledgement; None if it is neither."""
        if self.kind != ERROR or len(self.body) < 4:
            return None
        number: int = struct.unpack_from("=i", self.body)[0]
        return -number

    def attributes(self) -> dict[int, bytes]:
        """The attributes behind the command; of two of one type the last."""
        return dict(attributes(self.body[_COMMAND.size :]))


def pack(kind: int, command: int, flags: int, sequence: int, packed: bytes) -> bytes:
    """A message of a family: a command with its packed attributes."""
    body = _COMMAND.pack(command, 1, 0) + packed
    return _HEADER.pack(_HEADER.size + len(body), kind, flags | REQUEST, sequence, 0) + body


def pack_attribute(kind: int, value: bytes) -> bytes:
    """An attribute, padded to four bytes."""
    return _ATTRIBUTE.pack(_ATTRIBUTE.size + len(value), kind) + value + b"\0" * (-len(value) % 4)


def messages(datagram: bytes) -> Iterator[Message]:
    """The messages of one datagram, up to the first that makes no sense."""
    start = 0
    while start + _HEADER.size <= len(datagram):
        length, kind, _, sequence, _ = _HEADER.unpack_from(datagram, start)
        if length < _HEADER.size or start + length > len(datagram):
            return
        yield Message(kind, sequence, datagram[start + _HEADER.size : start + length])
        start += (length + 3) & ~3


def attributes(packed: bytes) -> Iterator[tuple[int, bytes]]:
    """Attributes as type and value, up to the first that makes no sense."""
    start = 0
    while start + _ATTRIBUTE.size <= len(packed):
        length, kind = _ATTRIBUTE.unpack_from(packed, start)
        if length < _ATTRIBUTE.size or start + length > len(packed):
            return
        yield kind & _TYPE_MASK, packed[start + _ATTRIBUTE.size : start + length]
        start += (length + 3) & ~3
