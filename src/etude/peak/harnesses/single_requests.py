"""Windows from single requests, of tools that print one line for each of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from etude.peak.harnesses.load_report import LoadReport, Run, Unreadable, excerpt, histogram_of
from etude.peak.window import Window

DISORDER_S = 1.0
"""Lines come in the order in which requests end, but for so much."""
LATEST = 10
"""A request that ended so many times a run's length after the first, and an hour, is a line that was spoilt."""


class Request(NamedTuple):
    """One that ended, s by any clock."""

    begun_s: float
    took_s: float
    answered: bool

    @property
    def ended_s(self) -> float:
        """By the same clock."""
        return self.begun_s + self.took_s


@dataclass
class SingleRequests:
    """A reader of lines. A window counts the requests that end in it; the first request begins the first window.

    Windows come while the tool runs where it prints while it runs. How many requests were sent is not told: those that
    have not ended are on no line yet.
    """

    run: Run
    tool: str
    parse: Callable[[str], Request | None]
    """None: the line is of no request. Raises ValueError, LookupError or OverflowError where it cannot be read."""
    _text: str = ""
    _seen: str = ""
    _held: list[Request] = field(default_factory=list)
    _from_s: float = math.inf
    _last_s: float = -math.inf
    _until: int = 0
    """Windows that were told."""

    def feed(self, text: str) -> list[LoadReport]:
        """Windows that are over, and a little more."""
        *lines, self._text = (self._text + text).split("\n")
        self._seen = (self._seen + text)[-2048:]
        for line in lines:
            self._read(line)
        return self._windows(self._last_s - DISORDER_S)

    def end(self) -> list[LoadReport]:
        """What is left, the last window perhaps a shorter one."""
        self._read(self._text)
        self._text = ""
        if not self._held and not self._until:
            raise Unreadable(
                f"what {self.tool} printed ends with {excerpt(self._seen)!r}: expected a line a request"
            )
        # Those that are answered when no more are sent would be a window of few.
        last_s = min(self._last_s, self._from_s + self.run.runlength_s)
        found = self._windows(last_s)
        begins_s = self._until * self.run.window_s
        if last_s - self._from_s - begins_s >= 0.25 * self.run.window_s:
            found.append(self._window(begins_s, last_s - self._from_s))
        return found

    def _read(self, line: str) -> None:
        if not line.strip():
            return
        try:
            found = self.parse(line)
            if found is not None and not (math.isfinite(found.ended_s) and found.took_s >= 0):
                raise ValueError
        except (ValueError, LookupError, OverflowError):
            raise Unreadable(
                f"a line of {self.tool} is {line.strip()[:80]!r}: expected that of a request"
            ) from None
        if found is not None:
            self._held.append(found)
            self._last_s = max(self._last_s, found.ended_s)
            if not self._until:
                self._from_s = min(self._from_s, found.begun_s)
            if self._last_s - self._from_s > LATEST * self.run.runlength_s + 3600:
                raise Unreadable(
                    f"a line of {self.tool} is {line.strip()[:80]!r}: expected a request of a run of "
                    f"{self.run.runlength_s:g} s, the first of which began at {self._from_s:.17g} s"
                )

    def _windows(self, until_s: float) -> list[LoadReport]:
        """All that end by then, and were not told."""
        found = []
        while self._from_s + (self._until + 1) * self.run.window_s <= until_s + 1e-9:
            begins_s = self._until * self.run.window_s
            found.append(self._window(begins_s, begins_s + self.run.window_s))
            self._until += 1
        return found

    def _window(self, from_s: float, until_s: float) -> LoadReport:
        end_s = self._from_s + until_s + 1e-9
        inside = [each for each in self._held if each.ended_s <= end_s]
        self._held = [each for each in self._held if each.ended_s > end_s]
        took_s = np.array([each.took_s for each in inside if each.answered])
        mean_s = float(took_s.mean()) if took_s.size else None
        due = self.run.due(from_s, until_s, len(inside))
        failed = len(inside) - took_s.size
        return LoadReport(
            Window(until_s - from_s, due, took_s.size, failed, mean_s, histogram_of(took_s * 1e9))
        )
