"""`--fail-if 'elapsed > baseline * 1.05'`: a bound that is judged by an interval, not by a mean."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from etude.analysis.cross_session import CrossSession
from etude.analysis.getstats.options import JUDGED
from etude.analysis.getstats.tables import values_of
from etude.analysis.subject import Subject
from etude.analysis.warnings import Thresholds
from etude.errors import UsageError
from etude.results.series import Floats, Series
from etude.stats.columns import metric_name
from etude.stats.cross_session import NotSupported
from etude.stats.expression import ExpressionError
from etude.stats.intervals import Interval
from etude.stats.predicate import Judgement, Predicate
from etude.stats.ratio import more_pairs
from etude.units.parsing import quantity

if TYPE_CHECKING:
    from etude.analysis.comparison import Comparison
    from etude.analysis.verdict import TestVerdict


_FORM = re.compile(
    r"\s*(?P<metric>[^\W\d]\w*)\s*(?P<sign>[<>]=?)\s*"
    r"(?:baseline\s*(?:(?P<by>[*/+-])\s*(?P<amount>[\d.].*))?|(?P<value>[-+\d.].*))"
)
EXPECTED = (
    "expected METRIC > BOUND or METRIC < BOUND, with BOUND one of `baseline`, `baseline * 1.05`, `baseline + 5%`, "
    "`baseline + 2 ms`, `12 ms`"
)


@dataclass(frozen=True)
class Bound:
    """Condition of `--fail-if` that must not hold."""

    text: str
    metric: str
    above: bool
    """True if a metric above the limit fails; False if one below it does."""
    of: Literal["ratio", "difference", "value"]
    """Bounded quantity: metric over baseline, metric minus baseline, or the metric itself."""
    limit: float
    unit: str | None
    """Unit of the limit; None for a ratio, and for a number without a unit."""


@dataclass(frozen=True)
class BoundedInterval:
    """An interval, and the bound that it was compared with."""

    of: Literal["mean", "ratio", "difference"]
    low: float
    high: float
    limit: float
    unit: str
    """Unit of interval and limit; `ratio` if they have none."""
    confidence: float
    together: int
    """Number of intervals that hold together (Bonferroni)."""
    extended: bool = False
    """True if the number of trials was raised after a look at the results."""


@dataclass(frozen=True)
class Answer:
    """Answer for one test: whether it goes beyond the bound."""

    test: str
    fails: bool | None
    """None: undecided, because the interval holds the bound, there are too few trials, or a difference that the verdict
    does not claim would decide it."""
    bounded: BoundedInterval | None
    """None: there is no interval."""
    of_ratio: bool = False
    """True if the ratio has no interval, since nothing varies; False if the mean has none, of too few values."""
    unclaimed: Literal["", "unsteady", "noise", "opposed"] = ""
    """Reason why the verdict claims no difference, where one would decide: the baseline differs from itself by as much,
    identical commands do, or the typical run points the other way."""
    trials: int | None = None
    """Number of trials that it rests on, if they are too few."""
    needed: int = 0
    """Minimum number of trials, …"""
    of_each_test: bool = True
    """… of each test; False: of the judged test only."""
    more: int = 0
    """Further trials of each test that may decide it; 0 if unknown."""
    precision: float | None = None
    """Relative margin of error that `more` trials reach; None if only their number matters."""
    decides: bool = True
    """True if `more` trials are expected to decide it at the current ratio; False if they only allow a judgement."""


def parse_bound(text: str) -> Bound:
    """Read a bound.

    Raises:
        UsageError: the text is no bound.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise UsageError(f"--fail-if {text!r}: {EXPECTED}")
    above = match["sign"].startswith(">")
    if match["value"] is not None:
        return Bound(text, match["metric"], above, "value", *_quantity(text, match["value"]))
    if match["by"] is None:
        return Bound(text, match["metric"], above, "ratio", 1.0, None)
    (amount, unit), by = _quantity(text, match["amount"]), match["by"]
    if by in "*/" and unit is None and amount > 0.0:
        return Bound(text, match["metric"], above, "ratio", amount if by == "*" else 1.0 / amount, None)
    if by in "+-" and unit == "%":
        limit = 1.0 + amount / 100.0 if by == "+" else 1.0 - amount / 100.0
        if limit > 0.0:
            return Bound(text, match["metric"], above, "ratio", limit, None)
    if by in "+-" and unit != "%":
        return Bound(text, match["metric"], above, "difference", amount if by == "+" else -amount, unit)
    raise UsageError(f"--fail-if {text!r}: {EXPECTED}")


