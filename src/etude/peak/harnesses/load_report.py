"""What a load command says while it runs, as windows: what all readers have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from etude.peak.window import Window
from etude.results.histograms import Histogram

MOST_TEXT = 16 << 20
"""Characters of output that a reader keeps, or takes without finding anything in them."""


class Unreadable(ValueError):
    """What the load command wrote is not what it should be: what, and what was expected."""


@dataclass(frozen=True, slots=True)
class Run:
    """What a reader knows of the run that it reads."""

    load: float
    """Asked for."""
    closed: bool
    """Whether it is a concurrency: then nothing is due, and what was sent was offered."""
    runlength_s: float
    window_s: float
    log: str
    """Where {log} of the command points to: a prefix of files."""

    def due(self, from_s: float, until_s: float, sent: int) -> int:
        """Requests due in that stretch: of those asked for, on average; of closed systems those sent."""
        return sent if self.closed else round(self.load * until_s) - round(self.load * from_s)


@dataclass(frozen=True, slots=True)
class LoadReport:
    """A window, and what only a judgement of the generator needs."""

    window: Window
    sent: int | None = None
    """Requests begun; None where that is not told."""
    busy_s: float | None = None
    """Summed time of requests under way, from when they were sent; None: as the mean response says."""
    refused: int = 0
    lateness_p99_s: float | None = None
    """99 % of the requests that could be sent were sent at most so long after they were due; None: not reported."""
    parts: tuple[LoadReport, ...] = ()
    """What each of several generators reported of it; empty of one."""

    @property
    def waited_s(self) -> float:
        """Summed time of requests under way, s: as reported, else as the mean response says, or the percentiles."""
        window = self.window
        if self.busy_s is not None:
            return self.busy_s
        if window.mean_s is None and window.latency is not None:
            return float(window.latency.values @ window.latency.counts) * 1e-9
        return (window.mean_s or 0.0) * window.completed


class Reader(Protocol):
    """Of one run."""

    def feed(self, text: str) -> list[LoadReport]:
        """What the command printed since; called also when it printed nothing. Raises Unreadable."""
        ...

    def end(self) -> list[LoadReport]:
        """What is left, when the command has ended. Raises Unreadable where it told nothing."""
        ...


def histogram_of(values_ns: NDArray[np.float64], counts: NDArray[np.int64] | None = None) -> Histogram | None:
    """Classes of three significant digits, ns; None where there are none."""
    if not values_ns.size:
        return None
    values = np.maximum(values_ns, 1.0)
    step = 10.0 ** np.maximum(np.floor(np.log10(values)) - 2, 0)
    classes = (np.ceil(values / step) * step).astype(np.int64)
    found, place = np.unique(classes, return_inverse=True)
    weights = np.ones(values.size) if counts is None else counts
    return Histogram(found, np.bincount(place, weights=weights).astype(np.int64))


def bounded_text(unread: int, expected: str) -> None:
    """Raises Unreadable where so many characters are too many."""
    if unread > MOST_TEXT:
        raise Unreadable(f"it printed more than {MOST_TEXT >> 20} MiB: expected {expected}")


def excerpt(text: str) -> str:
    """The last line that says something, short enough for an error."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:120] if lines else "nothing"
