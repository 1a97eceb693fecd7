"""Reader of load commands that print a line per request, as hey, vegeta and k6 do."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from etude.peak.harnesses.load_report import LoadReport, Run, Unreadable, excerpt, histogram_of
from etude.peak.window import Window

DISORDER_S = 1.0
"""Lines are ordered by the end of requests, up to this, s."""
LATEST = 10
"""A request that ends after this many run lengths and an hour is a corrupt line."""


class Request(NamedTuple):
    """An ended request, s by any clock."""

    begun_s: float
    took_s: float
    answered: bool

    @property
    def ended_s(self) -> float:
        """End of the request on the same clock, s."""
        return self.begun_s + self.took_s


@dataclass
class SingleRequests:
    """Reader of lines. A window counts the requests that end in it; the first request begins the first window.

    Windows are live if the tool prints while it runs. The number of sent requests is unknown: unfinished ones have no
    line.
    """

    run: Run
    tool: str
    parse: Callable[[str], Request | None]
    """None: the line is not a request. Raises ValueError, LookupError or OverflowError if it cannot be read."""
    _text: str = ""
    _seen: str = ""
    _held: list[Request] = field(default_factory=list)
    _from_s: float = math.inf
    _last_s: float = -math.inf
    _until: int = 0
    """Number of reported windows."""

    def feed(self, text: str) -> list[LoadReport]:
        """Windows that ended more than `DISORDER_S` ago."""
        *lines, self._text = (self._text + text).split("\n")
        self._seen = (self._seen + text)[-2048:]
        for line in lines:
            self._read(line)
        return self._windows(self._last_s - DISORDER_S)

    def end(self) -> list[LoadReport]:
        """Remaining windows; the last one may be shorter."""
        self._read(self._text)
        self._text = ""
        if not self._held and not self._until:
            raise Unreadable(
                f"what {self.tool} printed ends with {excerpt(self._seen)!r}: expected a line a request"
            )
        # Responses after the last request was sent would make a window with few requests.
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
