"""Kernel messages and throttling of the CPUs during a trial: read after it, attached to its first row.

Where nothing came it is one read of /dev/kmsg that returns at once, before a trial and after it: about a microsecond
each. The counters of throttling, where a CPU has them, are read after each trial.
"""

from __future__ import annotations

import glob
import os
import re
import select
import threading
import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from etude.results.model import Measurement

DEVICE = "/dev/kmsg"
COUNTERS = "/sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/*_throttle_count"
LONGEST_RECORD = 8192
"""The kernel hands out no longer ones, and refuses a smaller buffer."""
MOST_MESSAGES = 50
"""Of one trial; more are only counted."""
LONGEST_TEXT = 400
SETTLE_S = 0.02
"""After trials within the engine, a message may take so long to come through."""


@dataclass(frozen=True)
class Message:
    """One record of the kernel's log."""

    ns: int
    """By the kernel's own clock since boot, which runs beside CLOCK_MONOTONIC and not quite with it."""
    level: int
    """0 (emergency) to 7 (debug)."""
    text: str
    seen_ns: int = 0
    """When it was read, CLOCK_MONOTONIC."""

    def plain(self) -> dict[str, Any]:
        """As it stands in a row."""
        return {"ns": self.ns, "level": self.level, "text": self.text}


def parse_record(record: bytes) -> Message | None:
    """A record of /dev/kmsg: `PRIORITY,NUMBER,MICROSECONDS,FLAGS;TEXT` and lines of keys; None for what is none.

    Source: Documentation/ABI/testing/dev-kmsg of Linux.
    """
    match = re.match(rb"(\d{1,6}),\d+,(\d{1,18}),[^;]*;([^\n]*)", record)
    if match is None:
        return None
    text = match[3].decode("utf-8", "replace")
    return Message(int(match[2]) * 1000, int(match[1]) & 7, text[:LONGEST_TEXT])


class KernelLog:
    """What the kernel says from now on."""

    def __init__(self, device: str = DEVICE, counters: str = COUNTERS) -> None:
        """Begin at the end of the log; where it may not be read, `reason` says why, and nothing is attached."""
        self.reason: str | None = None
        self._file = -1
        try:
            self._file = os.open(device, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._file, 0, os.SEEK_END)
        except OSError as error:
            self._close_file()
            self.reason = f"{device}: {error.strerror}"
        self._counters = [os.open(path, os.O_RDONLY | os.O_CLOEXEC) for path in sorted(glob.glob(counters))]
        self._throttled = self._throttle_count()

    def begin(self) -> None:
        """A trial begins: what came before it is not of it."""
        self._drain()
        if self._counters:
            self._throttled = self._throttle_count()

    def end(self) -> dict[str, Any]:
        """A trial is over: members for its first row, none where nothing happened."""
        found = members_of(self._drain())
        if self._counters and (rise := self._throttle_count() - self._throttled) > 0:
            found["throttled"] = rise
        return found

    @contextmanager
    def following(self) -> Iterator[list[Message]]:
        """Of many trials with nothing in between: messages with the moment at which each was seen.

        A thread sleeps until the kernel says something.
        """
        found: list[Message] = []
        if self._file < 0:
            yield found
            return
        self._drain()
        reading, writing = os.pipe2(os.O_CLOEXEC)
        thread = threading.Thread(target=self._follow, args=(reading, found), daemon=True)
        thread.start()
        try:
            yield found
        finally:
            os.write(writing, b".")
            thread.join()
            os.close(reading)
            os.close(writing)

    def close(self) -> None:
        """Nothing more is asked."""
        self._close_file()
        for file in self._counters:
            os.close(file)
        self._counters = []

    def _close_file(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _follow(self, stop: int, found: list[Message]) -> None:
        ready = select.poll()
        ready.register(self._file, select.POLLIN)
        ready.register(stop, select.POLLIN)
        while True:
            awake = dict(ready.poll())
            found += self._drain()
            if stop in awake:
                return

    def _drain(self) -> list[Message]:
        """All that has come since it was last asked."""
        found: list[Message] = []
        while self._file >= 0:
            try:
                record = os.read(self._file, LONGEST_RECORD)
            except BlockingIOError:
                break
            except BrokenPipeError:  # the log was overwritten meanwhile: go on with what is left of it
                continue
            except OSError:
                self._close_file()
                break
            if not record:
                break
            message = parse_record(record)
            if message is not None:
                seen = time.monotonic_ns()
                found.append(Message(message.ns, message.level, message.text, seen))
        return found

    def _throttle_count(self) -> int:
        total = 0
        for file in self._counters:
            with suppress(OSError, ValueError):  # its CPU went offline
                total += int(os.pread(file, 32, 0))
        return total


class Silence(KernelLog):
    """Nobody listens: what stands in for the machine has no kernel."""

    def __init__(self) -> None:
        """Open nothing."""
        super().__init__(os.devnull, "")


def members_of(messages: Sequence[Message]) -> dict[str, Any]:
    """What a row says of messages: the worst of them, in order, and how many there were besides."""
    if not messages:
        return {}
    by_level = sorted(range(len(messages)), key=lambda place: messages[place].level)
    shown, others = sorted(by_level[:MOST_MESSAGES]), by_level[MOST_MESSAGES:]
    found: dict[str, Any] = {"kernel": [messages[place].plain() for place in shown]}
    if others:
        text = f"and {len(others)} more messages of the kernel in this trial"
        level = min(messages[place].level for place in others)
        found["kernel"].append({"ns": messages[-1].ns, "level": level, "text": text})
    return found


def by_trial(rows: Sequence[Measurement], messages: Sequence[Message]) -> dict[int, list[Message]]:
    """Of trials within the engine: the messages of each, by the number of the trial.

    A message is of the last trial that had begun when it was seen, unless that had ended before: then of none. What
    comes within `SETTLE_S` of its end still counts for it, if no other trial had begun.
    """
    firsts = sorted(
        (m for m in rows if m.start_ns is not None and m.worker == 0), key=lambda m: m.start_ns or 0
    )
    starts = [m.start_ns or 0 for m in firsts]
    found: dict[int, list[Message]] = {}
    for message in messages:
        place = bisect_right(starts, message.seen_ns) - 1
        if place < 0:
            continue
        m = firsts[place]
        lasted_s = (m.value("elapsed") or 0.0) * m.inner + SETTLE_S
        if message.seen_ns <= starts[place] + lasted_s * 1e9:
            found.setdefault(m.trial, []).append(message)
    return found
