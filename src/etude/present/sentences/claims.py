"""Sentences of claims: the verdict, its reason in one line, and what would decide it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from etude.claims.bound import Bound
from etude.claims.evidence import Finding, Lacking
from etude.claims.run import Result
from etude.stats.sequential import Estimate
from etude.units.formatting import counted, duration, percent, quantity, ratio_format, span

_LACKING: dict[Lacking, str] = {
    "not measured": "the results have no {detail}",
    "few": "{detail}: ten are needed",
    "unit": "it is measured in {detail}",
    "noise": "identical commands differ by {detail} here",
    "other work": "{detail} ends or prints otherwise than the test it is compared with",
    "no interval": "there is no interval: {detail}",
    "no rate": "{detail}",
}


def summary(results: Sequence[Result]) -> str:
    """The first line: how many claims are supported, refuted and undecided."""
    counts = {
        status: sum(r.status == status for r in results) for status in ("supported", "refuted", "undecided")
    }
    told = [f"{count} {status}" for status, count in counts.items() if count]
    return f"Of {counted(len(results), 'claim')}: {', '.join(told)}."


def reason(result: Result) -> str:
    """The measured values of the bounds beside the bounds, or why there are none; one line."""
    if result.failed:
        return f"could not be measured: {result.failed}"
    if not result.findings:
        return "not measured yet"
    return "; ".join(found_text(each, result.decision.level) for each in result.findings)


def found_text(found: Finding, level: float) -> str:
    """`ratio(elapsed, B/A) <= 1.3: 1.12 (1.08–1.17)`."""
    told = "" if found.estimate is None else estimate_text(found.bound, found.estimate, level)
    why = _LACKING[found.lacking].format(detail=found.detail) if found.lacking else ""
    return f"{found.bound.text}: {' – '.join(filter(None, (told, why)))}"


def estimate_text(bound: Bound, estimate: Estimate, level: float) -> str:
    """A value with the interval that decides."""
    interval = estimate.interval(level)
    if bound.of in ("ratio", "equivalent"):
        form = ratio_format(estimate.value, interval.low, interval.high)
        return f"{estimate.value:{form}} ({span(interval.low, interval.high)})"
    if bound.of == "trend":
        return (
            f"{percent(estimate.value)} over the series ({percent(interval.low)} to {percent(interval.high)})"
        )
    ends = [
        quantity(end, estimate.unit) if math.isfinite(end) else "?" for end in (interval.low, interval.high)
    ]
    return f"{quantity(estimate.value, estimate.unit)} ({ends[0]} to {ends[1]})"


def undecided(result: Result, trials: float, seconds: float) -> str:
    """What would decide a claim: further trials and their time, or nothing that can be run."""
    name = result.claim.id
    if math.isinf(trials):
        return f"{name}: the value is too near to its bound; more trials do not decide it."
    more = max(1, round(trials) - result.trials)
    time = f", about {duration(seconds)}" if math.isfinite(seconds) and seconds > 0 else ""
    return f"{name}: about {counted(more, 'further trial')} of each test would decide it{time}."


CLAIM = "Claim"
MEASURED = "Measured"
OPEN = "What would decide it"
HOW = "How it was measured"
MACHINE = "Machine"
COMMANDS = "Commands of the experiments"
FILES = "Programs, shared libraries and inputs, by digest"
BADGES = "Check lists of the artifact badges"
BADGE_CAPTION = "yes: the files show it; authors: nothing in the files shows it"


def figure_caption(bound: Bound) -> str:
    """The caption of a claim's figure."""
    return f"Value with the interval that decides, against the bound {bound.text}"
