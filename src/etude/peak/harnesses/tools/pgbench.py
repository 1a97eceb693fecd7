"""pgbench -R: windows from its log of single transactions (`-l --log-prefix={log}`), read while it runs.

A line is: client, number, latency, script, seconds and microseconds of its end, and with -R its schedule lag. Latency
is measured from the time the transaction was due, so it shows a server that falls behind. pgbench writes a page at a
time, about 80 lines, which delays windows. Source: PostgreSQL 15, pgbench, "Per-Transaction Logging".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from glob import escape, glob
from typing import NamedTuple

import numpy as np

from etude.peak.harnesses.load_report import LoadReport, Run, Unreadable, histogram_of
from etude.peak.window import Window


class Transaction(NamedTuple):
    """A line of the log, µs."""

    ended: int
    latency: float | None
    """Time from when it was due; None if it failed or was skipped."""
    lag: float


@dataclass
class Pgbench:
    """The reader of one run."""

    run: Run
    _places: dict[str, int] = field(default_factory=dict)
    """Bytes read of each file (one per thread)."""
    _ended: dict[str, int] = field(default_factory=dict)
    """End of the last transaction in each file: all earlier ones are known."""
    _held: list[Transaction] = field(default_factory=list)
    _from: int | None = None
    _until: int = 0
    """Number of reported windows."""

    def feed(self, text: str) -> list[LoadReport]:
        """Windows that have ended in the logs of all threads."""
        for path in glob(escape(self.run.log) + ".*"):
            self._read(path)
        if not self._held or (self._from is None and not self._begins()):
            return []
        assert self._from is not None
        known = (min(self._ended.values()) - self._from) / 1e6
        return self._windows(int(known / self.run.window_s))

    def end(self) -> list[LoadReport]:
        found = self.feed("")
        if self._from is None:
            raise Unreadable(f"there is no transaction in the log {self.run.log}.*: expected pgbench -l -R")
        last_s = min((max(self._ended.values()) - self._from) / 1e6, self.run.runlength_s)
        found += self._windows(int(last_s / self.run.window_s))
        rest = last_s - self._until * self.run.window_s
        if rest >= 0.25 * self.run.window_s:
            found.append(self._window(self._until * self.run.window_s, last_s))
        return found

    def _begins(self) -> bool:
        """Set the begin: when the first transaction was due. True if there is one."""
        self._from = min((int(t.ended - (t.latency or 0.0)) for t in self._held), default=None)
        return self._from is not None

    def _read(self, path: str) -> None:
        with open(path, "rb") as file:
            file.seek(self._places.get(path, 0))
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._places[path] = self._places.get(path, 0) + len(whole)
        for line in whole.decode("ascii", "replace").splitlines():
            found = transaction(line)
            self._held.append(found)
            self._ended[path] = max(self._ended.get(path, 0), found.ended)

    def _windows(self, until: int) -> list[LoadReport]:
        found = []
        while self._until < until:
            begins = self._until * self.run.window_s
            found.append(self._window(begins, begins + self.run.window_s))
            self._until += 1
        return found

    def _window(self, from_s: float, until_s: float) -> LoadReport:
        assert self._from is not None
        end = self._from + until_s * 1e6
        inside = [t for t in self._held if t.ended < end]
        self._held = [t for t in self._held if t.ended >= end]
        latencies = np.array([t.latency for t in inside if t.latency is not None])
        busy = sum(t.latency - t.lag for t in inside if t.latency is not None)
        done = latencies.size
        window = Window(
            until_s - from_s,
            self.run.due(from_s, until_s, len(inside)),
            done,
            len(inside) - done,
            float(latencies.mean()) * 1e-6 if done else None,
            histogram_of(latencies * 1e3),
        )
        return LoadReport(window, len(inside), busy * 1e-6)


def transaction(line: str) -> Transaction:
    """A transaction from a line. Raises Unreadable."""
    words = line.split()
    try:
        if len(words) < 6:
            raise ValueError
        ended = int(words[4]) * 1_000_000 + int(words[5])
        if words[2] in ("failed", "skipped"):
            return Transaction(ended, None, 0.0)
        latency, lag = float(words[2]), float(words[6]) if len(words) > 6 else 0.0
        if not (math.isfinite(latency) and math.isfinite(lag) and latency >= 0):
            raise ValueError
    except ValueError:
        raise Unreadable(
            f"a line of pgbench's log is {line[:80]!r}: expected that of a transaction"
        ) from None
    return Transaction(ended, latency, lag)
