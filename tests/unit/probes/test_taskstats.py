"""Exit records: how they are read from netlink's messages, and real ones where there are any."""

from __future__ import annotations

import os
import re
import resource
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from etude.probes import taskstats
from etude.probes.taskstats import (
    KERNEL_TICK_NS,
    Exit,
    ExitRecords,
    Message,
    NoRecords,
    attributes,
    messages,
    pack,
    pack_attribute,
    parse_exit,
    parse_stats,
)

attribute = st.tuples(st.integers(0, 0x3FFF), st.binary(max_size=40))


@given(st.lists(attribute))
def test_attributes_are_read_back(wanted: list[tuple[int, bytes]]) -> None:
    packed = b"".join(pack_attribute(kind, value) for kind, value in wanted)
    assert len(packed) % 4 == 0
    assert list(attributes(packed)) == wanted


@given(st.lists(st.tuples(st.integers(0, 65535), st.integers(0, 2**32 - 1), st.lists(attribute))))
def test_messages_are_read_back(wanted: list[tuple[int, int, list[tuple[int, bytes]]]]) -> None:
    datagram = b"".join(
        pack(kind, 1, 0, sequence, b"".join(pack_attribute(*each) for each in inside))
        for kind, sequence, inside in wanted
    )
    found = list(messages(datagram))
    assert [(m.kind, m.sequence, m.attributes()) for m in found] == [
        (kind, sequence, dict(inside)) for kind, sequence, inside in wanted
    ]


def test_a_message_is_padded_to_four_bytes() -> None:
    odd = pack(30, 1, 0, 1, b"odd")
    found = list(messages(odd + b"\0" * (-len(odd) % 4) + pack(31, 1, 0, 2, b"")))
    assert [(message.kind, message.sequence) for message in found] == [(30, 1), (31, 2)]


@given(st.binary(max_size=100), st.integers(0, 100))
@example(b"\0" * 8, 0)
@example(b"\3\0" * 4, 0)
def test_no_bytes_make_them_raise(noise: bytes, cut: int) -> None:
    real = pack(30, 2, 0, 1, pack_attribute(4, pack_attribute(1, b"\1\0\0\0") + pack_attribute(3, noise)))
    for datagram in (noise, real[:cut], real + noise, noise + real):
        for message in messages(datagram):
            parse_exit(message)
            assert message.error is None or isinstance(message.error, int)
    assert sum(len(value) for _, value in attributes(noise)) <= len(noise)
    parse_stats(noise)


def stats(exit_: Exit, version: int, *, sampled_us: int = 0, waited_ns: int = 0, slept: int = 1) -> bytes:
    """A structure as the kernel of that version makes it, as far as we read it."""
    by, group_by = (48, 96) if version == 15 else (0, 0)
    made = bytearray(564 + group_by)
    struct.pack_into("=H", made, 0, version)
    made[8] = 0x23 if exit_.last else 0x03
    struct.pack_into("=Q", made, 24, waited_ns)
    struct.pack_into("=Q32s", made, 72 + by, exit_.cpu_ns, exit_.name.encode())
    struct.pack_into("=II", made, 128 + by, exit_.thread, exit_.parent)
    user_us = sampled_us // 3
    struct.pack_into("=QQQ", made, 144 + by, exit_.elapsed_us, user_us, sampled_us - user_us)
    struct.pack_into("=Q", made, 272 + by, slept)
    if version >= 12:
        struct.pack_into("=I", made, 368 + group_by, exit_.process or 0)
    return bytes(made)


u32, u64 = st.integers(0, 2**32 - 1), st.integers(1, 2**63)
ends = st.builds(Exit, u32, u32, u32, st.text("abc/:-", max_size=15), u64, u64, st.booleans())


@given(ends, st.sampled_from([12, 13, 14, 15, 16, 17]))
def test_a_record_is_read_back(exit_: Exit, version: int) -> None:
    assert parse_stats(stats(exit_, version)) == exit_
    aggregate = pack_attribute(1, struct.pack("=I", exit_.thread)) + pack_attribute(3, stats(exit_, version))
    (message,) = messages(pack(30, 2, 0, 1, pack_attribute(4, aggregate)))
    assert parse_exit(message) == exit_


@given(ends, st.sampled_from([1, 8, 11]))
def test_an_older_kernel_does_not_say_whose_thread_it_was(exit_: Exit, version: int) -> None:
    assert parse_stats(stats(exit_, version)) == exit_._replace(process=None, last=False)


@given(ends, st.integers(0, 2**40))
def test_where_the_exact_time_is_not_kept_the_sampled_one_counts(exit_: Exit, sampled_us: int) -> None:
    read = parse_stats(stats(exit_._replace(cpu_ns=0), 13, sampled_us=sampled_us))
    assert read is not None
    assert read.cpu_ns == sampled_us * 1000


T = KERNEL_TICK_NS


