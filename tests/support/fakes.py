"""Engines that let no time pass, for the trial loop and all above it: they answer from a script.

What they do to files and rows is what docs/reference/formats.md says of `etude-engine serve`.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from etude.engine import Launch, Repeated
from etude.errors import MachineRefuses
from etude.experiment.bench import SignalWatch


class Screen(io.StringIO):
    """A stream that keeps what was written, and when in its world's time."""

    def __init__(self, tty: bool, world: World) -> None:
        super().__init__()
        self.tty, self.world = tty, world
        self.times: list[tuple[float, str]] = []

    def isatty(self) -> bool:
        return self.tty

    def write(self, text: str) -> int:
        self.times.append((self.world.elapsed_s, text))
        return super().write(text)


@dataclass
class World:
    """What all engines of one experiment share: the script, the log, and what happens at which call.

    `times` maps a command's first word (a hook's line) to elapsed seconds, to a row's changes, to an iterator of
    either, or to a function of the launch. `before` and `after` are called with the number of each launch, from 1.
    """

    times: Mapping[str, Any] = field(default_factory=dict)
    before: Callable[[int, World], None] = lambda number, world: None
    after: Callable[[int, World], None] = lambda number, world: None
    cpus: tuple[int, ...] = (0, 1, 2, 3)
    log: list[Launch] = field(default_factory=list)
    patience: list[int] = field(default_factory=list)
    engines: list[FakeEngine] = field(default_factory=list)
    watch: SignalWatch | None = None
    elapsed_s: float = 0.0

    def make_engine(self, watch: SignalWatch | None = None) -> FakeEngine:
        """As `run` and `resume` ask for one: the first measures, the others keep what hooks start."""
        self.watch = watch
        self.engines.append(FakeEngine(self.times, self.log, self))
        return self.engines[-1]

    def signal(self, number: int) -> None:
        """A signal comes."""
        assert self.watch is not None
        self.watch.signal = self.watch.signal or number
        self.watch.count += 1

    @property
    def story(self) -> list[str]:
        """All launches in words: hooks by their line, measured commands by theirs, a duet's joined by `|`."""
        return [told(launch) for launch in self.log]


def told(launch: Launch) -> str:
    lines = [worker.argv[-1] if is_hook(launch) else " ".join(worker.argv) for worker in launch.workers]
    return "|".join(lines)


def is_hook(launch: Launch) -> bool:
    return launch.leftovers == "keep"


