"""What stands between client and server sees what was said, whole, and calls garbage what is none."""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.nfs_proxy import CALLS, REPLIES, tape_records
from support.nfs_seen import follow, read_tape
from support.nfs_wire import PROCEDURES, Garbage, Record, Records, call, reply
from support.places import TESTS

pytestmark = pytest.mark.beside
ROOT, FILE, OTHER = b"root-handle-0001", b"file-7", b"other-handle"
READ_LATER = 5


# --- messages, put together by hand ------------------------------------------------------------------


def opaque(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data + bytes(-len(data) % 4)


def asked(xid: int, procedure: str, *parts: bytes, program: int = 100003) -> bytes:
    credential = struct.pack(">I", 1) + opaque(struct.pack(">I", 0) + opaque(b"host") + bytes(12))
    head = struct.pack(">6I", xid, 0, 2, program, 3, PROCEDURES.index(procedure))
    return head + credential + bytes(8) + b"".join(parts)


def answered(xid: int, status: int, *parts: bytes) -> bytes:
    return struct.pack(">6I", xid, 1, 0, 0, 0, 0) + struct.pack(">I", status) + b"".join(parts)


def attributes(size: int, kind: int = 1) -> bytes:
    return struct.pack(">5I", kind, 0o644, 1, 0, 0) + struct.pack(">2Q", size, size) + bytes(48)


def some(data: bytes) -> bytes:
    return struct.pack(">I", 1) + data


NONE = bytes(4)


def place(offset: int, count: int) -> bytes:
    return struct.pack(">QI", offset, count)


def written(offset: int, data: bytes, stable: int = 0) -> bytes:
    return place(offset, len(data)) + struct.pack(">I", stable) + opaque(data)


def marked(message: bytes, cuts: Sequence[int] = ()) -> bytes:
    """As records: one fragment, or more."""
    ends = [*sorted(cut % len(message) for cut in set(cuts) if cut % len(message)), len(message)]
    parts, begin = [], 0
    for end in dict.fromkeys(ends):
        last = (1 << 31) if end == len(message) else 0
        parts.append(struct.pack(">I", last | (end - begin)) + message[begin:end])
        begin = end
    return b"".join(parts)


def record(message: bytes, at_ns: int = 0) -> Record:
    return Record(at_ns, len(message), message)


# --- records -----------------------------------------------------------------------------------------


@given(
    st.lists(
        st.tuples(st.binary(min_size=1, max_size=60), st.lists(st.integers(0, 60), max_size=3)), max_size=6
    ),
    st.randoms(use_true_random=False),
)
def test_records_are_found_wherever_the_bytes_are_split(
    messages: list[tuple[bytes, list[int]]], chance: random.Random
) -> None:
    stream = b"".join(marked(message, cuts) for message, cuts in messages)
    records, found, begin = Records(), [], 0
    while begin < len(stream):
        size = chance.randint(1, 9)
        found += records.feed(stream[begin : begin + size], begin)
        begin += size
    assert [each.head for each in found] == [message for message, _ in messages]
    assert [each.length for each in found] == [len(message) for message, _ in messages]


def test_of_a_long_record_the_beginning_is_kept_and_the_time_of_its_first_byte() -> None:
    records = Records(keep=8)
    stream = marked(b"0123456789" * 10) + marked(b"next")
    assert records.feed(stream[:3], 11) == []
    assert records.feed(stream[3:50], 12) == []
    assert records.feed(stream[50:], 13) == [Record(11, 100, b"01234567"), Record(13, 4, b"next")]


def test_a_record_may_end_in_a_fragment_of_nothing() -> None:
    stream = struct.pack(">I", 3) + b"abc" + struct.pack(">I", 1 << 31) + marked(b"d")
    assert [each.head for each in Records().feed(stream, 0)] == [b"abc", b"d"]


@pytest.mark.parametrize("mark", [b"GET ", b"\xff\xff\xff\xff", bytes(4)], ids=["text", "ones", "zeros"])
def test_what_is_no_record_is_garbage(mark: bytes) -> None:
    with pytest.raises(Garbage):
        Records().feed(mark + b"x" * 100, 0)


@given(st.binary(max_size=200), st.sampled_from(PROCEDURES))
def test_any_bytes_are_a_message_or_garbage(data: bytes, procedure: str) -> None:
    whole = asked(1, procedure)[: 24 + 40] + data
    for message in (data, whole):
        with contextlib.suppress(Garbage):
            call(record(message))
    for message in (data, answered(1, 0) + data):
        with contextlib.suppress(Garbage):
            reply(record(message), procedure)


# --- calls and answers -------------------------------------------------------------------------------


def test_calls_say_what_is_asked() -> None:
    one = call(record(asked(7, "read", opaque(FILE), place(1 << 40, 8192)), 99))
    assert one is not None
    assert (one.at_ns, one.xid, one.procedure, one.handle) == (99, 7, "read", FILE)
    assert (one.offset, one.count) == (1 << 40, 8192)
    one = call(record(asked(8, "write", opaque(FILE), written(4096, b"abcde", 2))))
    assert one is not None
    assert (one.offset, one.count, one.stable) == (4096, 5, 2)
    one = call(record(asked(9, "rename", opaque(ROOT), opaque(b"from"), opaque(OTHER), opaque(b"to"))))
    assert one is not None
    assert (one.handle, one.name) == (ROOT, b"from")
    settings = NONE * 3 + some(struct.pack(">Q", 77)) + NONE * 2
    one = call(record(asked(9, "setattr", opaque(FILE), settings, NONE)))
    assert one is not None
    assert one.size == 77
    one = call(record(asked(9, "create", opaque(ROOT), opaque(b"n"), struct.pack(">I", 1), NONE * 6)))
    assert one is not None
    assert (one.name, one.size) == (b"n", None)
    one = call(record(asked(9, "readdirplus", opaque(ROOT), bytes(16), struct.pack(">2I", 512, 4096))))
    assert one is not None
    assert one.count == 4096


def test_a_write_whose_data_are_cut_off_is_read_by_its_beginning() -> None:
    message = asked(8, "write", opaque(FILE), written(0, b"x" * 10_000, 2))
    one = call(Record(0, len(message), message[:200]))
    assert one is not None
    assert one.count == 10_000


def test_calls_of_another_program_are_passed_over() -> None:
    assert call(record(asked(1, "null", program=100005))) is None
    with pytest.raises(Garbage):
        call(record(asked(1, "null").replace(struct.pack(">2I", 100003, 3), struct.pack(">2I", 100003, 4))))


def test_answers_say_what_was_found() -> None:
    found = reply(record(answered(3, 0, opaque(FILE), some(attributes(123)), NONE)), "lookup")
    assert (found.handle, found.size, found.status) == (FILE, 123, 0)
    found = reply(record(answered(3, 0, some(attributes(9)), struct.pack(">2I", 9, 1))), "read")
    assert (found.count, found.eof, found.size) == (9, True, 9)
    made = reply(
        record(answered(3, 0, some(opaque(OTHER)), some(attributes(0, kind=2)), NONE, NONE)), "mkdir"
    )
    assert (made.handle, made.size) == (OTHER, None)
    wrote = reply(
        record(answered(3, 0, some(bytes(24)), some(attributes(55)), struct.pack(">I", 5))), "write"
    )
    assert (wrote.size, wrote.count) == (55, 5)
    assert reply(record(answered(3, 28)), "write").status == 28
    refused = struct.pack(">5I", 3, 1, 1, 1, 5)
    assert reply(record(refused), "read").status == -1


def entry(name: bytes, handle: bytes, size: int) -> bytes:
    return some(
        struct.pack(">Q", 1)
        + opaque(name)
        + struct.pack(">Q", 1)
        + some(attributes(size))
        + some(opaque(handle))
    )


def conversation() -> list[tuple[int, int, Record]]:
    listing = (NONE, bytes(8), entry(b".", ROOT, 1), entry(b"b", OTHER, 70), NONE, struct.pack(">I", 1))
    words = [
        (CALLS, asked(1, "lookup", opaque(ROOT), opaque(b"d"))),
        (REPLIES, answered(1, 0, opaque(b"dir"), some(attributes(0, kind=2)), NONE)),
        (CALLS, asked(2, "readdirplus", opaque(b"dir"), bytes(16), struct.pack(">2I", 512, 4096))),
        (REPLIES, answered(2, 0, *listing)),
        (CALLS, asked(3, "create", opaque(b"dir"), opaque(b"a"), struct.pack(">I", 0), NONE * 6)),
        (REPLIES, answered(3, 0, some(opaque(FILE)), NONE, NONE, NONE)),
        (CALLS, asked(4, "write", opaque(FILE), written(0, b"12345"))),
        (CALLS, asked(5, "write", opaque(FILE), written(5, b"678", 2))),
        (CALLS, asked(6, "write", opaque(FILE), written(4, b"x"))),
        (REPLIES, answered(6, 0, NONE, NONE, struct.pack(">I", 1))),
        (REPLIES, answered(4, 0, NONE, NONE, struct.pack(">I", 5))),
        (REPLIES, answered(5, 28, NONE, NONE)),
        (CALLS, asked(7, "read", opaque(OTHER), place(0, 70))),
        (CALLS, asked(8, "null", program=100005)),
        (REPLIES, struct.pack(">6I", 8, 1, 0, 0, 0, 0)),
        (CALLS, asked(9, "getattr", opaque(ROOT))),
    ]
    return [(way, 0, record(message, at)) for at, (way, message) in enumerate(words)]


def test_operations_are_on_named_files_and_have_their_outcomes() -> None:
    tape = follow(conversation(), {})
    seen = tape.seen
    named = [(str(kind), seen.paths[path]) for kind, path in zip(seen.kind, seen.path, strict=True)]
    assert named == [
        ("lookup", "d"),
        ("readdirplus", "d"),
        ("create", "d/a"),
        ("write", "d/a"),
        ("write", "d/a"),
        ("write", "d/a"),
        ("read", "d/b"),
        ("getattr", ""),
    ]
    assert seen.before.tolist() == [-1, -1, -1, 0, 5, 8, 70, -1]
    assert seen.stable.tolist() == [False] * 4 + [True] + [False] * 3
    assert seen.failed.tolist() == [False, False, False, False, True, False, True, True]
    assert tape.unanswered == 2
    assert seen.sizes["d/b"] == 70
    assert seen.sizes["d/a"] == 8
    assert tape.garbage == ()
    known = follow(conversation()[-4:], {"": 7}).seen
    assert known.before[0] == 7, "what was there before is told"


def test_numbers_of_calls_are_each_connections_own() -> None:
    words = [
        (CALLS, 0, record(asked(1, "lookup", opaque(ROOT), opaque(b"a")))),
        (CALLS, 1, record(asked(1, "lookup", opaque(ROOT), opaque(b"b")))),
        (REPLIES, 1, record(answered(1, 0, opaque(OTHER), NONE, NONE))),
        (REPLIES, 0, record(answered(1, 0, opaque(FILE), NONE, NONE))),
        (CALLS, 0, record(asked(2, "getattr", opaque(OTHER)))),
    ]
    tape = follow(words, {})
    assert tape.seen.paths[tape.seen.path[2]] == "b"
    assert tape.unanswered == 1


def test_garbage_is_told_and_the_rest_is_read() -> None:
    words = [*conversation()[:2], (CALLS, 0, record(b"\0\0\0\1nonsense")), *conversation()[2:]]
    tape = follow(words, {})
    assert len(tape.garbage) == 1
    assert len(tape.seen) == 8


# --- the proxy, with a server that answers what it likes ---------------------------------------------


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture
def proxied(tmp_path: Path):  # type: ignore[no-untyped-def]
    """A listening server, the port of the proxy before it, and what ends the proxy and gives its tape."""
    server = socket.create_server(("127.0.0.1", 0))
    port = free_port()
    tape = tmp_path / "tape"
    script = TESTS / "support" / "nfs_proxy.py"
    command = [sys.executable, str(script), str(tape), f"{port}:127.0.0.1:{server.getsockname()[1]}"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"

    def end() -> Path:
        process.terminate()
        process.wait(20)
        return tape

    try:
        yield server, port, end
    finally:
        end()
        process.stdout.close()
        server.close()


def taken(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size and (data := connection.recv(size - len(found))):
        found += data
    return found


def test_all_bytes_pass_both_ways_and_the_tape_has_them(proxied) -> None:  # type: ignore[no-untyped-def]
    server, port, end = proxied
    big = marked(asked(4, "write", opaque(FILE), written(0, b"x" * 1_000_000)))
    sent = b"".join(marked(each.head) for way, _, each in conversation() if way == CALLS) + big * 12
    back = b"".join(marked(each.head) for way, _, each in conversation() if way == REPLIES)
    with socket.create_connection(("127.0.0.1", port)) as client:
        there, _ = server.accept()
        sender = threading.Thread(target=client.sendall, args=(sent,))
        sender.start()
        # The server reads late: what waits for it must neither be lost nor fill the memory.
        got = taken(there, READ_LATER)
        time.sleep(0.3)
        got += taken(there, len(sent) - READ_LATER)
        sender.join()
        assert got == sent
        there.sendall(back)
        assert taken(client, len(back)) == back
        client.shutdown(socket.SHUT_WR)
        assert there.recv(1) == b""
        there.close()
        assert client.recv(1) == b""
    tape = read_tape(end())
    assert tape.garbage == ()
    assert tape.seen.counts()["write"] == 3 + 12
    assert tape.seen.sizes["d/b"] == 70


def test_a_stream_of_garbage_passes_and_is_told(proxied) -> None:  # type: ignore[no-untyped-def]
    server, port, end = proxied
    with socket.create_connection(("127.0.0.1", port)) as client:
        there, _ = server.accept()
        client.sendall(b"GET / HTTP/1.0\r\n\r\n" * 1000)
        assert taken(there, 18_000) == b"GET / HTTP/1.0\r\n\r\n" * 1000
        there.close()
    tape = read_tape(end())
    assert len(tape.garbage) == 1
    assert len(tape.seen) == 0


def test_a_server_that_is_away_closes_the_connection(proxied) -> None:  # type: ignore[no-untyped-def]
    server, port, end = proxied
    server.close()
    with socket.create_connection(("127.0.0.1", port)) as client:
        assert client.recv(1) == b""
    assert list(tape_records(end())) == []
