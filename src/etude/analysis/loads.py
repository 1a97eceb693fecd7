"""Figures of a load that was offered: rates, response times, errors, and what limited it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from etude.peak.window import Window, joined_windows
from etude.results.engine_reports import LoadReport, ResponseTimes
from etude.results.histograms import Histogram, decode, joined

Limit = Literal["generator", "server", "clients", "none", "unknown"]
"""`clients`: a closed loop, in which nothing is due before the answer."""
QUANTILES = (50.0, 90.0, 99.0, 99.9)
LEAST_BEYOND = 1
"""Responses that must lie beyond a quantile for it to be given."""
LEAST_WAITING, WAITING_SHARE = 3, 0.5
"""Requests due and not sent at the end of a window, in a share of the windows, from which on the system was too slow:
fewer, or rarely, are those that were due at that moment."""


@dataclass(frozen=True)
class WindowFigures:
    """One window of a load."""

    end_s: float
    """Its end after the begin of the first window, s."""
    offered_rate: float
    completed_rate: float
    failed: int
    quantiles_s: tuple[float | None, ...]
    """Response times at `QUANTILES`, s; None where a window has too few."""
    waiting: int


@dataclass(frozen=True)
class LoadFigures:
    """One or more runs of a load, joined."""

    runs: int
    asked: float | None
    """Requested rate, 1/s; None in a closed loop, where the summary is missing, or where runs differ."""
    duration_s: float
    offered: int
    completed: int
    completed_late: int
    """Those of the completed that were answered after the last window."""
    failed: int
    abandoned: int
    errors: dict[str, int]
    """Failed requests by reason, those without any left out."""
    mean_s: float | None
    quantiles_s: tuple[float | None, ...]
    max_s: float | None
    responses: Histogram | None
    """Response times of all answers, ns."""
    limit: Limit
    waiting: int
    """Most requests that were due and not sent at the end of a window; 0 where they do not show a slow system."""
    stuck: int
    """Most requests that were sent and not answered at the end, beyond those that the mean response explains."""
    busy: float | None
    """Highest share of time in which the sending thread worked."""
    lateness_p99_s: float | None
    """Highest of the runs, s."""

    @property
    def offered_rate(self) -> float:
        """Requests due per second."""
        return self.offered / self.duration_s if self.duration_s else 0.0

    @property
    def completed_rate(self) -> float:
        """Good answers per second, within the windows."""
        return (self.completed - self.completed_late) / self.duration_s if self.duration_s else 0.0

    @property
    def failed_share(self) -> float:
        """Failed requests as a share of the ended ones."""
        return self.failed / max(self.completed + self.failed, 1)


def load_figures(runs: Sequence[LoadReport]) -> LoadFigures:
    """The figures of at least one run."""
    summaries = [run.summary for run in runs if run.summary is not None]
    parts = [part for run in runs for part in _parts(run)]
    texts = [part["latency"] for part in parts if part.get("latency")]
    responses = joined([decode(text) for text in texts]) if texts else None
    asked = {summary.asked_rate for summary in summaries}
    waiting = [window.get("waiting", 0) for run in runs for window in run.windows]
    late_windows = sum(count >= LEAST_WAITING for count in waiting)
    backlog = max(waiting, default=0) if late_windows and late_windows >= WAITING_SHARE * len(waiting) else 0
    abandoned = sum(summary.abandoned for summary in summaries)
    stuck = max(joined_windows([_window(each) for each in run.windows]).stuck for run in runs)
    errors: dict[str, int] = {}
    for summary in summaries:
        for name, found in summary.failures.items():
            counts = found if isinstance(found, Mapping) else {name: found or 0}
            for reason, count in counts.items() if name != "status" else ():
                errors[reason] = errors.get(reason, 0) + count
    alone = runs[0].response if len(runs) == 1 and responses is None else ResponseTimes()
    stated = (alone.p50_s, alone.p90_s, alone.p99_s, alone.p99_9_s)
    lateness = [run.lateness_p99_s for run in runs if run.lateness_p99_s is not None]
    return LoadFigures(
        len(runs),
        asked.pop() if len(asked) == 1 else None,
        sum(float(_total(run, "duration_s")) for run in runs),
        int(sum(_total(run, "offered") for run in runs)),
        int(sum(_total(run, "completed") for run in runs)),
        sum(run.drained["completed"] for run in runs if run.drained),
        int(sum(_total(run, "failed") for run in runs)),
        abandoned,
        {name: count for name, count in errors.items() if count},
        _mean_s(parts) if parts else alone.mean_s,
        stated if responses is None else _quantiles_s(responses),
        alone.max_s if responses is None else float(responses.values[-1]) * 1e-9,
        responses,
        _limit(runs, stuck + backlog + abandoned),
        backlog,
        stuck,
        max((summary.busy for summary in summaries), default=None),
        max(lateness, default=None),
    )


def window_figures(run: LoadReport) -> list[WindowFigures]:
    """The windows of a run, in their order."""
    found, end_s = [], 0.0
    for window in run.windows:
        length_s = float(window.get("duration_s", 0.0))
        end_s += length_s
        if not length_s:
            continue
        latency = decode(window["latency"]) if window.get("latency") else None
        rates = (window.get("offered", 0) / length_s, window["completed"] / length_s)
        failed, waiting = window.get("failed", 0), window.get("waiting", 0)
        found.append(WindowFigures(end_s, *rates, failed, _quantiles_s(latency), waiting))
    return found


def _limit(runs: Sequence[LoadReport], unserved: int) -> Limit:
    summaries = [run.summary for run in runs if run.summary is not None]
    if any(summary.generator_limited for summary in summaries):
        return "generator"
    if len(summaries) < len(runs):
        return "unknown"
    if unserved:
        return "server"
    return "clients" if summaries[0].arrivals == "closed" else "none"


def _window(window: Mapping[str, Any]) -> Window:
    """A window without its histogram, for what is outstanding at its end."""
    known = "outstanding" in window and window.get("duration_s")
    return Window(
        float(window.get("duration_s", 0.0)),
        window.get("offered", 0),
        window["completed"],
        window.get("failed", 0),
        window.get("mean_s"),
        None,
        window["outstanding"] + window.get("waiting", 0) if known else None,
        window.get("waited_s"),
    )


def _total(run: LoadReport, name: str) -> float:
    """A sum over its windows; the summary's where the output has no windows."""
    if not run.windows and run.summary is not None:
        return float(getattr(run.summary, name))
    parts = run.windows if name == "duration_s" else _parts(run)
    return float(sum(part.get(name, 0) for part in parts))


