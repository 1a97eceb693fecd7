"""An experiment and its repetition: is each verdict reproduced?

The ratio of two interleaved tests is comparable across sessions, since the machine's state affects both alike. The
time of a test is not, unless the spread between sessions is known (`etude.stats.cross_session`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from scipy.special import stdtr

from etude.analysis.cross_session import CrossSession, compare_across
from etude.analysis.snapshot_differences import Difference, compare, compare_states, state_of
from etude.analysis.subject import Subject
from etude.analysis.verdict import Verdict
from etude.errors import EtudeError
from etude.stats.cross_session import CrossSessionRatio, NotSupported, SessionSpread
from etude.stats.intervals import t_quantile
from etude.stats.multiplicity import holm
from etude.stats.ratio import Ratio
from etude.stats.samples import exponential

__all__ = ["Difference", "compare", "machine_differences"]


def machine_differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[Difference, ...]:
    """Differences of machine, programs and versions that both experiment.json record."""
    return compare_states(_state(then), _state(now)).differs


def _state(document: Mapping[str, Any]) -> dict[str, Any]:
    state = state_of(document)
    for test in document.get("tests") or ():  # files of the command, if recorded
        made_of = {member: test.get(member) or {} for member in ("programs", "digests", "executables")}
        if any(made_of.values()):
            state[str(test.get("name"))] = made_of
    return state


Outcome = Literal["reproduced", "not reproduced", "undecided"]

LEVEL = 0.05
NOTHING_WITHIN = 0.05
"""Relative difference within which both intervals must lie for "no difference" to be reproduced."""

SAME_WITHIN = 0.01
"""Ratios of one direction that certainly differ by less than this count as the same."""


@dataclass(frozen=True)
class Reason:
    """Reason for an outcome."""

    kind: Literal[
        "no comparison",
        "no spread",
        "opposite",
        "too wide",
        "no difference",
        "same",
        "close",
        "disagree",
        "other size",
        "gone",
        "new",
        "less known now",
        "less known then",
        "not comparable",
        "several sessions",
        "stated",
        "known sessions",
    ]
    share: float = 0.0
    """A relative difference that is excluded, or within which both are the same."""
    sessions: int = 0
    """Number of sessions from which the spread between sessions is known."""
    refused: NotSupported | None = None


@dataclass(frozen=True)
class Change:
    """now/then of two ratios, or of two levels; the interval is at 95 %."""

    ratio: float
    low: float
    high: float
    p: float | None
    """Two-sided p of no change; None if nothing varies."""


@dataclass(frozen=True)
class RepeatedRatio:
    """A comparison of two interleaved tests, then and now."""

    base: str
    other: str
    then: Ratio
    now: Ratio | None
    change: Change | None
    adjusted_p: float | None
    """The change's p by Holm, over all comparisons of the experiment."""
    outcome: Outcome
    reason: Reason


@dataclass(frozen=True)
class RepeatedLevel:
    """One test's own values, then and now."""

    test: str
    then: float
    """Means, in `unit`; the change is that of the geometric ones."""
    now: float
    unit: str
    change: Change | None
    adjusted_p: float | None
    outcome: Outcome | None
    """None: it cannot be judged."""
    reason: Reason


@dataclass(frozen=True)
class Repetition:
    """An experiment compared with its repetition, and the differences of their machines."""

    metric: str
    ratios: tuple[RepeatedRatio, ...]
    levels: tuple[RepeatedLevel, ...]
    differences: tuple[Difference, ...]
    notes: tuple[str, ...] = ()
    """Notes of the caller."""
    refused: str = ""
    """Reason why the tests' own values were not compared; empty if they were."""
    lost: tuple[str, ...] = ()
    """Tests without an included trial in the repetition."""

    @property
    def parts(self) -> tuple[RepeatedRatio | RepeatedLevel, ...]:
        """All comparisons and levels, comparisons first."""
        return (*self.ratios, *self.levels)

    @property
    def outcome(self) -> Outcome:
        """Outcome of all judged parts: a single contradicted verdict gives "not reproduced"."""
        outcomes = [part.outcome for part in self.parts if part.outcome is not None]
        if "not reproduced" in outcomes:
            return "not reproduced"
        return "reproduced" if outcomes and "undecided" not in outcomes else "undecided"


def repetition(
    then: Verdict,
    now: Verdict,
    *,
    known: SessionSpread | None = None,
    stored: Sequence[Subject] = (),
    same_within: float = SAME_WITHIN,
    notes: Sequence[str] = (),
) -> Repetition:
    """Each comparison in blocks and each test's own level, then and now, and the differences of the machines.

    known: the stated spread between sessions; by default it is computed from those of `then` and `stored`.
    """
    metric = then.primary
    after = {
        (c.base, c.other): c.ratio
        for c in now.comparisons
        if c.ratio.method == "paired" and c.metric == metric
    }
    pairs = [
        (c.base, c.other, c.ratio, after.get((c.base, c.other)))
        for c in then.comparisons
        if c.ratio.method == "paired" and c.metric == metric
    ]
    refused = ""
    try:
        across = compare_across(then.subject, now.subject, metric, known=known, stored=stored)
    except (EtudeError, ValueError) as error:
        across, refused = [], str(error)
    means = [(a.base_mean, float(now.subject.test(a.other).sample(metric).mean())) for a in across]
    return Repetition(
        metric,
        ratios_again(pairs, same_within=same_within),
        levels_again(across, means),
        machine_differences(then.subject.experiment or {}, now.subject.experiment or {}),
        tuple(notes),
        refused,
        _lost(then, now),
    )


