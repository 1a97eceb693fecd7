"""The main sentences of a verdict: comparisons, their confidence, and how to narrow them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from etude.escaping import delimited
from etude.present.sentences.phrases import EXTENDED, INSTEAD
from etude.present.sentences.result_notes import missing_reason
from etude.stats.levels import LEVEL_WORDS
from etude.units.formatting import (
    counted,
    digits,
    duration,
    level_text,
    p_value,
    percent,
    quantity,
    ratio_format,
    span,
)

if TYPE_CHECKING:
    from etude.analysis.subject import StopRuleInfo
    from etude.analysis.verdict import Comparison, MetricSummary, TestVerdict
    from etude.stats.cross_session import CrossSessionRatio
    from etude.stats.describe import Summary
    from etude.stats.ratio import Ratio

GOES_ON = "To resume"
MEASURES_ANEW = "To measure anew"
"""Label of the command that extends an experiment."""
FOLDED_ABOVE = 2
"""The most means with a line each; more of them share one line."""
EACH_PAIR = "each pair counting once"
"""The weights of a ratio beside means in which each session counts once."""
UNPAIRED = "unpaired, drift not controlled"
"""The mark of a comparison of trials that did not run side by side."""


def with_full_stop(text: str) -> str:
    """A sentence with its full stop."""
    return text if text.endswith((".", "?", "!")) else f"{text}."


def ratio_text(ratio: Ratio) -> str:
    """The ratio alone, with the decimals of its interval."""
    return f"{ratio.ratio:{ratio_format(ratio.ratio, ratio.low, ratio.high)}}"


def takes_text(metric: str, other: str, ratio: str, base: str) -> str:
    """`B takes 1.04 × A's time`, or the like for another metric."""
    if metric == "elapsed":
        return f"{other} takes {ratio} × {_possessive(base)} time"
    return f"{_possessive(other)} {metric} is {ratio} × {_possessive(base)}"


def no_interval_text(c: Comparison) -> str:
    """Clause on the reason for a ratio without an interval."""
    return "the ratio of every pair is the same" if c.same_in_pairs else "no value of either varies"


def comparison_lines(c: Comparison, *, several: bool = False) -> list[str]:
    """The verdict on one comparison: the ratio, its interval and the A/A noise; and whether the target was missed.

    several: there are others, so that each line names its tests.
    """
    return [*ratio_lines(c), *filter(None, [quieter_line(c), missed_line(c, several)])]


def ratio_lines(c: Comparison) -> list[str]:
    """The lines on a ratio of two tests, and on machines where it is another."""
    interval = f"{level_of(c.ratio)}: {span(c.ratio.low, c.ratio.high)}{_typical(c)}{caution(c)}"
    if c.differs:
        first = f"{takes_text(c.metric, c.other, ratio_text(c.ratio), c.base)} ({interval}){_noise(c)}."
    elif not c.varies:
        first = (
            f"{c.other} and {c.base} cannot be compared in {c.metric}: {no_interval_text(c)}, so that the ratio "
            f"{ratio_text(c.ratio)} has no interval{_noise(c)}."
        )
    elif c.excludes_one and c.opposed:
        first = (
            f"The means of {c.other} and {c.base} and their typical runs point in different directions: "
            f"ratio of the means {ratio_text(c.ratio)} ({interval}){_noise(c)}."
        )
    elif c.excludes_one:
        sessions = "this session" if c.sittings == 1 else "these sessions"
        first = (
            f"{c.other} and {c.base} are not distinguishable from the A/A noise of {sessions}: ratio "
            f"{ratio_text(c.ratio)} ({interval}){_noise(c)}."
        )
    else:
        bound = max(c.ratio.high - 1.0, 1.0 - c.ratio.low)
        by = "" if c.metric == "elapsed" else f" in {c.metric}"
        told = max(bound, c.floor or 0.0) == bound < WORTH_TELLING
        means = "means" if c.which == "arithmetic" else f"{c.which} means"
        below = (
            f"; at this level any difference of the {means} is below {percent(bound, up=True)}"
            if told
            else ""
        )
        first = (
            f"No significant difference{by} between {c.other} and {c.base}: ratio {ratio_text(c.ratio)} ({interval})"
            f"{below}{_noise(c)}."
        )
    return [first, *_machine_lines(c)]


def missed_line(c: Comparison, several: bool) -> str | None:
    """Sentence on a ratio's distance from its target; None where it reached it, or there is none."""
    if not c.missed:
        return None
    which = f" of {c.other} to {c.base}" if several else ""
    return (
        f"Not converged: the ratio{which} is known to ± {percent(c.ratio.half_width)}, the target is "
        f"± {percent(c.finer)}{reached_by(c, ' of each')}."
    )