def _quantity(text: str, value: str) -> tuple[float, str | None]:
    found = quantity(value)
    if found is None:
        raise UsageError(f"--fail-if {text!r}: {value.strip()} is no quantity: {EXPECTED}")
    return found


def answers(
    bound: Bound,
    tests: Sequence[TestVerdict],
    comparisons: Sequence[Comparison],
    across: Sequence[CrossSession],
    *,
    few: int = Thresholds.few,
    without: Sequence[str] = (),
    confidence: float = 0.95,
    together: int = 1,
) -> list[Answer]:
    """Answer for each test that the bound applies to; undecided below `few` trials, as the verdict is.

    tests: intervals of means hold for `together` of them at once, at `confidence` (`Verdict.together`).
    without: reasons why requested comparisons are missing.

    Raises:
        UsageError: the bound applies to no test; the message has the reason.
    """
    if bound.of == "value":
        of_means = [_of_value(bound, test, confidence, together, few) for test in tests]
        found = [each for each in of_means if each is not None]
        reason = f"no test has an interval of the mean of {bound.metric}"
    else:
        judged = [c for c in comparisons if c.metric == bound.metric]
        found = [_of_comparison(bound, c, len(judged), few) for c in judged]
        found += [_of_across(bound, a, few) for a in across if a.metric == bound.metric]
        reason = _nothing(bound, [c.metric for c in comparisons] + [a.metric for a in across], without)
    if not found:
        raise UsageError(f"--fail-if {bound.text!r}: {reason}")
    return found


def _of_value(bound: Bound, test: TestVerdict, confidence: float, together: int, few: int) -> Answer | None:
    m = test.metric(bound.metric)
    if m is None or m.summary is None or m.summary.count < 2:
        return None
    _check_unit(bound, m.unit)
    if m.summary.mean_interval is None:
        return Answer(test.test, None, None)
    i = m.summary.mean_interval
    found = _judged(
        bound, test.test, BoundedInterval("mean", i.low, i.high, bound.limit, m.unit, confidence, together)
    )
    return replace(_with_enough(found, m.summary.count, few), of_each_test=False)


def _nothing(bound: Bound, compared: Sequence[str], without: Sequence[str]) -> str:
    if without:
        return "; ".join(dict.fromkeys(without))
    if compared:
        return (
            f"{compared[0]} is compared, not {bound.metric}: see etude stats --metric {bound.metric}, "
            "which reports why there is no ratio"
        )
    return f"nothing is compared in {bound.metric}: name tests with --reference, or other results first"


def _with_enough(found: Answer, trials: int | None, few: int) -> Answer:
    if trials is None or trials >= few:
        return found
    more = max(few - trials, found.more)
    return replace(
        found,
        fails=None,
        trials=trials,
        needed=few,
        more=more,
        precision=found.precision if more == found.more else None,
        decides=found.fails is not None or found.more > 0,
    )


def _of_comparison(bound: Bound, c: Comparison, together: int, few: int) -> Answer:
    """Answer for a comparison; a ratio's interval is widened for `together` judged ones (Bonferroni)."""
    if bound.of == "ratio":
        name = f"{c.other} against {c.base}"
        if c.ratio.p is None:
            return Answer(name, None, None, of_ratio=True)
        many = max(together, c.ratio.together)
        interval = c.ratio.for_many(many)
        ends = interval.low, interval.high, bound.limit
        bounded = BoundedInterval("ratio", *ends, "ratio", c.ratio.confidence, many, c.extended)
        found = _as_claimed(bound, 1.0, c, _judged(bound, name, bounded))
        return _with_enough(_decidable(bound, c, interval, found), c.trials, few)
    _check_unit(bound, c.unit)
    if c.difference is None:
        raise UsageError(
            f"--fail-if {bound.text!r}: the difference of {c.other} and {c.base} has no interval"
        )
    ends = c.difference.low, c.difference.high, bound.limit
    bounded = BoundedInterval("difference", *ends, c.unit, c.ratio.confidence, c.ratio.together, c.extended)
    found = _judged(bound, f"{c.other} against {c.base}", bounded)
    return _with_enough(_as_claimed(bound, 0.0, c, found), c.trials, few)


