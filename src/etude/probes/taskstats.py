"""Exit records of threads from the kernel: taskstats, over generic netlink.

Nothing else shows a process that lived between two readings of /proc. Only root may listen. The layout is that of
linux/taskstats.h; members are only added at its end, except in version 15 (Linux 6.14), which put some in the middle.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
import time
from collections.abc import Iterator
from typing import NamedTuple

_CLOCK_MONOTONIC_COARSE = 6  # moves once a tick
KERNEL_TICK_NS = round(time.clock_getres(_CLOCK_MONOTONIC_COARSE) * 1e9)

FAMILY = b"TASKSTATS\0"
GET, NEW = 1, 2  # commands: ours, and that of a record
ASK_PID, REGISTER, DEREGISTER = 1, 3, 4  # attributes of GET
STATS, OF_THREAD = 3, 4  # attributes of NEW: the structure itself; a thread's number with it
ENDS_GROUP = 0x20  # AGROUP of linux/acct.h: the last thread of its process

SO_RCVBUFFORCE = 33
BUFFER_BYTES = 64 << 20
"""Receive buffer; the kernel doubles it, and a record takes 1.3 KB of it: some 100,000 exits. Memory is
used on demand."""

_VERSION_WITH_GROUPS = 12  # Linux 5.19
_MOVED = {15: 48}
_MOVED_GROUP = {15: 96}
_WAITED_AT = 24  # cpu_delay_total: ns that it was runnable and waited
_SLEPT_AT = 272  # nvcsw: number of voluntary context switches
_ON_CPU = struct.Struct("=Q32s")  # cpu_run_virtual_total in ns, ac_comm
_ON_CPU_AT = 72
_PARENT_TO_TIMES = struct.Struct(
    "=II4xQQQ"
)  # ac_ppid, ac_btime, ac_etime, ac_utime, ac_stime, the last three in µs
_PARENT_AT = 132
_THREAD_AT = 128
_GROUP_AT = 368


class Exit(NamedTuple):
    """The end of one thread. `process` is None, and `last` unknown, before Linux 5.19."""

    thread: int
    process: int | None
    parent: int
    name: str
    elapsed_us: int
    cpu_ns: int
    last: bool = False


class NoRecords(Exception):
    """Reason why there are no exit records here, in one line."""


class ExitRecords:
    """Receives the exit of every thread of the machine from its creation on, without running in between. Close it."""

    def __init__(self, cpus: str) -> None:
        """`cpus`: all possible CPUs, as a list such as `0-3`. Raises NoRecords: no permission, or not supported by the
        kernel."""
        self._cpus = cpus.encode() + b"\0"
        self._sequence = 0
        try:
            self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_GENERIC)
        except OSError as error:
            raise NoRecords(f"this kernel has no generic netlink ({error.strerror})") from None
        try:
            self._prepare()
        except BaseException:
            self._socket.close()
            raise

    def _prepare(self) -> None:
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
            # The kernel answers within the call, so this never blocks.
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", 1, 0))
            self._socket.bind((0, 0))
            self._family = self._find_family()
            self._check_layout()
            self._ask(self._family, GET, pack_attribute(REGISTER, self._cpus), acknowledge=True)
        except PermissionError:
            raise NoRecords("only root may receive the kernel's exit records (taskstats)") from None
        except OSError as error:
            raise NoRecords(_why(error)) from None

    def drain(self) -> tuple[list[Exit], bool]:
        """The records since the last call, in order; and True if some were lost."""
        exits: list[Exit] = []
        lost = False
        while True:
            try:
                datagram = self._socket.recv(1 << 16, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return exits, lost
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                lost = True
                continue
            for message in messages(datagram):
                if message.kind == self._family and (read := parse_exit(message)) is not None:
                    exits.append(read)

    def close(self) -> None:
        """Stop receiving."""
        with contextlib.suppress(OSError), self._socket:
            self._send(self._family, GET, pack_attribute(DEREGISTER, self._cpus))

    def _find_family(self) -> int:
        asked = pack_attribute(FAMILY_NAME, FAMILY)
        answer = self._ask(CONTROLLER, GET_FAMILY, asked)
        number = answer.attributes().get(FAMILY_ID, b"")
        if len(number) != 2:
            raise NoRecords("the kernel's answer about taskstats makes no sense")
        found: int = struct.unpack("=H", number)[0]
        return found

    def _check_layout(self) -> None:
        """Check the layout: the kernel's values for this process must be correct."""
        pid = os.getpid()
        answer = self._ask(self._family, GET, pack_attribute(ASK_PID, struct.pack("=I", pid)))
        own = parse_exit(answer)
        if own is None or own.thread != pid or own.parent != os.getppid() or own.process not in (None, pid):
            raise NoRecords("this kernel's taskstats have another layout than is known")

    def _ask(self, family: int, command: int, packed: bytes, *, acknowledge: bool = False) -> Message:
        """The answer to a request, or its acknowledgement; records that arrive before it are dropped. Raises OSError:
        the kernel's error."""
        sequence = self._send(family, command, packed, acknowledge=acknowledge)
        while True:
            for message in messages(self._socket.recv(1 << 16)):
                if message.error:
                    raise OSError(message.error, os.strerror(message.error))
                # Records have sequence numbers of their own, and one may equal the request's.
                if message.sequence == sequence and message.kind == (ERROR if acknowledge else family):
                    return message

    def _send(self, family: int, command: int, packed: bytes, *, acknowledge: bool = False) -> int:
        self._sequence += 1
        flags = ACKNOWLEDGE if acknowledge else 0
        self._socket.send(pack(family, command, flags, self._sequence, packed))
        return self._sequence


