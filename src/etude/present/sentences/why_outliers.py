"""Sentences of slow trials: how many there are, what differs in them, and what is not known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from etude.analysis.interference import OTHERS
from etude.units.formatting import counted, percent, quantity
from etude.why.outlier_trials import OutlierTrials
from etude.why.outliers import FEW_SLOW, Observed, OutlierCause, Outliers

CAUSE, TYPICAL, SLOW, SHARE, P = "quantity", "typical", "slow", "share of the extra time", "p"
CAUSES = "Means of the slow and of the other trials"
_NAMES = {"run delay": "waiting for a CPU", "user": "CPU time, user", "system": "CPU time, kernel"}
_OF_CALLS = {"s": "time in ", "1": "number of ", "B": "bytes of "}


def headline(test: str, found: Outliers) -> str:
    """`3 of 40 trials of t are slow, above 1.2 s: 1.5 s instead of 1.0 s.`"""
    above = f"above {quantity(found.bound_s, 's')} (median + 3 scaled MAD)"
    if not found.slow:
        rate = percent(3.0 / found.trials)
        return (
            f"None of {counted(found.trials, 'trial')} of {test} is slow, {above}; "
            f"fewer than {rate} are (95 %): make more with --trials if slow ones are rarer."
        )
    means = f"{quantity(found.slow_s, 's')} instead of {quantity(found.typical_s, 's')}"
    return f"{len(found.slow)} of {counted(found.trials, 'trial')} of {test} are slow, {above}: {means} on average."


def result_line(found: Outliers) -> str:
    """A sentence where no cause is listed; empty if there are some, or no slow trials."""
    if found.causes or not found.slow:
        return ""
    if found.needed is not None:
        few = f"fewer than {FEW_SLOW}" if len(found.slow) < FEW_SLOW else "too few"
        return (
            f"Slow trials are {few}: their causes cannot be told from chance. About {found.needed:,} trials are "
            "needed: measure again with --trials into another directory with -o."
        )
    return f"None of {found.looked_at} quantities differs significantly between slow and other trials."


def observed_text(of: Observed, processes: Sequence[str]) -> str:
    """A quantity in words."""
    if of.source == "call":
        return f"{_OF_CALLS[of.unit]}{of.name}(){f' {of.file}' if of.file else ''}"
    if of.source == "monitor":
        by = f" ({', '.join(processes)})" if of.name == OTHERS.name and processes else ""
        return f"machine: {of.name}{by}"
    return _NAMES.get(of.name, of.name.replace("_", " "))


def value_text(value: float, unit: str) -> str:
    """A value in its unit."""
    return percent(value) if unit == "share" else quantity(value, "" if unit == "1" else unit)


def share_text(cause: OutlierCause) -> str:
    """Share of the extra time; a dash for what is no time."""
    return "–" if cause.share is None else percent(cause.share)


def notes(measured: OutlierTrials, found: Outliers) -> Iterator[str]:
    """How it was compared, what the recorder costs, what is coarse."""
    if found.causes:
        yield (
            f"p of a permutation test of rank sums, for all {found.looked_at} quantities at "
            "once (Holm). Shares overlap: time in a call contains its CPU time and its waiting."
        )
    if measured.plain_s:
        yield (
            f"Under the recorder typical trials take {found.typical_s / measured.plain_s:.3f} times the median of "
            "the stored trials."
        )
    if measured.coarse:
        yield "Trials are shorter than the monitor's 100 ms: its readings also hold what ran between them."
