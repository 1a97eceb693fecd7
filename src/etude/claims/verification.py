"""Claims run again elsewhere: each result beside the original one, their ratio, and files that are others."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath

from etude.claims.bound import Bound
from etude.claims.claims_file import Claim
from etude.claims.run import Result
from etude.stats.sequential import Estimate

LEVEL = 0.05
"""Level of the intervals of ratios of ratios, and of directions."""


@dataclass(frozen=True)
class Agreement:
    """One bound, there and here."""

    bound: Bound
    theirs: Estimate | None
    ours: Estimate | None
    same_direction: bool | None
    """True if both values lie on the same side: of 1 for a ratio, else of the bound; None: an interval holds it."""
    change: Estimate | None
    """Our value over theirs; None where a value is missing, or is no positive number."""


@dataclass(frozen=True)
class Verified:
    """One claim, there and here."""

    claim: Claim
    theirs: Result
    ours: Result
    bounds: tuple[Agreement, ...]


@dataclass(frozen=True)
class OtherFile:
    """A program, library or input that is another one here; empty: it is not there."""

    name: str
    theirs: str
    ours: str


def verified(theirs: Result, ours: Result) -> Verified:
    """The results of one claim, side by side."""
    bounds = {f.bound.text: f.bound for result in (theirs, ours) for f in result.findings}
    then, now = ({f.bound.text: f.estimate for f in result.findings} for result in (theirs, ours))
    pairs = [
        _agreement(each, then.get(each.text), now.get(each.text))
        for each in bounds.values() or ours.claim.hold
    ]
    return Verified(ours.claim, theirs, ours, tuple(pairs))


def _agreement(bound: Bound, theirs: Estimate | None, ours: Estimate | None) -> Agreement:
    if theirs is None or ours is None:
        return Agreement(bound, theirs, ours, None, None)
    sides = [_side(bound, each) for each in (theirs, ours)]
    same = None if None in sides else sides[0] == sides[1]
    return Agreement(bound, theirs, ours, same, change_of(theirs, ours))


def _side(bound: Bound, estimate: Estimate) -> int | None:
    """1 above, 0 within and -1 below; None if the interval does not say it."""
    low, high = (1.0, 1.0) if bound.is_ratio else (bound.low, bound.high)
    interval = estimate.interval(LEVEL)
    if interval.low > high:
        return 1
    if interval.high < low:
        return -1
    return 0 if low < high and low <= interval.low and interval.high <= high else None


def change_of(theirs: Estimate, ours: Estimate) -> Estimate | None:
    """Our value over theirs, of two independent experiments.

    Errors add in squares on the logarithm; the degrees of freedom are Welch's (1947). The error of a value that is not
    logarithmic is taken relative to it (delta method).
    """
    if theirs.value <= 0.0 or ours.value <= 0.0 or theirs.unit != ours.unit:
        return None
    (below, above), (lower, upper) = _relative(theirs), _relative(ours)
    return Estimate(
        ours.value / theirs.value,
        math.hypot(lower, above),
        math.hypot(upper, below),
        _welch((max(below, above), theirs.degrees), (max(lower, upper), ours.degrees)),
        True,
        min(theirs.count, ours.count),
    )


def _relative(estimate: Estimate) -> tuple[float, float]:
    by = 1.0 if estimate.logarithmic else estimate.value
    return estimate.low_error / by, estimate.high_error / by


def _welch(*parts: tuple[float, float]) -> float:
    spread = sum(error**4 / degrees for error, degrees in parts if math.isfinite(degrees))
    total = sum(error**2 for error, _ in parts)
    return total**2 / spread if spread > 0.0 and math.isfinite(total) else math.inf


def other_files(theirs: Mapping[str, str], ours: Mapping[str, str]) -> tuple[OtherFile, ...]:
    """Files whose digests differ, or that only one side has.

    A file that only one side has is the same as the only one of that name of the other side, wherever it lies.
    """
    pairs = {path: path for path in {*theirs, *ours}}
    lone = [_by_name(one.keys() - other.keys()) for one, other in ((theirs, ours), (ours, theirs))]
    for name in lone[0].keys() & lone[1].keys():
        (there, *others), (here, *more) = lone[0][name], lone[1][name]
        if not others and not more:
            pairs[there] = pairs.pop(here)
    return tuple(
        OtherFile(there, theirs.get(there, ""), ours.get(here, ""))
        for there, here in sorted(pairs.items())
        if theirs.get(there) != ours.get(here)
    )


def _by_name(paths: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path in paths:
        found.setdefault(PurePath(path).name, []).append(path)
    return found