def _lost(then: Verdict, now: Verdict) -> tuple[str, ...]:
    made = {test.test for test in now.tests if test.kept}
    return tuple(test.test for test in then.tests if test.test not in made)


Pair = tuple[str, str, Ratio, Ratio | None]
"""Baseline, other test, and ratio then and now (None: there is none)."""


def ratios_again(pairs: Sequence[Pair], *, same_within: float = SAME_WITHIN) -> tuple[RepeatedRatio, ...]:
    """Outcome of the repetition of these comparisons.

    The change of the log ratio is tested by Welch's t at 5 %, adjusted by Holm over all comparisons. It counts as none
    where its interval lies within `same_within` of 1.
    """
    changes = [None if now is None else change_of(then, now) for _, _, then, now in pairs]
    adjusted = [a.adjusted for a in holm([c.p if c else None for c in changes])]
    found = []
    for (base, other, then, now), change, p in zip(pairs, changes, adjusted, strict=True):
        outcome, reason = _judge(then, now, change, p, same_within)
        found.append(RepeatedRatio(base, other, then, now, change, p, outcome, reason))
    return tuple(found)


def change_of(then: Ratio, now: Ratio) -> Change | None:
    """now/then of two independent ratios; None where either has no finite logarithm or spread.

    Source: Welch's t on the two log ratios, with Satterthwaite's degrees of freedom.
    """
    if not (0.0 < then.ratio < math.inf and 0.0 < now.ratio < math.inf):
        return None
    if not (math.isfinite(then.standard_error) and math.isfinite(now.standard_error)):
        return None
    parts = [(r.standard_error**2, max(r.degrees, 1.0)) for r in (then, now)]
    total = sum(part for part, _ in parts)
    centre = math.log(now.ratio / then.ratio)
    if total == 0.0:
        ratio = math.exp(centre)
        return Change(ratio, ratio, ratio, 1.0 if centre == 0.0 else 0.0)
    degrees = 1.0 / sum((part / total) ** 2 / d for part, d in parts)
    error = math.sqrt(total)
    half = t_quantile(0.95, degrees) * error
    p = min(1.0, 2.0 * float(stdtr(degrees, -abs(centre) / error)))
    return Change(math.exp(centre), exponential(centre - half), exponential(centre + half), p)


def _judge(
    then: Ratio, now: Ratio | None, change: Change | None, p: float | None, same_within: float
) -> tuple[Outcome, Reason]:
    if now is None:
        return "undecided", Reason("no comparison")
    if change is None or p is None:
        return "undecided", Reason("no spread")
    was, is_now = direction(then), direction(now)
    changed = p < LEVEL
    if was * is_now < 0:
        return "not reproduced", Reason("opposite")
    if was == is_now:
        if not changed and was == 0:
            bound = max(abs(limit - 1.0) for ratio in (then, now) for limit in (ratio.low, ratio.high))
            if bound > NOTHING_WITHIN:
                return "undecided", Reason("too wide", bound)
            return "reproduced", Reason("no difference", bound)
        if not changed:
            return "reproduced", Reason("same")
        if 1.0 / (1.0 + same_within) <= change.low and change.high <= 1.0 + same_within:
            return "reproduced", Reason("close", same_within)
        if was == 0:
            return "undecided", Reason("disagree")
        return "undecided", Reason("other size")
    if changed:
        return "not reproduced", Reason("gone" if was else "new")
    return "undecided", Reason("less known now" if was else "less known then")


def direction(ratio: Ratio) -> int:
    """1 where the interval lies above 1, -1 below, else 0."""
    return (ratio.low > 1.0) - (ratio.high < 1.0)


def levels_again(
    found: Sequence[CrossSession], means: Sequence[tuple[float, float]]
) -> tuple[RepeatedLevel, ...]:
    """Outcome of the repetition of each test's own level; `means`: of each, then and now."""
    levels = [_level(across, *mean) for across, mean in zip(found, means, strict=True)]
    adjusted = [a.adjusted for a in holm([level.change.p if level.change else None for level in levels])]
    return tuple(
        replace(level, adjusted_p=p) if p is None else _decided(level, p)
        for level, p in zip(levels, adjusted, strict=True)
    )


def _level(across: CrossSession, then: float, now: float) -> RepeatedLevel:
    found = across.found
    if isinstance(found, NotSupported):
        reason = Reason("not comparable", refused=found)
        return RepeatedLevel(across.base, then, now, across.unit, None, None, None, reason)
    change = Change(found.ratio, found.low, found.high, found.p)
    return RepeatedLevel(across.base, then, now, across.unit, change, None, None, _known_from(found))


def _known_from(found: CrossSessionRatio | Ratio) -> Reason:
    if isinstance(found, Ratio):
        return Reason("several sessions")
    if found.between.sessions is None:
        return Reason("stated")
    return Reason("known sessions", sessions=found.between.sessions)


def _decided(level: RepeatedLevel, p: float) -> RepeatedLevel:
    outcome: Outcome = "not reproduced" if p < LEVEL else "reproduced"
    return replace(level, adjusted_p=p, outcome=outcome)
