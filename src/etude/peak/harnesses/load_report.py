"""Reports of a load command as windows: the common part of all readers, and of those with a line per request."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from etude.peak.window import Window
from etude.results.histograms import Histogram

MOST_TEXT = 16 << 20
"""Characters of output that a reader buffers without finding a report in them."""


class Unreadable(ValueError):
    """Invalid output of the load command; the message names it and what was expected."""


@dataclass(frozen=True, slots=True)
class Run:
    """A reader's parameters of the run that it reads."""

    load: float
    """Requested load."""
    closed: bool
    """True if the load is a concurrency: then nothing is due, and sent requests count as offered."""
    runlength_s: float
    window_s: float
    log: str
    """Value of {log} in the command: a prefix of files."""

    def due(self, from_s: float, until_s: float, sent: int) -> int:
        """Requests due in a time span: the mean of the requested load; in closed systems those sent."""
        return sent if self.closed else round(self.load * until_s) - round(self.load * from_s)


@dataclass(frozen=True, slots=True)
class LoadReport:
    """A window, and figures that only the diagnosis of the generator needs."""

    window: Window
    sent: int | None = None
    """Requests begun; None if not reported."""
    busy_s: float | None = None
    """Summed time of outstanding requests since they were sent, s; None: from the mean response."""
    refused: int = 0
    lateness_p99_s: float | None = None
    """99th percentile of the lateness of sent requests, s; None: not reported."""
    parts: tuple[LoadReport, ...] = ()
    """Reports of each generator, if there are several."""

    @property
    def waited_s(self) -> float:
        """Summed time of outstanding requests, s: as reported, else from the mean response or the percentiles."""
        window = self.window
        if self.busy_s is not None:
            return self.busy_s
        if window.mean_s is None and window.latency is not None:
            return float(window.latency.values @ window.latency.counts) * 1e-9
        return (window.mean_s or 0.0) * window.completed


class Reader(Protocol):
    """Reader of the output of one run."""

    def feed(self, text: str) -> list[LoadReport]:
        """Reports in the new output; also called without output. Raises Unreadable."""
        ...

    def end(self) -> list[LoadReport]:
        """Remaining reports at the end of the command. Raises Unreadable if it reported nothing."""
        ...


def histogram_of(values_ns: NDArray[np.float64], counts: NDArray[np.int64] | None = None) -> Histogram | None:
    """Histogram with classes of three significant digits, ns; None without values."""
    if not values_ns.size:
        return None
    values = np.maximum(values_ns, 1.0)
    step = 10.0 ** np.maximum(np.floor(np.log10(values)) - 2, 0)
    classes = (np.ceil(values / step) * step).astype(np.int64)
    found, place = np.unique(classes, return_inverse=True)
    weights = np.ones(values.size) if counts is None else counts
    return Histogram(found, np.bincount(place, weights=weights).astype(np.int64))


def bounded_text(unread: int, expected: str) -> None:
    """Raises Unreadable if more than `MOST_TEXT` characters are unread."""
    if unread > MOST_TEXT:
        raise Unreadable(f"it printed more than {MOST_TEXT >> 20} MiB: expected {expected}")


def excerpt(text: str) -> str:
    """The last non-empty line, shortened for an error."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:120] if lines else "nothing"


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
