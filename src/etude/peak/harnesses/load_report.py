"""Reports of a load command as windows: the common part of all readers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

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
