"""Trials, time and disk space that claims need, from what was measured so far or from a pilot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from etude.claims.claims_file import FEW, Claim, ClaimsFile
from etude.claims.evidence import Finding, findings
from etude.claims.run import Measured, Result, looks_of, read_state
from etude.errors import InputError
from etude.stats.sequential import trials_needed

POWER = 0.9
"""Probability with which the number of trials that is named decides."""


@dataclass(frozen=True)
class Cost:
    """Expected cost of a claim. Claims of one experiment share it."""

    claim: Claim
    trials: float | None
    """Trials of each test that decide it with probability `POWER`; infinite: no number does; None: not known, or
    trials cannot be added."""
    seconds: float | None
    """Time of its experiment with so many trials, at most the planned ones; None: not known."""
    disk_bytes: int | None
    """Size of its results; None: not known."""
    most: int | None
    """Most trials of its experiment; None if trials cannot be added."""

    @property
    def in_reach(self) -> bool:
        """False if the planned trials do not decide it with probability `POWER`."""
        return self.trials is None or self.most is None or self.trials <= self.most


def decision_cost(file: ClaimsFile, result: Result) -> tuple[float, float] | None:
    """Trials of each test that decide an undecided claim, and the seconds of the further ones; None where trials
    cannot be added or nothing is known."""
    extends = file.experiments[result.claim.experiment].extends
    if not extends or result.failed or not result.trials:
        return None
    trials = trials_to_decide(result.findings, file.margin, result.level)
    return None if trials is None else (trials, (trials - result.trials) * result.seconds / result.trials)


def trials_to_decide(found: Sequence[Finding], margin: float, level: float) -> float | None:
    """Trials of each test with which all bounds are decided, or one is broken; None if nothing is known."""
    counts = {
        each: trials_needed(each.estimate, distance(each, margin), level, POWER)
        for each in found
        if each.estimate is not None and not each.lacking
    }
    if not counts or len(counts) < len(found):
        return None
    broken = [count for each, count in counts.items() if not holds(each)]
    return max(float(FEW), min(broken) if broken else max(counts.values()))


def holds(found: Finding) -> bool:
    """True if the value itself lies within its bound."""
    assert found.estimate is not None
    return found.bound.low <= found.estimate.value <= found.bound.high


def distance(found: Finding, margin: float) -> float:
    """The way from the value to the nearer end of the bound, less the margin, on the scale of the errors."""
    estimate, bound = found.estimate, found.bound
    assert estimate is not None
    ends = [end for end in (bound.low, bound.high) if math.isfinite(end)]
    if bound.of == "trend":
        return min(abs(end - estimate.value) for end in ends)
    if estimate.logarithmic:
        ways = [abs(math.log(end / estimate.value)) for end in ends if end > 0.0 < estimate.value]
        return min(ways, default=math.inf) - math.log1p(margin)
    return min(abs(end - estimate.value) - margin * abs(end) for end in ends)


def costs(file: ClaimsFile, claims: Sequence[Claim], pilot: Path | None) -> tuple[Cost, ...]:
    """The expected cost of each claim. `pilot`: a directory of an earlier run of the claims, also of another scale.

    Raises:
        InputError: it is none.
    """
    state = read_state(pilot) if pilot is not None else None
    return tuple(
        _cost(file, claims, claim, state.experiments.get(claim.experiment) if state else None, pilot)
        for claim in claims
    )


def _cost(
    file: ClaimsFile, claims: Sequence[Claim], claim: Claim, done: Measured | None, pilot: Path | None
) -> Cost:
    experiment = file.experiments[claim.experiment]
    most = experiment.trials if experiment.extends else None
    if done is None or pilot is None or not done.looks:
        return Cost(claim, None, None, None, most)
    place, made = pilot / experiment.name, max(1, done.looks[-1].trials)
    size = sum(each.stat().st_size for each in place.rglob("*") if each.is_file())
    if most is None:
        return Cost(claim, None, done.seconds, size, most)
    try:
        found = findings(place, experiment, claim.hold, file.margin)
    except InputError:
        found = ()
    level = (1.0 - file.confidence) / len(claims) / len(looks_of(experiment))
    trials = trials_to_decide(found, file.margin, level)
    times = (most if trials is None else min(max(trials, FEW), most)) / made
    return Cost(claim, trials, done.seconds * times, round(size * times), most)
