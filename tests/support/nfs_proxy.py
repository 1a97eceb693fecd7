"""A proxy between a client and a server of NFS that keeps what it passes on, for nfs_seen.py to read.

    python nfs_proxy.py TAPE LISTEN:HOST:PORT …

Each LISTEN is a port of 127.0.0.1 whose connections go to HOST:PORT. What comes is passed on as it came, all of it,
both ways: of a side that does not read, the other is not read either. The tape has, for each record, one header
(`HEADER`: which way, which connection, when its first byte came, how long the record is, how much of it follows) and
the record's beginning. Data of READ and WRITE are not kept. "ready" on standard output says that it listens; SIGTERM
ends it.
"""

from __future__ import annotations

import contextlib
import selectors
import signal
import socket
import struct
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

# It also runs as a program of its own.
sys.path.insert(0, str(Path(__file__).parents[1]))

from support.nfs_wire import Garbage, Record, Records

HEADER = struct.Struct("<BIQII")
CALLS, REPLIES, BROKEN = 0, 1, 2
"""What a header begins with. BROKEN: the stream of that connection is no protocol from here on; the reason
follows."""
KEEP = 512
"""Bytes of a record that are kept, which is all but data; what READDIRPLUS answers is kept whole."""
KEEP_DIRECTORY = 1 << 20
READDIRPLUS = 17
CHUNK = 1 << 18
MOST_WAITING = 4 << 20
"""Bytes for one side above which the other is not read."""


@dataclass
class Side:
    """One direction of a connection: from `source` to `sink`."""

    way: int
    connection: int
    source: socket.socket
    sink: socket.socket
    records: Records | None
    directories: set[bytes]
    """Numbers of the connection's calls of READDIRPLUS that are not answered yet."""
    waiting: bytearray = field(default_factory=bytearray)
    ended: bool = False


class Proxy:
    """Sockets, and a tape."""

    def __init__(self, tape: BinaryIO) -> None:
        self._tape = tape
        self._selector = selectors.DefaultSelector()
        self._sides: dict[socket.socket, tuple[Side, Side]] = {}
        self._connections = 0
        self.stopped = False

    def listen(self, port: int, target: tuple[str, int]) -> int:
        """Take connections at a port (0: any), of which the number is returned."""
        server = socket.create_server(("127.0.0.1", port), backlog=128)
        server.setblocking(False)
        self._selector.register(server, selectors.EVENT_READ, target)
        return int(server.getsockname()[1])

    def run(self) -> None:
        """Until `stopped`."""
        while not self.stopped:
            for key, events in self._selector.select(0.2):
                if isinstance(key.data, tuple):
                    self._accept(key.fileobj, key.data)  # type: ignore[arg-type]
                elif key.fileobj in self._sides:
                    self._serve(key.fileobj, events)  # type: ignore[arg-type]
        self._tape.flush()

    def _accept(self, server: socket.socket, target: tuple[str, int]) -> None:
        client, _ = server.accept()
        try:
            upstream = socket.create_connection(target, timeout=5)
        except OSError:
            client.close()  # as a server that is away would
            return
        number = self._connections
        self._connections += 1
        for each in (client, upstream):
            each.setblocking(False)
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        directories: set[bytes] = set()
        there = Side(CALLS, number, client, upstream, Records(KEEP), directories)
        back = Side(REPLIES, number, upstream, client, Records(KEEP_DIRECTORY), directories)
        self._sides[client], self._sides[upstream] = (there, back), (back, there)
        for each in (client, upstream):
            self._selector.register(each, selectors.EVENT_READ)

    def _serve(self, which: socket.socket, events: int) -> None:
        """Read from it what there is, and write to it what waits for it."""
        reading, writing = self._sides[which]
        try:
            if events & selectors.EVENT_READ and not reading.ended:
                self._read(reading)
            if events & selectors.EVENT_WRITE:
                self._write(writing)
        except OSError:
            self._close(reading)
            return
        if reading.ended and writing.ended and not reading.waiting and not writing.waiting:
            self._close(reading)
            return
        for each in (reading.source, reading.sink):
            self._watch(each)

    def _read(self, side: Side) -> None:
        try:
            data = side.source.recv(CHUNK)
        except BlockingIOError:
            return
        now = time.monotonic_ns()
        if not data:
            side.ended = True
            if not side.waiting:
                side.sink.shutdown(socket.SHUT_WR)
            return
        side.waiting += data
        self._write(side)
        if side.records is not None:
            self._keep(side, data, now)

    def _keep(self, side: Side, data: bytes, now: int) -> None:
        assert side.records is not None
        try:
            for record in side.records.feed(data, now):
                self._note(side, record)
        except Garbage as error:
            reason = str(error).encode()
            self._tape.write(HEADER.pack(BROKEN, side.connection, now, len(reason), len(reason)) + reason)
            side.records = None

    def _note(self, side: Side, record: Record) -> None:
        head, number = record.head, record.head[:4]
        if side.way == CALLS:
            if head[20:24] == READDIRPLUS.to_bytes(4):
                side.directories.add(number)
        elif number in side.directories:
            side.directories.discard(number)
        else:
            head = head[:KEEP]
        self._tape.write(
            HEADER.pack(side.way, side.connection, record.at_ns, record.length, len(head)) + head
        )

    def _write(self, side: Side) -> None:
        while side.waiting:
            try:
                sent = side.sink.send(side.waiting)
            except BlockingIOError:
                return
            del side.waiting[:sent]
        if side.ended:
            side.sink.shutdown(socket.SHUT_WR)

    def _watch(self, which: socket.socket) -> None:
        reading, writing = self._sides[which]
        events = 0
        if not reading.ended and len(reading.waiting) < MOST_WAITING:
            events |= selectors.EVENT_READ
        if writing.waiting:
            events |= selectors.EVENT_WRITE
        registered = which in self._selector.get_map()
        if events and registered:
            self._selector.modify(which, events)
        elif events:
            self._selector.register(which, events)
        elif registered:
            self._selector.unregister(which)

    def _close(self, side: Side) -> None:
        for each in (side.source, side.sink):
            if each in self._selector.get_map():
                self._selector.unregister(each)
            self._sides.pop(each, None)
            each.close()


def tape_records(path: Path) -> Iterator[tuple[int, int, Record]]:
    """What a tape holds: which way, which connection, and the record. A torn last one is left out."""
    with path.open("rb") as tape:
        while len(header := tape.read(HEADER.size)) == HEADER.size:
            way, connection, at_ns, length, kept = HEADER.unpack(header)
            head = tape.read(kept)
            if len(head) < kept:
                return
            yield way, connection, Record(at_ns, length, head)


def main() -> None:
    """The command."""
    path, *forwards = sys.argv[1:]
    with open(path, "wb", buffering=1 << 20) as tape:
        proxy = Proxy(tape)
        for forward in forwards:
            listen, host, port = forward.rsplit(":", 2)
            proxy.listen(int(listen), (host, int(port)))
        signal.signal(signal.SIGTERM, lambda *_: setattr(proxy, "stopped", True))
        print("ready", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            proxy.run()


if __name__ == "__main__":
    main()
