"""Statistics of a sample or a comparison on request: other means, levels, percentiles, other tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import cast

from etude.analysis.comparison import Comparison, paired_values
from etude.analysis.subject import Subject
from etude.analysis.tail import tail_of
from etude.analysis.verdict import MetricSummary
from etude.analysis.verdict_options import VerdictOptions
from etude.errors import UsageError
from etude.present.sentences import comparison as text
from etude.present.sentences.details import p_text
from etude.results.series import Floats, Series
from etude.stats.describe import trimmed_mean
from etude.stats.intervals import effective_count
from etude.stats.levels import LEVELS, Component
from etude.stats.means import Kind, Mean, MeanRefused, average
from etude.stats.multiplicity import bonferroni_confidence
from etude.stats.resampling import bootstrap_ratio, permutation
from etude.stats.twosample import Difference, student, t_test_by_variance
from etude.units.formatting import counted, level_text, percent, quantity, span

FEW_GROUPS = 5
"""Groups up to which the variance between them is hardly known: with 1 to 4 degrees of freedom."""


def bar(m: MetricSummary, kind: str) -> tuple[float, float] | None:
    """The ends of the error bar of that kind, in the metric's unit."""
    s = m.summary
    if s is None:
        return None
    if kind == "min-max":
        return s.minimum, s.maximum
    if kind == "quartiles":
        return s.quartiles
    if kind == "deviation":
        return None if s.deviation is None else (s.mean - s.deviation, s.mean + s.deviation)
    return (s.mean_interval.low, s.mean_interval.high) if s.mean_interval else None


def mean_lines(
    series: Series, m: MetricSummary, which: Mean | None, trim: float | None, verdict_options: VerdictOptions
) -> Iterator[str]:
    """The requested mean, or its refusal, and the trimmed mean.

    Raises:
        UsageError: the mean does not fit the metric's kind.
    """
    values = series.sample(m.metric) - m.corrected_s
    if which is not None:
        try:
            average(values, cast(Kind, m.kind), which=which, confidence=verdict_options.confidence)
        except MeanRefused as error:
            raise UsageError(f"--mean {which}: {m.metric}: {error}") from None
        except ValueError:
            pass  # the summary has the reason
    if trim is not None:
        found = trimmed_mean(values, trim, confidence=verdict_options.confidence, dependent=True)
        limits = found.interval
        between = (
            f"{quantity(limits.low, m.unit, found.mean)} … {quantity(limits.high, m.unit, found.mean)}"
            if limits
            else f"no interval: {found.reason}"
        )
        yield (
            f"{m.metric}: mean without {found.trimmed} of {values.size} at either end: "
            f"{quantity(found.mean, m.unit)} ({level_text(verdict_options.confidence)}: {between})"
        )


def level_lines(m: MetricSummary) -> Iterator[str]:
    """Line on the level that the interval is over, and on the split of the variance."""
    if m.levels is None:
        return
    shares = [_share(c) for c in sorted(m.levels.components, key=lambda c: LEVELS.index(c.level))]
    over = counted(m.levels.groups, text.level_name(m.levels.over))
    what = "mean is" if m.levels.interval is None else "mean's interval is"
    yield f"{m.metric}: the {what} over {over}; of the variance lies in {', '.join(shares)}"


def _share(c: Component) -> str:
    """One level's share of the variance; of few groups it is a rough value."""
    name = text.level_name(c.level)
    if c.share is None:
        return f"{name} not known ({c.reason})"
    rough = f" (a rough value, from {c.groups})" if c.groups <= FEW_GROUPS else ""
    return f"{name} {percent(c.share)}{rough}"


def percentile_lines(
    series: Series, m: MetricSummary, shares: Sequence[float], verdict_options: VerdictOptions
) -> Iterator[str]:
    """Percentiles with intervals, or why there are none."""
    tail = tail_of(series, m.metric, shares, verdict_options.confidence, subtract=m.corrected_s)
    for percentile in tail.percentiles:
        name = f"p{100 * percentile.share:.6g} of {tail.count:,} {tail.of}"
        if percentile.value is None:
            yield f"{m.metric}, {name}: –: {percentile.reason}"
            continue
        value = quantity(percentile.value, tail.unit)
        if percentile.interval is None:
            yield f"{m.metric}, {name}: {value} (no interval: {percentile.reason})"
        else:
            low, high = (
                quantity(v, tail.unit, percentile.value)
                for v in (percentile.interval.low, percentile.interval.high)
            )
            yield f"{m.metric}, {name}: {value} ({level_text(verdict_options.confidence)}: {low} … {high})"


def further_lines(subject: Subject, c: Comparison, tests: Sequence[str]) -> Iterator[str]:
    """Other two-sample tests of a comparison, as independent samples; sample 1 is the other test, 2 the baseline."""
    if not tests:
        return
    base, other = subject.test(c.base), subject.test(c.other)
    if c.ratio.method == "paired":
        second, first = paired_values(base, other, c.metric)
    else:
        second, first = base.sample(c.metric), other.sample(c.metric)
    assumed = ["unpaired"] if c.ratio.method == "paired" else []
    if any(effective_count(values) < values.size for values in (first, second)):
        assumed.append("independent, which the trials are not")
    wrongly = f", as if {' and '.join(assumed)}" if assumed else ""
    together = c.ratio.together
    counting = f", counting all {together} comparisons" if together > 1 else ""
    for name in dict.fromkeys(tests):
        try:
            yield f"{_TESTS[name](first, second, c)}{wrongly}{counting}"
        except ValueError as error:
            yield f"{name}: –: {error}"


def _student(first: Floats, second: Floats, c: Comparison) -> str:
    return (
        f"Student's t (pooled, as Getstats): {_difference(student(first, second, confidence=_level(c)), c)}"
    )


def _by_variance(first: Floats, second: Floats, c: Comparison) -> str:
    found, spread = t_test_by_variance(first, second, confidence=_level(c))
    return (
        f"{found.method}'s t, chosen by the F test of the variances ({p_text(spread.p)}; never the default, since it "
        f"costs more errors than Welch's t always): {_difference(found, c)}"
    )


def _permutation(first: Floats, second: Floats, c: Comparison) -> str:
    found = permutation(first, second)
    return f"Permutation of studentised differences ({found.resamples:,} orders): {_p(found.p, c)}"


def _bootstrap(first: Floats, second: Floats, c: Comparison) -> str:
    found = bootstrap_ratio(first, second, confidence=_level(c))
    return (
        f"Bootstrap ratio of medians ({found.resamples:,} resamples): {found.ratio:.4g} × "
        f"({level_text(c.ratio.confidence)}: {span(found.low, found.high)})"
    )


def _difference(d: Difference, c: Comparison) -> str:
    like = d.difference or None
    low, middle, high = (quantity(v, c.unit, like) for v in (d.low, d.difference, d.high))
    return f"{middle} ({level_text(c.ratio.confidence)}: {low} … {high}), {_p(d.p, c)}"


def _level(c: Comparison) -> float:
    """Confidence of one interval of as many as are judged at once."""
    return bonferroni_confidence(c.ratio.confidence, c.ratio.together)


def _p(p: float, c: Comparison) -> str:
    return p_text(min(1.0, c.ratio.together * p))


_TESTS: dict[str, Callable[[Floats, Floats, Comparison], str]] = {
    "student": _student,
    "by-variance": _by_variance,
    "permutation": _permutation,
    "bootstrap": _bootstrap,
}