def quieter_line(c: Comparison) -> str | None:
    """The metric that the same trials know much better, with both margins of error; None where there is none."""
    if c.quieter is None:
        return None
    ratio, floor = c.quieter.ratio, c.quieter.floor
    within = ", which it lies within" if floor is not None and ratio.off_one <= floor else ""
    noise = "" if floor is None else f"; A/A noise ± {percent(floor)}{within}"
    return (
        f"{c.quieter.metric} is less noisy here, and excludes waiting: "
        f"{_possessive(c.other)} is {ratio_text(ratio)} × {_possessive(c.base)} "
        f"({level_of(ratio)}: {span(ratio.low, ratio.high)}), known to ± {percent(ratio.half_width)}, {c.metric} to "
        f"± {percent(c.ratio.half_width)}{noise}."
    )


def basis_line(c: Comparison) -> str:
    """Sentence on the basis of a comparison: number of trials, their order, where they were made; and the base's
    mean."""
    parts = []
    if c.ratio.method == "unpaired":
        parts.append(f"at least {c.ratio.count} trials of each{_worth(c.ratio)}, {UNPAIRED}")
    else:
        order = "both at once" if c.contention else "in random order"
        parts.append(f"{counted(c.ratio.count, 'pair')} {order}{_worth(c.ratio)}")
        if c.machines:
            parts.append(f"within {len(c.machines)} machines, each counting once")
        once = "" if c.machines else ", each pair counting once"
        parts.append("this session only" if c.sittings == 1 else f"these {c.sittings} sessions only{once}")
    if c.span_s is not None:
        parts.append(f"measured over {duration(c.span_s)}{'' if c.sittings == 1 else ' in all'}")
    if c.floor is None and c.ratio.method == "paired":
        of = f"{c.floor_pairs} of 5 pairs of {c.base} against itself" if c.floor_pairs else "no A/A pairs"
        parts.append(f"A/A noise not known ({of})")
    if not math.isnan(c.base_mean):
        mean = "mean" if c.which == "arithmetic" else f"{c.which} mean"
        mean += f", each {level_name(c.base_mean_over)} counting once" if c.base_mean_over != "trial" else ""
        parts.append(f"{_possessive(c.base)} {c.metric} is {quantity(c.base_mean, c.unit)} ({mean})")
    return f"Basis: {'; '.join(parts)}."


def _worth(ratio: Ratio) -> str:
    """Text on the effective number of pairs, where they depend on those before; else empty."""
    worth = ratio.effective_count
    which = "they count" if ratio.method == "paired" else "those of one count"
    return f" (autocorrelated: {which} as {worth:.1f})" if worth < ratio.count else ""


WORTH_TELLING = 0.5
"""Relative margin of error above which no advice on reaching it, and no bound of a difference, is given."""


BEYOND_NOISE = " by the t test alone; what is claimed must also lie beyond the A/A noise"


def narrower_line(c: Comparison) -> str | None:
    """Sentence on the cost of a narrower ratio, where the target was reached or there was none."""
    if c.missed or not c.more or not c.finer < WORTH_TELLING or not c.within_reach or c.within_steady_noise:
        return None
    words = more_words(c, " of each")
    return f"{words[0].upper()}{words[1:]} would narrow it to ± {percent(c.finer)} if further trials vary as much."


def more_words(known: Comparison | TestVerdict, of: str) -> str:
    """`100 to 150 more trials of each (12 to 17 s)`: the range of what is needed, or `about 120` where it is narrow."""
    low, high = map(_two_digits, known.more_range)
    if low != high:
        times = [duration(known.more_s * end / known.more) for end in known.more_range]
        return f"{low} to {high} more trials{of} (80 %; {' to '.join(dict.fromkeys(times))})"
    trials = "trial" if known.more == 1 else "trials"
    return f"about {_two_digits(known.more)} more {trials}{of} ({duration(known.more_s)})"


def _two_digits(count: int) -> str:
    """`1,200` of 1,234: a number that is an estimate."""
    return f"{int(float(f'{count:.2g}')):,}"


def reached_by(known: Comparison | TestVerdict, of: str) -> str:
    """The way to the target, as a clause: further trials, or the alternatives if these would take too long."""
    if not known.more:
        return ""
    if not known.within_reach:
        return f"; more trials would take too long: {INSTEAD}"
    return f"; {more_words(known, of)} would reach it if further trials vary as much"


def _typical(c: Comparison) -> str:
    """The typical run's ratio, if it is outside the interval; else empty."""
    if c.typical is None or c.ratio.low <= c.typical.ratio <= c.ratio.high:
        return ""
    return f"; typical {ratio_text(c.typical)}"


MOMENT_S = 2.5
"""Wall-clock time (s) below which a comparison is a moment of the machine, and states its duration. The default
`--min-time` takes longer, even without its first run."""


FEW = 10
"""Number of pairs, or trials of each test, below which the claim states it."""


