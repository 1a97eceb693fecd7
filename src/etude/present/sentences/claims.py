"""Sentences of claims: the verdict, its reason in one line, and what would decide it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from etude.claims.bound import Bound
from etude.claims.claims_file import CONFIDENCE, MARGIN, ClaimsFile, Experiment
from etude.claims.cost import POWER, Cost
from etude.claims.evidence import Finding, Lacking
from etude.claims.run import Result
from etude.errors import EtudeError
from etude.stats.sequential import Estimate
from etude.units.formatting import counted, duration, percent, quantity, ratio_format, span

_LACKING: dict[Lacking, str] = {
    "not measured": "the results have no {detail}",
    "few": "{detail}: ten are needed",
    "unit": "it is measured in {detail}",
    "noise": "identical commands differ by {detail} here",
    "other work": "{detail} ends or prints otherwise than the test it is compared with",
    "varying output": "the baseline prints something else in each run, so that outputs cannot be compared: "
    'correct it, or set output = "any"',
    "no interval": "there is no interval: {detail}",
    "no rate": "no rate is known: {detail}",
    "early": "a trend is judged when all planned trials are made",
    "words": "is in words, or about a difference: a reader judges",
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
        return f"could not be measured: {result.failed.partition('; if that is how it should end')[0]}"
    if not result.findings:
        return "not measured yet"
    return "; ".join(found_text(each, result.level) for each in result.findings)


def caveats(file: ClaimsFile, results: Sequence[Result]) -> list[str]:
    """Lines on what the file leaves unchecked, or has chosen itself: outputs, hooks, confidence, margin."""
    used = {r.claim.experiment for r in results}
    chosen = [e for e in file.experiments.values() if e.name in used]
    compared = {r.claim.experiment for r in results if any(bound.is_ratio for bound in r.claim.hold)}
    unguarded = [e.name for e in chosen if not e.guards_output and e.name in compared]
    alone = [r.claim.id for r in results if not any(b.is_ratio for b in r.claim.hold) and _prints(file, r)]
    told = [
        ("outputs are not compared in experiment", unguarded),
        ("no outputs are compared, since no tests are, by claim", alone),
    ]
    lines = [f"{what} {', '.join(names)}" for what, names in told if names]
    lines += [
        f"experiment {e.name} also runs {key}: {line}"
        for e in chosen
        for key, line in e.hooks.items()
        if line
    ]
    if file.confidence != CONFIDENCE:
        lines.append(f"the file's confidence is {percent(file.confidence)}")
    if file.margin != MARGIN:
        lines.append(f"the file's margin is {percent(file.margin)}")
    return lines


def _prints(file: ClaimsFile, result: Result) -> bool:
    return len(file.experiments[result.claim.experiment].commands) > 1


def found_text(found: Finding, level: float) -> str:
    """`ratio(elapsed, B/A) <= 1.3: 1.12 (1.08–1.17)`."""
    told = "" if found.estimate is None else estimate_text(found.bound, found.estimate, level)
    why = _LACKING[found.lacking].format(detail=found.detail) if found.lacking else ""
    return f"{found.bound.text}: {'; '.join(filter(None, (told, why)))}"


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


def undecided(result: Result, most: int, trials: float, seconds: float) -> str:
    """The further trials that would decide a claim and their time, or that none do. most: trials that are planned."""
    name = result.claim.id
    if math.isinf(trials):
        return f"{name}: the value is too near to its bound; more trials do not decide it."
    more = max(1, math.ceil(trials) - result.trials)
    time = f", about {duration(seconds)}" if math.isfinite(seconds) and seconds > 0 else ""
    how = (
        "with a larger --budget"
        if result.trials < most
        else f"with trials = {result.trials + more} or more in the file, in another directory"
    )
    return f"{name}: about {counted(more, 'further trial')} of each test would decide it{time}: {how}."


def bound_sentence(bound: Bound) -> str:
    """The statement of a bound in words, for a claims file that is made from results."""
    if bound.of == "expect":
        return f"What the script expects of {', '.join(bound.tests) or 'its tests'} holds."
    if bound.of == "peak":
        return f"The server sustains {bound.low:g} requests/s."
    if bound.of == "best":
        side, end = ("least", bound.low) if math.isfinite(bound.low) else ("most", bound.high)
        return f"The best response is at {side} {quantity(end, bound.unit or '1')}."
    base, other = bound.tests
    if bound.of == "equivalent":
        return f"{bound.metric} of {other} is that of {base} within {percent(bound.high - 1.0)}."
    side, end = ("at least", bound.low) if bound.low > 0.0 else ("at most", bound.high)
    return f"{bound.metric} of {other} is {side} {end:g} times that of {base}."


def trials_text(cost: Cost) -> str:
    """Trials that decide a claim, of the planned ones."""
    if cost.trials is None:
        return "not known"
    needed = "no number" if math.isinf(cost.trials) else f"{math.ceil(cost.trials):,}"
    return needed if cost.in_reach else f"{needed} (of {cost.most:,})"


def seconds_text(seconds: float | None) -> str:
    """A time, or that it is not known."""
    return "not known" if seconds is None else duration(seconds)


def bytes_text(size: int | None) -> str:
    """A size, or that it is not known."""
    return "not known" if size is None else quantity(size, "B")


def check_lines(errors: Sequence[EtudeError], costs: Sequence[Cost], pilot: bool) -> list[str]:
    """The end of a check: how many claims can be run, for how long, and which cannot be decided."""
    lines = [
        f"{cost.claim.id}: its {cost.most} trials are too few to decide it with {percent(POWER)} certainty."
        for cost in costs
        if not cost.in_reach
    ]
    seconds = {cost.claim.experiment: cost.seconds for cost in costs}
    known = [each for each in seconds.values() if each is not None]
    count = counted(len(costs), "claim")
    can = (
        f"{count}: everything resolves, and this machine meets all needs."
        if not errors
        else f"{count} checked."
    )
    unknown = "Time and disk are not known: name an earlier run with --pilot DIR."
    time = f"About {duration(sum(known))} in all." if len(known) == len(seconds) else unknown
    return [*lines, f"{can} {time}"]


def look_line(experiment: Experiment, trials: int) -> str:
    """The progress line of a look."""
    count = f"{counted(trials, 'trial')} of each test" if experiment.extends else experiment.kind
    return f"{experiment.name}: {count}"
