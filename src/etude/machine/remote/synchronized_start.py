"""One trial on several hosts: all workers become ready, then all start at one instant.

Each host's engine reports when its workers wait at its barrier. Once all have reported, each gets one start time, on
its own clock. The same happens at each barrier inside the workers (docs/reference/formats.md).
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from etude.engine import Engine, EngineLost, Interrupts, Launch, within_limit

ROUNDS = 16


@dataclass(frozen=True)
class Offset:
    """Their clock minus ours, ns, and its maximum error: half the round trip, whatever the delays."""

    offset_ns: int = 0
    error_ns: int = 0

    def theirs(self, ours_ns: int) -> int:
        """The remote time of a local time, ns."""
        return ours_ns + self.offset_ns

    def ours(self, theirs_ns: int) -> int:
        """The local time of a remote time, ns."""
        return theirs_ns - self.offset_ns


def measure_offset(
    ask: Callable[[], int], rounds: int = ROUNDS, clock: Callable[[], int] = time.monotonic_ns
) -> Offset:
    """The offset of a clock that `ask` reads, ns: from the fastest of `rounds` round trips.

    The clock is read at some moment within the round trip: the middle is wrong by at most half of it.
    """
    found = []
    for _ in range(rounds):
        asked = clock()
        theirs = ask()
        answered = clock()
        error = (answered - asked + 1) // 2
        found.append(Offset(theirs - (asked + answered) // 2, error))
    return min(found, key=lambda offset: offset.error_ns)


READY_S = 60.0
"""Maximum time until all workers are ready for their first start, s."""
MARGIN_S = 10.0
"""Time that an engine may take beyond the time-out and the grace period of a launch, s."""
MIN_LEAD_NS = 50_000_000
ROUND_TRIPS = 4
"""Minimum lead of the start time, in round trips of the slowest host."""


@dataclass
class Part:
    """One host's part in a trial. `rows` are set at the end; None: they never arrived."""

    name: str
    engine: Engine
    launch: Launch
    offset: Offset = field(default_factory=Offset)
    rows: list[dict[str, Any]] | None = None
    number: int = 0
    ready: bool = False


@dataclass(frozen=True)
class IdleHost:
    """A host without workers in a trial whose loss still ends the trial."""

    name: str
    engine: Engine


@dataclass
class TrialEnd:
    """End of a trial: the reason if it failed as a whole, and the hosts that were lost."""

    why: str | None = None
    lost: list[str] = field(default_factory=list)


class _Trial:
    def __init__(
        self,
        parts: Sequence[Part],
        beside: Sequence[IdleHost],
        interrupts: Interrupts | None,
        clock: Callable[[], float],
    ) -> None:
        self.parts = parts
        self.beside = list(beside)
        self.interrupts = interrupts
        self.clock = clock
        self.ended = TrialEnd()
        self.cancelled = False
        self.deadline = clock() + READY_S
        self.late = f"not all workers stood ready within {READY_S:g} s"

    def run(self) -> TrialEnd:
        for part in self.parts:
            try:
                part.number = part.engine.begin(part.launch)
            except EngineLost as error:
                self._lose(part, str(error))
        while self._waiting():
            self._hear()
            if self.interrupts is not None and self.interrupts.count > 0:
                self._cancel(None)
            if self.clock() > self.deadline:
                self._overdue()
            self._meet()
        return self.ended

    def _waiting(self) -> list[Part]:
        return [p for p in self.parts if p.rows is None and p.name not in self.ended.lost]

    def _hear(self) -> None:
        """Wait for a message of any host, and process it."""
        poll = select.poll()
        everybody: list[Part | IdleHost] = [*self._waiting(), *self.beside]
        speakers = {one.engine.fileno(): one for one in everybody}
        signals = self.interrupts.fd if self.interrupts is not None else None
        for descriptor in (*speakers, *([signals] if signals is not None else [])):
            poll.register(descriptor, select.POLLIN)
        for descriptor, _ in poll.poll(max(0.0, min(1.0, self.deadline - self.clock())) * 1000):
            speaker = speakers.get(descriptor)
            if speaker is None:  # a signal: its count says so
                os.read(descriptor, 4096)
                continue
            try:
                answers = speaker.engine.answers()
            except EngineLost as error:
                self._lose(speaker, str(error))
                continue
            if isinstance(speaker, Part):
                for answer in answers:
                    self._take(speaker, answer)

    def _take(self, part: Part, answer: dict[str, Any]) -> None:
        if answer.get("id") != part.number:
            return
        if "ready" in answer:
            part.ready = True
        elif "rows" in answer:
            part.rows = within_limit(answer["rows"], part.launch)

    def _meet(self) -> None:
        """Start all workers once all are ready; cancel the trial if some can no longer come."""
        waiting = self._waiting()
        standing = [part for part in waiting if part.ready]
        if not standing or self.cancelled:
            return
        over = next((part for part in self.parts if part.rows is not None), None)
        if over is not None:
            errors = [row["error"] for row in over.rows or () if row["error"]]
            how = f"was not started: {errors[0]}" if errors else "ended before all had reached the barrier"
            self._cancel(f"a worker on {over.name} {how}")
        elif len(standing) == len(waiting):
            self._release(standing)

    def _release(self, parts: Sequence[Part]) -> None:
        error_ns = max(part.offset.error_ns for part in parts)
        at_ns = time.monotonic_ns() + max(MIN_LEAD_NS, 2 * ROUND_TRIPS * error_ns)
        for part in parts:
            part.ready = False
            try:
                part.engine.release(part.number, part.offset.theirs(at_ns))
            except EngineLost as error:
                self._lose(part, str(error))
        limits = [part.launch.timeout_s for part in parts if part.launch.timeout_s is not None]
        self.deadline = float("inf")
        if limits:
            allowed = max(limits) + max(part.launch.grace_s for part in parts) + MARGIN_S
            self.deadline = self.clock() + allowed
            self.late = f"no answer {MARGIN_S:g} s after the time-out"

    def _lose(self, who: Part | IdleHost, why: str) -> None:
        self.ended.lost.append(who.name)
        if isinstance(who, IdleHost):
            self.beside.remove(who)
        self._cancel(f"{why}: it went away during the trial")

    def _overdue(self) -> None:
        """End what is under way at the deadline; hosts that do not even end then are lost."""
        names = ", ".join(part.name for part in self._waiting())
        if not self.cancelled:
            self._cancel(f"{names}: {self.late}")
            return
        self.ended.lost += [part.name for part in self._waiting()]
        self.ended.why = (
            self.ended.why or f"{names}: no answer {MARGIN_S:g} s after its workers should have ended"
        )

    def _cancel(self, why: str | None) -> None:
        """End everything under way, with its grace period."""
        self.ended.why = self.ended.why or why
        if self.cancelled:
            return
        self.cancelled = True
        self.deadline = self.clock() + max(part.launch.grace_s for part in self.parts) + MARGIN_S
        for part in self._waiting():
            try:
                part.engine.cancel()
            except EngineLost as error:
                self._lose(part, str(error))


def run_together(
    parts: Sequence[Part],
    beside: Sequence[IdleHost] = (),
    interrupts: Interrupts | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> TrialEnd:
    """Run one trial; each part then has its rows, unless its host was lost. A signal cancels it.

    A host that is lost, or does not answer in time, ends the trial: the others' workers are ended, too.
    """
    return _Trial(parts, beside, interrupts, clock).run()