@pytest.mark.parametrize("version", [8, 15, 16])
@pytest.mark.parametrize(
    ("seen_ns", "waited_ns", "elapsed_ns", "slept", "counts_ns"),
    [
        (T // 100, T, 2 * T, 0, T),  # shorter than a tick: it was hardly ever looked at
        (5 * T, 3 * T, 8 * T + T // 2, 0, 5 * T + T // 2),
        (5 * T, 3 * T, 8 * T + T // 2, 1, 5 * T),  # it slept for a part of the rest, who knows how long
        (5 * T, 3 * T, 20 * T, 0, 6 * T),  # that cannot be: there is a look at each tick
        (5 * T, 9 * T, 8 * T, 0, 5 * T),
    ],
)
def test_the_last_moments_of_a_thread_that_never_slept_are_known(
    seen_ns: int, waited_ns: int, elapsed_ns: int, slept: int, counts_ns: int, version: int
) -> None:
    exit_ = Exit(1, 1, 1, "x", elapsed_ns // 1000, seen_ns)
    read = parse_stats(stats(exit_, version, waited_ns=waited_ns, slept=slept))
    assert read is not None
    assert read.cpu_ns == counts_ns


def test_an_error_and_an_acknowledgement_are_told_apart() -> None:
    assert Message(taskstats.ERROR, 1, struct.pack("=i", -13)).error == 13
    assert Message(taskstats.ERROR, 1, struct.pack("=i", 0)).error == 0
    assert Message(30, 1, struct.pack("=i", -13)).error is None


# --- the real thing -----------------------------------------------------------------------------------


def all_cpus() -> str:
    return Path("/sys/devices/system/cpu/possible").read_text().strip()


@pytest.fixture
def records() -> Iterator[ExitRecords]:
    try:
        records = ExitRecords(all_cpus())
    except NoRecords as reason:
        pytest.skip(str(reason))
    yield records
    records.close()


def assert_all_but_its_last_moments(recorded_s: float, used_s: float, threads: int = 1) -> None:
    """A record lacks up to a tick, and the giving back of the memory; what wait4 says may lack up to a tick, too."""
    tick_s = KERNEL_TICK_NS / 1e9
    assert used_s - threads * tick_s - 0.01 < recorded_s < used_s + threads * tick_s


@pytest.mark.needs_root
def test_a_child_s_end_is_recorded_before_it_is_waited_for(records: ExitRecords) -> None:
    code = "sum(range(2_000_000))"
    with subprocess.Popen([sys.executable, "-c", code]) as child:
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    exits, lost = records.drain()
    (found,) = [exit_ for exit_ in exits if exit_.thread == child.pid]
    assert not lost
    assert (found.process, found.parent, found.last) in [
        (child.pid, os.getpid(), True),
        (None, os.getpid(), False),
    ]
    assert found.name == Path(sys.executable).resolve().name or found.name == Path(sys.executable).name
    used_s = usage.ru_utime + usage.ru_stime
    assert_all_but_its_last_moments(found.cpu_ns / 1e9, used_s)
    assert found.elapsed_us * 1000 >= found.cpu_ns


@pytest.mark.needs_root
def test_each_thread_has_a_record_and_together_they_are_the_process(records: ExitRecords) -> None:
    code = """
import hashlib, threading
block = bytes(1 << 20)
def burn():
    for _ in range(60): hashlib.sha256(block)
threads = [threading.Thread(target=burn) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with subprocess.Popen([sys.executable, "-c", code]) as child:
        assert child.wait() == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    exits, _ = records.drain()
    own = [exit_ for exit_ in exits if exit_.process == child.pid]
    if not own:
        pytest.skip("this kernel does not say whose thread it was")
    assert len(own) == 4
    assert [exit_.last for exit_ in own] == [False, False, False, True]
    used_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert_all_but_its_last_moments(sum(exit_.cpu_ns for exit_ in own) / 1e9, used_s, threads=4)


@pytest.mark.needs_root
def test_records_that_did_not_fit_are_known_to_be_lost(
    records: ExitRecords, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(taskstats, "BUFFER_BYTES", 4096)
    small = ExitRecords(all_cpus())
    try:
        for _ in range(30):
            subprocess.run(["true"], check=True)
        exits, lost = small.drain()
        assert lost
        assert len(exits) < 30
        subprocess.run(["true"], check=True)
        assert small.drain()[1] is False
    finally:
        small.close()
    assert len(records.drain()[0]) >= 31


@pytest.mark.needs_root
def test_after_its_close_nothing_is_left_open(records: ExitRecords) -> None:
    before = set(os.listdir("/proc/self/fd"))
    ExitRecords(all_cpus()).close()
    with pytest.raises(NoRecords):
        ExitRecords("4095")
    assert set(os.listdir("/proc/self/fd")) == before


@pytest.mark.needs_root
def test_a_kernel_with_another_layout_is_not_believed(
    records: ExitRecords, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(taskstats, "_THREAD_AT", 120)
    with pytest.raises(NoRecords, match="another layout"):
        ExitRecords(all_cpus())


@pytest.mark.needs_root
def test_others_than_root_are_told_that_they_may_not() -> None:
    code = """
import os
from etude.probes.taskstats import ExitRecords, NoRecords
os.setgroups([]); os.setgid(65534); os.setuid(65534)
try: ExitRecords("0")
except NoRecords as reason: print(reason)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert re.search("root|CONFIG_TASKSTATS", done.stdout)