def _as_claimed(bound: Bound, equal: float, c: Comparison, found: Answer) -> Answer:
    """The answer, undecided where only a difference breaks the bound and the verdict claims none.

    equal: value of the bounded quantity without a difference.
    """
    needs_difference = bound.limit >= equal if bound.above else bound.limit <= equal
    if not found.fails or not needs_difference or not (c.within_noise or c.opposed):
        return found
    if c.within_steady_noise:
        return replace(found, fails=None, unclaimed="unsteady")
    return replace(found, fails=None, unclaimed="noise" if c.within_noise else "opposed")


def _decidable(bound: Bound, c: Comparison, interval: Interval, found: Answer) -> Answer:
    """The answer, with the further pairs that move the bound out of the interval if the ratio stays as it is."""
    inside = interval.low <= bound.limit <= interval.high < math.inf
    if found.fails is not None or not inside or c.ratio.method != "paired" or c.machines:
        return found
    gap = abs(math.log(bound.limit / c.ratio.ratio))
    exact = math.expm1(gap * math.log1p(c.ratio.half_width) / math.log(interval.high / c.ratio.ratio))
    if not 0.0 < exact < math.inf:
        return found
    target = _rounded_down(exact)
    return replace(found, more=c.range_of(more_pairs(c.ratio, target=target))[1], precision=target)


def _rounded_down(precision: float) -> float:
    """Precision rounded down to two significant digits, as on a command line."""
    digit = 10.0 ** (math.floor(math.log10(precision)) - 1)
    return math.floor(precision / digit + 1e-9) * digit


def _of_across(bound: Bound, a: CrossSession, few: int) -> Answer:
    if isinstance(a.found, NotSupported):
        raise UsageError(
            f"--fail-if {bound.text!r}: {a.other} is not compared with {a.base_label}: {a.found.reason}; "
            f"{a.found.remedy}"
        )
    if bound.of == "difference":
        raise UsageError(
            f"--fail-if {bound.text!r}: results of different sessions are compared by their ratio: baseline * 1.05"
        )
    name = f"{a.other} ({a.other_label}) against {a.base} ({a.base_label})"
    ends = a.found.low, a.found.high, bound.limit
    bounded = BoundedInterval("ratio", *ends, "ratio", a.found.confidence, a.found.together)
    return _with_enough(_judged(bound, name, bounded), a.trials, few)


def _check_unit(bound: Bound, unit: str) -> None:
    if bound.unit is not None and bound.unit != unit:
        raise UsageError(f"--fail-if {bound.text!r}: {bound.metric} is in {unit}, not in {bound.unit}")


def _judged(bound: Bound, test: str, found: BoundedInterval) -> Answer:
    beyond = found.low > bound.limit if bound.above else found.high < bound.limit
    within = found.high <= bound.limit if bound.above else found.low >= bound.limit
    return Answer(test, True if beyond else False if within else None, found)


def read_predicate(expression: str, confidence: float) -> Predicate:
    """The predicate. Raises UsageError where it cannot be read."""
    try:
        return Predicate(expression, confidence)
    except ExpressionError as error:
        raise UsageError(f"--predicate, column {error.column}: {error.message}") from None


def judge_subjects(
    subjects: Sequence[Subject], predicate: Predicate, metrics: Sequence[str]
) -> list[tuple[str, Judgement]]:
    """Name of each test, and whether the predicate holds for these metrics (default: elapsed, user, system).

    Raises:
        UsageError: the expression cannot be evaluated, or a test lacks a metric.
    """
    try:
        return [
            (series.test, predicate.judge(judged_samples(series, metrics)))
            for subject in subjects
            for series in subject.tests
        ]
    except ExpressionError as error:
        raise UsageError(f"--predicate, column {error.column}: {error.message}") from None


def judged_samples(series: Series, metrics: Sequence[str]) -> dict[str, list[float]]:
    """The values that a predicate is judged on. Raises UsageError for a metric that the test lacks."""
    names = [metric_name(name) for name in metrics] or [name for name in JUDGED if name in series.columns]
    found = {}
    for name in names or series.columns:
        values = _values(series, name)
        if values is None:
            raise UsageError(f"{series.test}: has no metric {name!r}; it has {', '.join(series.columns)}")
        found[name] = values.tolist()
    return found


def _values(series: Series, name: str) -> Floats | None:
    if name in series.columns:
        return series.sample(name)
    if name not in ("wait", "cpu") or not {"elapsed", "user", "system"} <= series.columns.keys():
        return None
    values = values_of(series, name)[series.kept]
    return values[np.isfinite(values)]
