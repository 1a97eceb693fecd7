"""Kernel messages and CPU throttling during a trial: read after it, attached to its first row.

Without messages it costs one read of /dev/kmsg that returns at once, before and after a trial: about a microsecond
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
MAX_RECORD_BYTES = 8192
"""Maximum length of a record; the kernel refuses a smaller buffer."""
MAX_MESSAGES = 50
"""Maximum messages recorded per trial; further ones are counted."""
MAX_TEXT = 400
SETTLE_S = 0.02
"""Maximum delay of a message after a trial within the engine, s."""


@dataclass(frozen=True)
class Message:
    """One record of the kernel's log."""

    ns: int
    """Kernel's own clock since boot, which differs slightly from CLOCK_MONOTONIC."""
    level: int
    """0 (emergency) to 7 (debug)."""
    text: str
    seen_ns: int = 0
    """Time of reading, CLOCK_MONOTONIC."""

    def plain(self) -> dict[str, Any]:
        """The message as stored in a row."""
        return {"ns": self.ns, "level": self.level, "text": self.text}


def parse_record(record: bytes) -> Message | None:
    """The message of a record of /dev/kmsg, `PRIORITY,NUMBER,MICROSECONDS,FLAGS;TEXT` and lines of keys; None if
    invalid.

    Source: Documentation/ABI/testing/dev-kmsg of Linux.
    """
    match = re.match(rb"(\d{1,6}),\d+,(\d{1,18}),[^;]*;([^\n]*)", record)
    if match is None:
        return None
    text = match[3].decode("utf-8", "replace")
    return Message(int(match[2]) * 1000, int(match[1]) & 7, text[:MAX_TEXT])


class KernelLog:
    """Reader of kernel messages, from its creation on."""

    def __init__(self, device: str = DEVICE, counters: str = COUNTERS) -> None:
        """Start at the end of the log; if it is not readable, `reason` is set, and no messages are attached."""
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
        """Start of a trial: drop earlier messages."""
        self._drain()
        if self._counters:
            self._throttled = self._throttle_count()

    def end(self) -> dict[str, Any]:
        """End of a trial: members for its first row, empty if nothing happened."""
        found = row_members(self._drain())
        if self._counters and (rise := self._throttle_count() - self._throttled) > 0:
            found["throttled"] = rise
        return found

    @contextmanager
    def following(self) -> Iterator[list[Message]]:
        """Messages during many trials without a break, each with the time of reading.

        A thread sleeps until the kernel logs something.
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
        """Close all files."""
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
        found: list[Message] = []
        while self._file >= 0:
            try:
                record = os.read(self._file, MAX_RECORD_BYTES)
            except BlockingIOError:
                break
            except BrokenPipeError:  # the log was overwritten meanwhile: continue with the rest
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


class NoKernelLog(KernelLog):
    """An empty log, for a simulated machine."""

    def __init__(self) -> None:
        """Open nothing."""
        super().__init__(os.devnull, "")


def row_members(messages: Sequence[Message]) -> dict[str, Any]:
    """Members of a row for these messages: the most severe, in order, and the number of others."""
    if not messages:
        return {}
    by_level = sorted(range(len(messages)), key=lambda place: messages[place].level)
    shown, others = sorted(by_level[:MAX_MESSAGES]), by_level[MAX_MESSAGES:]
    found: dict[str, Any] = {"kernel": [messages[place].plain() for place in shown]}
    if others:
        text = f"and {len(others)} more messages of the kernel in this trial"
        level = min(messages[place].level for place in others)
        found["kernel"].append({"ns": messages[-1].ns, "level": level, "text": text})
    return found


def messages_by_trial(rows: Sequence[Measurement], messages: Sequence[Message]) -> dict[int, list[Message]]:
    """Messages of trials within the engine, by the number of the trial.

    A message belongs to the last trial that had started when it was read, or to none if that had ended. A message
    within `SETTLE_S` of its end still counts for it, if no other trial had started.
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