def _parts(run: LoadReport) -> tuple[Mapping[str, Any], ...]:
    """Its windows, and the answers after the last of them; none where the output has only these."""
    return (*run.windows, run.drained) if run.drained and run.windows else run.windows


def _mean_s(parts: Sequence[Mapping[str, Any]]) -> float | None:
    timed = [(part["mean_s"], part.get("completed", 0)) for part in parts if part.get("mean_s") is not None]
    weight = sum(count for _, count in timed)
    return sum(mean * count for mean, count in timed) / weight if weight else None


def _quantiles_s(found: Histogram | None) -> tuple[float | None, ...]:
    """Nearest-rank quantiles, s."""
    if found is None or not found.counts.size:
        return (None,) * len(QUANTILES)
    ends = found.counts.cumsum()
    total = int(ends[-1])
    return tuple(
        float(found.values[int(np.searchsorted(ends, np.ceil(total * percent / 100)))]) * 1e-9
        if total * (100 - percent) / 100 >= LEAST_BEYOND
        else None
        for percent in QUANTILES
    )


@dataclass(frozen=True)
class KindFigures:
    """Requests of one kind."""

    name: str
    completed: int
    failed: int
    mean_s: float | None
    quantiles_s: tuple[float | None, ...]


def kind_figures(runs: Sequence[LoadReport]) -> list[KindFigures]:
    """The kinds of requests, the most frequent first."""
    by: dict[str, list[Mapping[str, Any]]] = {}
    for part in (each for run in runs for each in _parts(run)):
        for name, answers in part.get("by", {}).items():
            by.setdefault(name, []).append(answers)
    found = []
    for name, parts in by.items():
        texts = [part["latency"] for part in parts if part.get("latency")]
        responses = joined([decode(text) for text in texts]) if texts else None
        completed, failed = (sum(part.get(member, 0) for part in parts) for member in ("completed", "failed"))
        if completed or failed:
            found.append(KindFigures(name, completed, failed, _mean_s(parts), _quantiles_s(responses)))
    return sorted(found, key=lambda kind: (-kind.completed - kind.failed, kind.name))
