"""The tables of a report: what is shown, and by what it is sorted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from etude.analysis.comparison import Comparison
from etude.analysis.load_subject import SummaryRow
from etude.analysis.verdict import MetricSummary, TestVerdict, Verdict
from etude.analysis.verdict_options import usual_metrics
from etude.present import details, text
from etude.present.join_text import joined_words
from etude.present.page.gather import Gathered
from etude.stats.cross_session import NotSupported
from etude.stats.intervals import Interval
from etude.units.formatting import counted, level_text, percent, quantity, rounded, span


@dataclass(frozen=True)
class Cell:
    """What stands in a table."""

    text: str
    key: float | str
    """By what it is sorted; not a number for what is not known, which is sorted last."""


@dataclass(frozen=True)
class Table:
    """Rows of cells. A heading with `numeric` stands to the right."""

    key: str
    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    words: int = 1
    """So many columns from the left hold words."""


def text_cell(value: str) -> Cell:
    """A cell of words."""
    return Cell(value, value)


def number_cell(shown: str, value: float | None) -> Cell:
    """A cell of a number."""
    return Cell(shown, math.nan if value is None else float(value))


def tests_table(found: Gathered) -> Table:
    """A row a test: its primary metric."""
    several = len(found.verdicts) > 1
    headings = ("test", *(("results",) if several else ()), "metric", *_headings(found), "warnings")
    rows = []
    for verdict in found.verdicts:
        for test in verdict.tests:
            first = [text_cell(test.test), *([text_cell(verdict.subject.label)] if several else [])]
            first.append(text_cell(_called(test, verdict.primary)))
            warned = sum(w.test == test.test for w in verdict.every)
            rows.append((*first, *_figures(test, verdict.primary), number_cell(str(warned), warned)))
    return Table("tests", "Tests, by the metric that is judged", headings, tuple(rows), 3 if several else 2)


def metrics_table(found: Gathered) -> Table:
    """A row a test and metric: the usual metrics of each test."""
    rows = [
        (
            text_cell(_named(test, verdict, found)),
            text_cell(_called(test, m.metric)),
            *_figures(test, m.metric),
        )
        for verdict in found.verdicts
        for shown in [set(usual_metrics(verdict.subject))]
        for test in verdict.tests
        for m in test.metrics
        if m.metric in shown
    ]
    return Table("metrics", "Other metrics", ("test", "metric", *_headings(found)), tuple(rows), 2)


def _called(test: TestVerdict, metric: str) -> str:
    """The metric, and how the workers of a trial were joined."""
    m = test.metric(metric)
    how = "" if m is None else joined_words(m)
    return f"{metric} ({how})" if how else metric


def _headings(found: Gathered) -> tuple[str, ...]:
    level = level_text(found.verdict_options.confidence)
    ends = (f"{level} of mean", "median", f"{level} of median")
    return ("trials", "mean", *ends, "min", "max", "deviation")


def _named(test: TestVerdict, verdict: Verdict, found: Gathered) -> str:
    return f"{test.test} ({verdict.subject.label})" if len(found.verdicts) > 1 else test.test


def _figures(test: TestVerdict, metric: str) -> tuple[Cell, ...]:
    m = test.metric(metric)
    if m is None or m.summary is None:
        return (number_cell("0", 0), *(number_cell("–", None) for _ in range(7)))
    s, unit = m.summary, m.unit
    like = s.median or s.mean or None
    off = s.mean_interval.half_width if s.mean_interval else None
    middle = s.median_interval.half_width if s.median_interval else None
    relative = s.relative_deviation
    return (
        number_cell(str(s.count), s.count),
        number_cell(rounded(s.mean, unit, off, like), s.mean),
        _between(s.mean_interval, off, m, like),
        number_cell(rounded(s.median, unit, middle, like), s.median),
        _between(s.median_interval, middle, m, like),
        number_cell(quantity(s.minimum, unit, like), s.minimum),
        number_cell(quantity(s.maximum, unit, like), s.maximum),
        number_cell("–" if relative is None else percent(relative), relative),
    )


def _between(ends: Interval | None, uncertainty: float | None, m: MetricSummary, like: float | None) -> Cell:
    if ends is None:
        return number_cell("–", None)
    low, high = (rounded(v, m.unit, uncertainty, like) for v in (ends.low, ends.high))
    return number_cell(f"{low.partition(' ')[0]} … {high}", ends.low)


def comparisons_table(found: Gathered) -> Table:
    """A row a comparison, within one result and across results."""
    levels = {text.level_of(c.ratio) for verdict in found.verdicts for c in verdict.comparisons}
    levels |= {text.level_of(a.found) for a in found.across if not isinstance(a.found, NotSupported)}
    headings = (
        "compared",
        "with",
        "metric",
        "ratio",
        f"interval, {levels.pop()}" if len(levels) == 1 else "interval",
        "p, of all comparisons",
        "difference of means",
        "how",
        "difference shown?",
    )
    several = len(found.verdicts) > 1
    rows = [
        _compared(c, f" ({verdict.subject.label})" if several else "")
        for verdict in found.verdicts
        for c in verdict.comparisons
    ]
    for a in found.across:
        ends = (f"{a.other} ({a.other_label})", f"{a.base} ({a.base_label})", a.metric)
        if isinstance(a.found, NotSupported):
            cells = [number_cell("–", None)] * 4
            rows.append((*map(text_cell, ends), *cells, text_cell("other session"), text_cell("refused")))
            continue
        differs = a.found.low > 1.0 or a.found.high < 1.0
        p = a.found.p if a.adjusted_p is None else a.adjusted_p
        rows.append(
            (
                *map(text_cell, ends),
                number_cell(f"{a.found.ratio:.4g}", a.found.ratio),
                number_cell(span(a.found.low, a.found.high), a.found.low),
                number_cell(details.p_text(p), p),
                number_cell("–", None),
                text_cell("other session"),
                text_cell("yes" if differs else "no"),
            )
        )
    return Table("comparisons", "Comparisons", headings, tuple(rows), 3)


def _compared(c: Comparison, where: str) -> tuple[Cell, ...]:
    difference = number_cell("–", None)
    if c.difference is not None:
        like = c.difference.high or None
        low, high = (quantity(v, c.unit, like) for v in (c.difference.low, c.difference.high))
        difference = number_cell(f"{low} … {high}", c.difference.low)
    p = c.ratio.p if c.adjusted_p is None else c.adjusted_p
    how = counted(c.ratio.count, "pair") if c.ratio.method == "paired" else "unpaired"
    return (
        text_cell(c.other + where),
        text_cell(c.base + where),
        text_cell(c.metric),
        number_cell(text.ratio_text(c.ratio), c.ratio.ratio),
        number_cell(span(c.ratio.low, c.ratio.high), c.ratio.low) if c.varies else number_cell("–", None),
        number_cell(details.p_text(p), p),
        difference,
        text_cell(how),
        text_cell("yes" if c.differs else "no"),
    )


def machine_tables(found: Gathered) -> Iterator[Table]:
    """What differs between the machines, a table for each later result."""
    for place, (label, differences) in enumerate(found.machines):
        rows = tuple(
            (text_cell(d.what), text_cell(d.then or "not recorded"), text_cell(d.now or "not recorded"))
            for d in differences
        )
        headings = ("what", "first result", label)
        yield Table(
            f"differences-{place}", f"What differs between the first result and {label}", headings, rows, 3
        )


def summary_table(label: str, rows: Sequence[SummaryRow], place: int) -> Table:
    """What a file of summaries states."""
    names = list(dict.fromkeys(name for row in rows for name in row.figures))
    cells = [
        (
            text_cell(row.test),
            text_cell(row.metric),
            *(_stated(row, name) for name in names),
        )
        for row in rows
    ]
    headings = ("test", "metric", *names)
    return Table(f"summaries-{place}", f"Summaries as {label} states them", headings, tuple(cells), 2)


def _stated(row: SummaryRow, name: str) -> Cell:
    value = row.figures.get(name)
    if value is None:
        return number_cell("–", None)
    if name == "error":  # what perf states: relative, in percent
        return number_cell(f"± {value:.2g} %", value)
    return number_cell(f"{value:g}" if name == "count" else quantity(value, row.unit), value)
