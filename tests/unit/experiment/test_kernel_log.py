"""Kernel messages: how they are read, and of which trial they are."""

import errno
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.experiment.kernel_log import (
    MAX_MESSAGES,
    KernelLog,
    Message,
    NoKernelLog,
    messages_by_trial,
    parse_record,
    row_members,
)
from support.builders import measurement


def test_a_record_has_a_level_a_time_and_a_text() -> None:
    record = b"28,11429,24038501852,-;usb 1-1: too hot\n SUBSYSTEM=usb\n"
    assert parse_record(record) == Message(24038501852000, 4, "usb 1-1: too hot")


@given(st.binary(max_size=80) | st.from_regex(rb"\d{1,4},\d+,\d{1,20},.;.*", fullmatch=True))
def test_no_record_makes_it_raise(record: bytes) -> None:
    found = parse_record(record)
    assert found is None or 0 <= found.level <= 7


@pytest.fixture
def fifo(tmp_path: Path) -> tuple[KernelLog, int]:
    """A log that is fed by hand: a pipe hands out what is written to it, one record a read where it is asked so."""
    os.mkfifo(tmp_path / "kmsg")
    keep = os.open(tmp_path / "kmsg", os.O_RDWR)
    counter = tmp_path / "cpu0_throttle_count"
    counter.write_text("3\n")
    log = KernelLog.__new__(KernelLog)
    log.reason = None
    log._file = os.open(tmp_path / "kmsg", os.O_RDONLY | os.O_NONBLOCK)
    log._counters = [os.open(counter, os.O_RDONLY)]
    log._throttled = 3
    return log, keep


def test_what_comes_during_a_trial_is_of_it_and_what_came_before_is_not(fifo: tuple[KernelLog, int]) -> None:
    log, keep = fifo
    os.write(keep, b"4,1,10,-;before\n")
    log.begin()
    assert log.end() == {}
    log.begin()
    os.write(keep, b"4,2,20,-;during\n")
    assert log.end() == {"kernel": [{"ns": 20000, "level": 4, "text": "during"}]}
    log.close()


def test_throttling_is_told_by_how_much_its_counters_rose(
    fifo: tuple[KernelLog, int], tmp_path: Path
) -> None:
    log, _ = fifo
    log.begin()
    (tmp_path / "cpu0_throttle_count").write_text("5\n")
    assert log.end() == {"throttled": 2}
    log.begin()
    assert log.end() == {}


def test_of_a_log_that_may_not_be_read_the_reason_is_kept_and_nothing_is_attached(tmp_path: Path) -> None:
    log = KernelLog(str(tmp_path / "none"), "")
    assert log.reason == f"{tmp_path}/none: {os.strerror(errno.ENOENT)}"
    log.begin()
    with log.following() as messages:
        pass
    assert (log.end(), messages) == ({}, [])
    log.close()
    assert NoKernelLog().end() == {}


def test_while_trials_follow_each_other_messages_are_seen_when_they_come(fifo: tuple[KernelLog, int]) -> None:
    log, keep = fifo
    with log.following() as messages:
        before = time.monotonic_ns()
        os.write(keep, b"4,2,20,-;during\n")
        while not messages:
            time.sleep(0.001)
        after = time.monotonic_ns()
    [message] = messages
    assert before <= message.seen_ns <= after


def test_of_many_messages_the_first_stand_there_and_the_others_are_counted() -> None:
    said = [Message(n, 6 if n else 3, f"m{n}") for n in range(MAX_MESSAGES + 7)]
    kernel = row_members(said)["kernel"]
    assert len(kernel) == MAX_MESSAGES + 1
    assert " 7 more " in kernel[-1]["text"]
    assert (kernel[0]["level"], kernel[-1]["level"]) == (3, 6)


def test_the_worst_message_stands_there_however_late_it_came() -> None:
    said = [Message(n, 6, f"m{n}") for n in range(MAX_MESSAGES + 7)]
    kernel = row_members([*said, Message(99, 3, "Out of memory: Killed process 7")])["kernel"]
    assert min(kernel, key=lambda each: each["level"])["text"] == "Out of memory: Killed process 7"
    assert kernel[-1]["level"] == 6


def test_a_message_is_of_the_trial_that_ran_when_it_was_seen() -> None:
    rows = [measurement(trial=n, start_ns=int(n * 1e9), metrics={"elapsed": [0.5, "s"]}) for n in (1, 2, 3)]

    def seen(second: float) -> list[int]:
        return list(messages_by_trial(rows, [Message(0, 4, "x", int(second * 1e9))]))

    assert [seen(s) for s in (0.9, 1.0, 1.5, 1.51, 1.9, 2.2, 9.0)] == [[], [1], [1], [1], [], [2], []]


def test_a_trial_lasts_as_long_as_all_of_its_launches() -> None:
    rows = [measurement(trial=1, start_ns=0, inner=100, metrics={"elapsed": [0.01, "s"]})]
    seen = [Message(0, 4, "x", int(second * 1e9)) for second in (0.5, 0.99, 1.2)]
    assert messages_by_trial(rows, seen) == {1: seen[:2]}


def test_messages_that_are_only_counted_are_as_bad_as_the_worst_of_them() -> None:
    said = [Message(n, 3 if n < MAX_MESSAGES + 2 else 6, f"m{n}") for n in range(MAX_MESSAGES + 7)]
    kernel = row_members(said)["kernel"]
    assert (len(kernel), kernel[-1]["level"]) == (MAX_MESSAGES + 1, 3)