def caution(c: Comparison) -> str:
    """Limits of the claim itself; empty, or it begins with a semicolon."""
    limits = ""
    if c.span_s is not None and c.span_s < MOMENT_S:
        within = "within" if c.sittings == 1 else f"in {c.sittings} sessions for"
        limits = f"; measured {within} {duration(c.span_s)}"
    if c.extended:
        limits += f"; {EXTENDED}"
    if c.excludes_one and c.difference is not None and c.difference.low <= 0.0 <= c.difference.high:
        limits += "; the interval of the difference contains 0"
    unpaired = c.ratio.method == "unpaired"
    few = ""
    if c.ratio.count < FEW:
        few = f"; {'as few as' if unpaired else 'only'} {counted(c.ratio.count, 'trial' if unpaired else 'pair')}"
    if unpaired:
        return f"; {UNPAIRED}{few}{limits}"
    weighed = f"; {EACH_PAIR}" if c.base_mean_over != "trial" and not c.machines else ""
    return f"{'; under contention' if c.contention else ''}{few}{weighed}{limits}"


def _machine_lines(c: Comparison) -> Iterator[str]:
    """Lines with the ratio on each machine, if it differs between them."""
    if c.machines_p is None or c.machines_p >= 0.05:
        return
    each = ", ".join(
        f"{m.machine} {ratio_text(m.ratio)}" if m.ratio else f"{m.machine} has one pair" for m in c.machines
    )
    yield f"The ratio is not the same on all machines ({p_value(c.machines_p)}): {each}."


def level_of(ratio: Ratio | CrossSessionRatio) -> str:
    """`95 %`, or `95 % for all 3 comparisons`."""
    of = f" for all {ratio.together} comparisons" if ratio.together > 1 else ""
    return f"{level_text(ratio.confidence)}{of}"


def _noise(c: Comparison) -> str:
    if c.ratio.method == "unpaired":
        return ""
    return "; A/A noise not known" if c.floor is None else f"; A/A noise ± {percent(c.floor)}"


def _possessive(name: str) -> str:
    return f"{name}'" if name.endswith("s") else f"{name}'s"


def widened_line(asked: StopRuleInfo) -> str | None:
    """Sentence on the cost of a script's predicates: they look after each trial, so that intervals are wider than
    theirs."""
    factors = sorted({factor for factor in asked.factors.values() if factor > 1})
    if asked.precision is not None or not factors:
        return None
    by = (
        digits(factors[0], 3) if len(factors) == 1 else f"{digits(factors[0], 3)} to {digits(factors[-1], 3)}"
    )
    return f"Intervals are widened by {by}, because a predicate looked at the trials until it held."


def test_line(test: TestVerdict, metric: str) -> str:
    """One test in one line: mean ± margin of error, median, range."""
    found = test.metric(metric)
    if found is None or found.summary is None:
        reason = missing_reason(found) if found else "not measured"
        return f"{delimited(test.test)}: {metric}: none: {reason}"
    s, unit = found.summary, found.unit
    per = f", {test.inner} launches each" if test.inner > 1 else ""
    return (
        f"{delimited(test.test)}: mean {quantity(s.mean, unit)}{margin(s, unit)}, "
        f"median {quantity(s.median, unit, s.mean)}, "
        f"{quantity(s.minimum, unit, s.mean)} … {quantity(s.maximum, unit, s.mean)}, {counted(s.count, 'trial')}{per}"
    )


def margin(s: Summary, unit: str) -> str:
    """` ± 2.1 %`: the margin of error of a mean; where it is as large as the mean, the interval's ends."""
    interval = s.mean_interval
    if interval is None or not s.mean:
        return ""
    relative = interval.half_width / abs(s.mean)
    if relative < 1.0:
        return f" ± {percent(relative)}"
    return f" ({quantity(interval.low, unit, s.mean)} … {quantity(interval.high, unit, s.mean)})"


def level_name(level: str) -> str:
    """A level of the variance, as it is called in sentences."""
    return LEVEL_WORDS.get(level, level)


def interval_reason(m: MetricSummary) -> str | None:
    """The reason that the mean of two values or more has no interval; None where it has one, or there is no mean."""
    if m.summary is None or m.summary.count < 2 or m.summary.mean_interval or m.summary.mean_reason:
        return None
    if m.levels is None or m.levels.over == "trial":
        return "too few values for this variation"
    return f"it is computed over {counted(m.levels.groups, level_name(m.levels.over))}, too few for this variation"


def precision_line(test: TestVerdict, asked: StopRuleInfo) -> str | None:
    """Sentence on a mean that missed its target: the width of its interval, and what would reach the target."""
    measured = test.metric(asked.primary)
    summary = measured.summary if measured else None
    if not test.missed or asked.precision is None or summary is None:
        return None
    interval = summary.mean_interval
    width = interval.half_width / abs(summary.mean) if interval and summary.mean else math.inf
    known = f"is known to ± {percent(width)}" if math.isfinite(width) else "has no interval"
    levels = measured.levels if measured else None
    if levels is None or levels.over == "trial":
        reached = reached_by(test, "")
    else:
        over = counted(levels.groups, level_name(levels.over))
        reached = f"; the interval is computed over {over}, and more trials of one do not narrow it"
    return (
        f"Not converged: the mean of {test.test} {known}, the target is "
        f"± {percent(asked.precision)}{reached}."
    )
