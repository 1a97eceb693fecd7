"""Reports of a load command: windows as JSON lines, and what the readers of other forms (readers.py) share."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from etude.errors import EDITED
from etude.peak.window import Window
from etude.results.histograms import BadHistogram, Histogram, decode

MOST = 10**18
"""Upper bound of a window's counts and times: larger values are invalid."""
MOST_TEXT = 16 << 20
"""Characters of output that a reader buffers without finding a report in them."""
_MOST_REPORTS = 1000
"""Upper bound of `checkpoints` in one trial."""


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

    def checkpoints(self) -> str:
        """Value of {checkpoints}, times of reports: sysbench takes whole seconds, and the list has a maximum length."""
        step = max(round(self.window_s), math.ceil(self.runlength_s / _MOST_REPORTS), 1)
        return ",".join(str(at) for at in range(step, max(int(self.runlength_s), 1), step)) or "1"


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


ReaderOf = Callable[[Run], Reader]


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


_SUMMARY = re.compile(r'\s*\{\s*"summary"\s*:')
CARRIED_S = 60.0
"""Maximum age, s, of requests from before the first window that end within the run: they belong to the load command's
own warm-up and count as offered in no window. `etude load` abandons a request after 30 s."""


@dataclass
class Windows:
    """Reader of JSON lines, one per window, as they arrive (docs/reference/formats.md, "Windows"; `mean_s` with or
    without `latency`)."""

    run: Run
    needs: Collection[str] = ()
    """Fields limited by the goal, `mean` or `latency`: required in windows with completed requests."""
    _text: str = ""
    _seen: str = ""
    _unread: int = 0
    """Characters since the last window."""
    _count: int = 0
    _lasted_s: float = 0.0
    _offered: int = 0
    _ended: int = 0

    def feed(self, text: str) -> list[LoadReport]:
        """Windows of the complete lines. Lines that do not begin with a brace and summaries are ignored."""
        *lines, self._text = (self._text + text).split("\n")
        self._seen = (self._seen + text)[-2048:]
        found = [
            self._window(line) for line in lines if line.lstrip().startswith("{") and not _SUMMARY.match(line)
        ]
        self._unread = len(self._text) if found else self._unread + len(text)
        bounded_text(self._unread, f"windows, JSON lines; what it printed ends with {excerpt(self._seen)!r}")
        return found

    def end(self) -> list[LoadReport]:
        """No windows: an incomplete last line is dropped."""
        if not self._count:
            raise Unreadable(
                f"what it printed ends with {excerpt(self._seen)!r}: expected windows, JSON lines"
            )
        return []

    def _window(self, line: str) -> LoadReport:
        self._count += 1
        try:
            found = read_window_line(line)
            self._judge(found)
        except Unreadable as error:
            raise Unreadable(f"window {self._count} is {line[:80]!r}: {error}") from None
        return found

    def _judge(self, found: LoadReport) -> None:
        """Raises Unreadable for a window that contradicts earlier ones or lacks a field that the goal limits."""
        window = found.window
        if window.completed:
            if "latency" in self.needs and (window.latency is None or not window.latency.counts.size):
                raise Unreadable("latency is missing: expected the histogram of completed requests")
            if "mean" in self.needs and window.mean_s is None:
                raise Unreadable("mean_s is missing: expected the mean response of completed requests, s")
        self._lasted_s += window.duration_s
        self._offered += max(window.offered, found.sent or 0)
        self._ended += window.completed + window.failed
        at_once = self.run.load if self.run.closed else 0.0
        carried = CARRIED_S / self._lasted_s * self._offered + at_once
        if self._offered and self._ended > self._offered + carried:
            raise Unreadable(
                f"completed and failed are {self._ended} by then, and offered {self._offered}: expected at most the "
                f"{self._offered + math.floor(carried)} that were offered by then and in the {CARRIED_S:g} s before"
            )


def read_window_line(line: str) -> LoadReport:
    """One window. Raises Unreadable, which names the wrong member and what was expected."""
    try:
        document = json.loads(line)
        if not isinstance(document, dict):
            raise TypeError
    except EDITED:
        raise Unreadable("expected an object of JSON: {duration_s, offered, completed, …}") from None
    duration_s = _time(document, "duration_s")
    if not duration_s:
        raise Unreadable(f"duration_s is {_shown(document, 'duration_s')}: expected seconds above 0")
    completed, failed = _count(document, "completed"), _count(document, "failed") or 0
    if completed is None:
        raise Unreadable("completed is missing: expected how many requests were answered")
    started, under_way = _count(document, "started"), _count(document, "outstanding")
    unsent, offered = _count(document, "waiting") or 0, _count(document, "offered")
    mean_s, late_s = _time(document, "mean_s"), _time(document, "lateness_p99_s")
    try:
        latency = decode(document["latency"]) if document.get("latency") else None
    except EDITED as error:
        why = f" ({error})" if isinstance(error, BadHistogram) else ""
        raise Unreadable(f"latency is no histogram{why}: expected one as HdrHistogram encodes it") from None
    if offered is None:
        offered = started if started is not None else completed + failed
    if mean_s is None and latency is not None and latency.counts.size:
        mean_s = float(np.average(latency.values, weights=latency.counts)) * 1e-9
    busy_s = None if under_way is None else under_way * duration_s
    return LoadReport(
        Window(
            duration_s,
            offered,
            completed,
            failed,
            mean_s,
            latency,
            None if under_way is None else under_way + unsent,
            _time(document, "waited_s"),
        ),
        started,
        busy_s,
        lateness_p99_s=late_s,
    )


def _count(document: Mapping[str, Any], name: str) -> int | None:
    """A count; None if absent or null."""
    value = document.get(name)
    if value is not None and (
        isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST
    ):
        raise Unreadable(f"{name} is {_shown(document, name)}: expected a whole number of 0 or more")
    return value


def _time(document: Mapping[str, Any], name: str) -> float | None:
    """Seconds; None if absent or null."""
    value = document.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST:
        raise Unreadable(f"{name} is {_shown(document, name)}: expected seconds, 0 or more")
    return float(value)


def _shown(document: Mapping[str, Any], name: str) -> str:
    return json.dumps(document[name])[:40] if name in document else "missing"