class FakeEngine:
    """One engine of a world; alone it makes a world of its own. `log` lists what was asked, in order."""

    def __init__(
        self, times: Mapping[str, Any], log: list[Launch] | None = None, world: World | None = None
    ) -> None:
        self.log = [] if log is None else log
        self.world = world or World(times, log=self.log)
        self.hello: Mapping[str, Any] = {"engine": "fake", "cpus": list(self.world.cpus)}
        self.closed = False

    def launch(self, launch: Launch, *, patience: int = 0) -> list[dict[str, Any]]:
        self._begin(launch)
        self.world.patience.append(patience)
        rows = [self._row(launch, index) for index in range(len(launch.workers))]
        if self._signalled(patience):
            rows = [row | CANCELLED for row in rows]
        self.world.after(len(self.log), self.world)
        return rows

    def repeat(self, launch: Launch, progress: Callable[[int], None]) -> Repeated:
        self._begin(launch)
        repeat = launch.repeat
        assert repeat is not None
        done, stopped, began_s = 0, None, self.world.elapsed_s
        within_s = math.inf if repeat.within_s is None else repeat.within_s
        with open(repeat.journal, "a", encoding="utf-8") as file:
            while done < repeat.count and stopped is None:
                if done and self.world.elapsed_s - began_s >= within_s:
                    break
                rows = [self._row(launch, index) for index in range(len(launch.workers))]
                if self._signalled(0):
                    stopped, rows = "cancelled", [row | CANCELLED for row in rows]
                elif not all(_accepted(launch, row) for row in rows):
                    stopped = "failed"
                place = {"trial": repeat.trial + done, "block": repeat.block + done}
                place |= {"kept": stopped is None, "why": stopped}
                file.writelines(json.dumps(row | dict(repeat.head) | place) + "\n" for row in rows)
                file.flush()
                done += 1
                progress(done)
        self.world.after(len(self.log), self.world)
        return Repeated(done, stopped)

    def end(self) -> int:
        return 0

    def close(self, *, wait: bool = True) -> None:
        self.closed = True

    def _begin(self, launch: Launch) -> None:
        assert not self.closed, "a launch was asked of an engine that was closed"
        self.log.append(launch)
        if launch.inner > 1 and len(launch.workers) > 1:
            raise MachineRefuses("the engine refused: inner launches need a single worker")
        for worker in launch.workers:
            for stream in (worker.stdout, worker.stderr):
                if isinstance(stream, Mapping):
                    Path(stream["file"]).touch()
        self.world.before(len(self.log), self.world)

    def _signalled(self, patience: int) -> bool:
        watch = self.world.watch
        return watch is not None and watch.count > patience

    def _row(self, launch: Launch, index: int) -> dict[str, Any]:
        argv = launch.workers[index].argv
        source = self.world.times.get(argv[-1] if is_hook(launch) else argv[0], 0.001)
        outcome = next(source) if isinstance(source, Iterator) else source
        if callable(outcome):
            outcome = outcome(launch)
        changes = dict(outcome) if isinstance(outcome, Mapping) else {"elapsed": outcome}
        elapsed = changes.pop("elapsed", 0.001)
        metrics = {"elapsed": [elapsed, "s"], "user": [elapsed / 2, "s"]} | changes.pop("metrics", {})
        printed = {stream: changes.pop(stream, "") for stream in ("stdout", "stderr")}
        start_ns = int(self.world.elapsed_s * 1e9)
        self.world.elapsed_s += min(elapsed, 1e6)
        row = {
            "worker": index,
            "command": list(argv),
            "start": "2026-01-01T00:00:00.000000000Z",
            "start_ns": start_ns,
            "inner": launch.inner,
            "exit_status": 0,
            "signal": None,
            "timed_out": False,
            "cancelled": False,
            "error": None,
            "cache": None,
            "metrics": metrics,
        }
        for stream, text in printed.items():
            if getattr(launch.workers[index], stream) == "capture" and (text or stream == "stdout"):
                row[stream] = captured(text)
        return row | changes


CANCELLED: Mapping[str, Any] = {"exit_status": None, "signal": 15, "cancelled": True}


def _accepted(launch: Launch, row: Mapping[str, Any]) -> bool:
    if row["error"] is not None or row["timed_out"]:
        return False
    return launch.accept == "any" or row["exit_status"] == 0


def captured(text: str) -> dict[str, Any]:
    """A stream as a row tells of it."""
    data = text.encode()
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest(), "tail": text}


def around(mean: float, *steps: float) -> Iterator[float]:
    """Elapsed seconds that go round and round near `mean`, relative `steps` away from it."""
    steps = steps or (-0.01, 0.004, 0.01, -0.004)
    while True:
        yield from (mean * (1.0 + step) for step in steps)


def spread(mean: float, relative: float, count: int = 7) -> Sequence[float]:
    """A fixed row of values that lie evenly around `mean`."""
    return [mean * (1.0 + relative * (2.0 * i / (count - 1) - 1.0)) for i in range(count)]


def check_undone(world: World) -> None:
    """Every set-up has one clean-up, every prepare one conclude; every engine is closed."""
    for name in ("a", "b"):
        assert world.story.count(f"{name} setup") == world.story.count(f"{name} cleanup") <= 1
        assert world.story.count(f"{name} prepare") == world.story.count(f"{name} conclude")
    assert all(engine.closed for engine in world.engines)