def _why(error: OSError) -> str:
    if error.errno == errno.ENOENT:
        return "this kernel has no taskstats (CONFIG_TASKSTATS)"
    if error.errno == errno.EINVAL:
        return "the kernel gives no exit records here (EINVAL), as in the PID namespace of a container"
    return f"the kernel refused its exit records: {error.strerror or error}"


def parse_exit(message: Message) -> Exit | None:
    """The record of a thread; None if the message holds none."""
    of_thread = message.attributes().get(OF_THREAD)
    stats = dict(attributes(of_thread)).get(STATS) if of_thread is not None else None
    return parse_stats(stats) if stats is not None else None


def parse_stats(stats: bytes) -> Exit | None:
    """A parsed taskstats structure; None if it is too short."""
    if len(stats) < 2:
        return None
    version: int = struct.unpack_from("=H", stats)[0]
    by = _MOVED.get(version, 0)
    if len(stats) < _SLEPT_AT + by + 8:
        return None
    on_cpu_ns, name = _ON_CPU.unpack_from(stats, _ON_CPU_AT + by)
    (thread,) = struct.unpack_from("=I", stats, _THREAD_AT + by)
    parent, _, elapsed_us, user_us, system_us = _PARENT_TO_TIMES.unpack_from(stats, _PARENT_AT + by)
    (waited_ns,) = struct.unpack_from("=Q", stats, _WAITED_AT)
    (slept,) = struct.unpack_from("=Q", stats, _SLEPT_AT + by)
    group_at = _GROUP_AT + _MOVED_GROUP.get(version, 0)
    process, last = None, False
    if version >= _VERSION_WITH_GROUPS and len(stats) >= group_at + 4:
        (process,) = struct.unpack_from("=I", stats, group_at)
        last = bool(stats[8] & ENDS_GROUP)
    return Exit(
        thread,
        process,
        parent,
        name.partition(b"\0")[0].decode("utf-8", "replace"),
        elapsed_us,
        # A kernel without CONFIG_TASK_DELAY_ACCT has only the sampled times.
        _cpu_ns(on_cpu_ns, elapsed_us * 1000 - waited_ns, slept)
        if on_cpu_ns
        else (user_us + system_us) * 1000,
        last,
    )


def _cpu_ns(on_cpu_ns: int, not_waiting_ns: int, slept: int) -> int:
    """CPU time of a thread up to its record.

    The recorded time ends with the scheduler's last update of the thread, up to a tick earlier: for a shorter process
    it is almost 0. A thread that never slept was on a CPU whenever it did not wait for one. (For a thread that did
    sleep, the last update was at its last wake-up, at the earliest.)
    """
    if slept:
        return on_cpu_ns
    return max(on_cpu_ns, min(not_waiting_ns, on_cpu_ns + KERNEL_TICK_NS))


NETLINK_GENERIC = 16
CONTROLLER = 16  # the family that lists the others
GET_FAMILY, FAMILY_ID, FAMILY_NAME = 3, 1, 2  # its command, and the attributes of its answer
ERROR = 2  # message type of an error, or with number 0 an acknowledgement

REQUEST = 1
ACKNOWLEDGE = 4

_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, port
_COMMAND = struct.Struct("=BBH")  # command, version, reserved
_ATTRIBUTE = struct.Struct("=HH")  # length, type
_TYPE_MASK = 0x3FFF  # the two highest bits mean "nested" and "network byte order"


class Message(NamedTuple):
    """One message: its kind (a family, or ERROR), its sequence number, and the bytes after its header."""

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
        """The attributes after the command; of two of one type the last."""
        return dict(attributes(self.body[_COMMAND.size :]))


def pack(kind: int, command: int, flags: int, sequence: int, packed: bytes) -> bytes:
    """A message of a family: a command with its packed attributes."""
    body = _COMMAND.pack(command, 1, 0) + packed
    return _HEADER.pack(_HEADER.size + len(body), kind, flags | REQUEST, sequence, 0) + body


def pack_attribute(kind: int, value: bytes) -> bytes:
    """An attribute, padded to four bytes."""
    return _ATTRIBUTE.pack(_ATTRIBUTE.size + len(value), kind) + value + b"\0" * (-len(value) % 4)


def messages(datagram: bytes) -> Iterator[Message]:
    """The messages of one datagram, up to the first invalid one."""
    start = 0
    while start + _HEADER.size <= len(datagram):
        length, kind, _, sequence, _ = _HEADER.unpack_from(datagram, start)
        if length < _HEADER.size or start + length > len(datagram):
            return
        yield Message(kind, sequence, datagram[start + _HEADER.size : start + length])
        start += (length + 3) & ~3


def attributes(packed: bytes) -> Iterator[tuple[int, bytes]]:
    """Attributes as type and value, up to the first invalid one."""
    start = 0
    while start + _ATTRIBUTE.size <= len(packed):
        length, kind = _ATTRIBUTE.unpack_from(packed, start)
        if length < _ATTRIBUTE.size or start + length > len(packed):
            return
        yield kind & _TYPE_MASK, packed[start + _ATTRIBUTE.size : start + length]
        start += (length + 3) & ~3
