"""Shared state of one session: plan, engine, writer, progress, signals."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Protocol

from etude import trail
from etude.engine import Launch, Repeated
from etude.experiment.kernel_log import KernelLog, NoKernelLog
from etude.experiment.plan import Plan
from etude.experiment.progress import Progress
from etude.results.writer import ResultsWriter


class EngineLike(Protocol):
    """Interface of an engine that the trial loop uses; tests implement it without letting time pass."""

    hello: Mapping[str, Any]

    def launch(self, launch: Launch, *, patience: int = 0) -> list[dict[str, Any]]: ...

    def repeat(self, launch: Launch, progress: Callable[[int], None]) -> Repeated: ...

    def end(self) -> int: ...

    def close(self, *, wait: bool = True) -> None: ...


@dataclass(frozen=True)
class Session:
    """One uninterrupted session: its number, host and boot."""

    number: int
    host: str
    boot_id: str
    restarted_into: str | None = None
    """Boot loader entry that the previous session restarted the machine into; None if this is no such boot."""


class NamedTest(Protocol):
    """A test, as observers see it."""

    @property
    def name(self) -> str: ...


@dataclass(frozen=True)
class Event:
    """A progress report for an observer: `what` happens to which tests; `detail` is text."""

    what: str  # group, set-aside, trial, progress, hook, decision, resumed; of scripts: echo, warning, failed
    tests: tuple[NamedTest, ...]
    detail: str = ""
    done: int = 0
    """Trials within the engine so far (progress); minimum number of included trials of each test (group)."""
    metric: str = "elapsed"
    """The primary metric."""


@dataclass
class Bench:
    """Plan, engine, writer and progress of one session."""

    plan: Plan
    writer: ResultsWriter
    progress: Progress
    session: Session
    watch: SignalWatch
    engine: EngineLike
    make_engine: Callable[[], EngineLike]
    observe: Callable[[Event, Progress], None]
    kernel: KernelLog = field(default_factory=NoKernelLog)
    """Source of kernel messages during trials."""
    measured: bool = False
    """True once something ran in this session: caches are no longer as the boot left them."""
    inner: dict[str, int] = field(default_factory=dict)
    """Launches per trial of each test, once known."""
    entries: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    """The entry of each test in experiment.json, by name."""
    keepers: dict[str, EngineLike] = field(default_factory=dict)
    """Engine of each test that runs its hooks and keeps alive what they start."""

    def notify(self, what: str, *tests: NamedTest, detail: str = "", done: int = 0) -> None:
        """Report an event to the observer and the log, except for progress within a trial."""
        if what != "progress":
            names = ", ".join(test.name for test in tests)
            trail.note("bench", " ".join(filter(None, (what, names, detail))))
        self.observe(Event(what, tests, detail, done, self.plan.primary), self.progress)


WATCHED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class SignalWatch:
    """Within `with`, SIGINT, SIGTERM and SIGHUP are only counted, and make `fd` readable.

    `signal` is the first that came. The first ends measuring; clean-up continues until a second.

    In a thread other than the main one no signals are watched: Python allows it only in the main thread.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self.count = 0
        self.fd: int | None = None
        self._former: dict[int, object] = {}

    def __enter__(self) -> SignalWatch:
        if threading.current_thread() is threading.main_thread():
            self.fd, self._write = os.pipe()
            os.set_blocking(self._write, False)
            self._former = {number: signal.signal(number, self._note) for number in WATCHED}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        if self.fd is not None:
            os.close(self.fd)
            os.close(self._write)
            self.fd = None

    def _note(self, number: int, _: FrameType | None) -> None:
        self.signal = self.signal or number
        self.count += 1
        with suppress(BlockingIOError):  # full of signals already
            os.write(self._write, b"\0")
