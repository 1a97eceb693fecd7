"""Judgement of replays: whether each was faithful, and how its times compare with the recorded ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from etude.results.engine_reports import DroppedCalls, ReplayReport

LATE_S, MISMATCHES, UNPLAYED = 0.001, 0.001, 0.01
"""Default bounds of `etude replay --judge`: lateness of 99 % of calls in s, and two shares."""
UNCOUNTED = 1 << 48
"""Number of dropped transfers from which their true number is unknown."""
TIMES = {
    "run time": "run_s",
    "reading": "read_s",
    "writing": "write_s",
    "requests": "requests_s",
    "all calls": "calls_s",
}
"""Members of a report that the recording has too, by what they are."""


@dataclass(frozen=True)
class Fault:
    """The reason why a replay is not faithful."""

    kind: str
    """`no-call`, `no-lateness`, `late`, `results`, `uncounted`, `bytes`, `transfers` or `time`."""
    value: float = 0.0
    bound: float = 0.0
    """Seconds of `late`, else shares."""


@dataclass(frozen=True)
class TimePair:
    """One time of the recording, and of each replay, s."""

    what: str
    original_s: float | None
    """None: unknown."""
    lower_bound: bool
    """The recorded time is a lower bound."""
    replayed_s: tuple[float, ...]

    @property
    def ratio(self) -> float | None:
        """Mean of the replays / recorded time; None where that is unknown or 0."""
        if not self.original_s or self.lower_bound:
            return None
        return fmean(self.replayed_s) / self.original_s


def has_schedule(report: ReplayReport) -> bool:
    """False for timing none: how late its calls were cannot be judged, so neither whether it is faithful."""
    return report.timing != "none"


def fault_of(report: ReplayReport) -> Fault | None:
    """The first reason why a replay is not faithful, by the rules of `etude replay`; None where it is.

    Without a schedule: the first other reason.
    """
    if report.calls == 0:
        return Fault("no-call")
    if report.lateness_s is None and has_schedule(report):
        return Fault("no-lateness")
    if report.lateness_s is not None and report.lateness_s.p99 > LATE_S:
        return Fault("late", report.lateness_s.p99, LATE_S)
    if (share := report.mismatches / report.calls) > MISMATCHES:
        return Fault("results", share, MISMATCHES)
    left = report.unplayed
    if left.requests >= UNCOUNTED:
        return Fault("uncounted")
    shares = (
        ("bytes", left.bytes_share),
        ("transfers", left.requests_share),
        ("time", left.time_share or 0.0),
    )
    return next((Fault(kind, share, UNPLAYED) for kind, share in shares if share > UNPLAYED), None)


def faults_of(reports: Mapping[int, ReplayReport]) -> dict[int, Fault]:
    """The trials that are not faithful, with the reasons."""
    return {trial: fault for trial, each in reports.items() if (fault := fault_of(each)) is not None}


def time_pairs(reports: Sequence[ReplayReport]) -> Iterator[TimePair]:
    """The times that recording and replays have; requests only where there are some."""
    original = reports[0].original
    for what, member in TIMES.items():
        then = getattr(original, member)
        now = tuple(getattr(each, member) for each in reports)
        if what != "requests" or then or any(now):
            yield TimePair(what, then, not original.timed, now)


def dropped_transfers(report: ReplayReport) -> list[DroppedCalls]:
    """Kinds of calls that moved data and are not played, the largest first."""
    found = [each for each in report.unplayed.dropped if each.moves and each.calls]
    return sorted(found, key=lambda each: (-each.bytes, -each.requests, -each.time_s))
