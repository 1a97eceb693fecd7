"""The tables of a report: what is shown, and by what it is sorted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from etude.analysis.comparison import Comparison
from etude.analysis.load_subject import SummaryRow
from etude.analysis.verdict import MetricSummary, TestVerdict, Verdict
from etude.analysis.verdict_options import usual_metrics
from etude.escaping import delimited
from etude.present.page.gather import Gathered, kind_of
from etude.present.section import Cell, Table, number, page_table
from etude.present.sections.stats import summary_cells
from etude.present.sentences import comparison as text
from etude.present.sentences import details
from etude.present.sentences.extra_statistics import bar
from etude.present.sentences.verdict import joined_words
from etude.stats.cross_session import NotSupported
from etude.units.formatting import counted, level_text, quantity, span

FIGURES = ("n", "mean", "bar", "median", "of median", "min", "max", "deviation")
"""Statistics of a sample, in the order of a page."""
REPEATING = ("median", "min", "max")
"""Those that are the mean of a sample of one value."""


def tests_table(found: Gathered) -> Table:
    """A row a test: its primary metric."""
    several = len(found.verdicts) > 1
    headings = ("test", *(("results",) if several else ()), "metric", *_headings(found), "warnings")
    rows = []
    for verdict in found.verdicts:
        for test in verdict.tests:
            first = [delimited(test.test), *([verdict.subject.label] if several else [])]
            first.append(_called(test, verdict.primary))
            warned = sum(w.test == test.test for w in verdict.every)
            rows.append((*first, *_figures(test, verdict.primary), number(str(warned), warned)))
    table = page_table(
        "tests", "Tests, by the metric that is judged", headings, tuple(rows), 3 if several else 2
    )
    return _told(table, found, [t.metric(v.primary) for v in found.verdicts for t in v.tests])


def metrics_table(found: Gathered) -> Table:
    """A row a test and metric: the usual metrics of each test but the one that is judged."""
    rows = [
        (
            _named(test, verdict, found),
            _called(test, m.metric),
            *_figures(test, m.metric),
        )
        for verdict in found.verdicts
        for shown in [set(usual_metrics(verdict.subject))]
        for test in verdict.tests
        for m in test.metrics
        if m.metric in shown and m.metric != verdict.primary
    ]
    table = page_table("metrics", "Other metrics", ("test", "metric", *_headings(found)), tuple(rows), 2)
    return _told(table, found, [m for v in found.verdicts for t in v.tests for m in t.metrics])


def _told(table: Table, found: Gathered, metrics: Sequence[MetricSummary | None]) -> Table:
    """The table; of tests with a single value without median and extremes, which repeat it."""
    counts = [m.summary.count for m in metrics if m is not None and m.summary is not None]
    if max(counts, default=0) == 1:
        repeats = {
            heading for heading, name in zip(_headings(found), FIGURES, strict=True) if name in REPEATING
        }
        return replace(table, columns=tuple(each for each in table.columns if each.heading not in repeats))
    return table


def _called(test: TestVerdict, metric: str) -> str:
    m = test.metric(metric)
    how = "" if m is None else joined_words(m)
    return f"{metric} ({how})" if how else metric


def _headings(found: Gathered) -> tuple[str, ...]:
    level = level_text(found.verdict_options.confidence)
    ends = (f"{level} of mean", "median", f"{level} of median")
    surfaces = {kind_of(verdict.subject) for verdict in found.verdicts} == {"surface"}
    return ("measurements" if surfaces else "trials", "mean", *ends, "min", "max", "deviation")


def _named(test: TestVerdict, verdict: Verdict, found: Gathered) -> str:
    return f"{test.test} ({verdict.subject.label})" if len(found.verdicts) > 1 else delimited(test.test)


def _figures(test: TestVerdict, metric: str) -> tuple[Cell, ...]:
    m = test.metric(metric)
    if m is None or m.summary is None:
        return (number("0", 0), *[number("–", None)] * (len(FIGURES) - 1))
    cells = summary_cells(m, bar(m, "interval"))
    return tuple(cells[name] for name in FIGURES)


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
            cells = [number("–", None)] * 4
            rows.append((*ends, *cells, "other session", "refused"))
            continue
        differs = a.found.low > 1.0 or a.found.high < 1.0
        p = a.found.p if a.adjusted_p is None else a.adjusted_p
        rows.append(
            (
                *ends,
                number(f"{a.found.ratio:.4g}", a.found.ratio),
                number(span(a.found.low, a.found.high), a.found.low),
                number(details.p_text(p), p),
                number("–", None),
                "other session",
                ("yes" if differs else "no"),
            )
        )
    return page_table("comparisons", "Comparisons", headings, tuple(rows), 3)


def _compared(c: Comparison, where: str) -> tuple[Cell, ...]:
    difference = number("–", None)
    if c.difference is not None:
        like = c.difference.high or None
        low, high = (quantity(v, c.unit, like) for v in (c.difference.low, c.difference.high))
        difference = number(f"{low} … {high}", c.difference.low)
    p = c.ratio.p if c.adjusted_p is None else c.adjusted_p
    how = counted(c.ratio.count, "pair") if c.ratio.method == "paired" else "unpaired"
    return (
        delimited(c.other) + where,
        delimited(c.base) + where,
        c.metric,
        number(text.ratio_text(c.ratio), c.ratio.ratio),
        number(span(c.ratio.low, c.ratio.high), c.ratio.low) if c.varies else number("–", None),
        number(details.p_text(p), p),
        difference,
        how,
        ("yes" if c.differs else "no"),
    )


def machine_tables(found: Gathered) -> Iterator[Table]:
    """Tables of differences between the machines, one for each later result."""
    for place, (label, differences) in enumerate(found.machines):
        rows = tuple((d.what, (d.then or "not recorded"), (d.now or "not recorded")) for d in differences)
        headings = ("what", "first result", label)
        yield page_table(
            f"differences-{place}", f"What differs between the first result and {label}", headings, rows, 3
        )


def summary_table(label: str, rows: Sequence[SummaryRow], place: int) -> Table:
    """Table of a file of summaries."""
    names = list(dict.fromkeys(name for row in rows for name in row.figures))
    cells = [
        (
            row.test,
            row.metric,
            *(_stated(row, name) for name in names),
        )
        for row in rows
    ]
    headings = ("test", "metric", *names)
    return page_table(f"summaries-{place}", f"Summaries as {label} states them", headings, tuple(cells), 2)


def _stated(row: SummaryRow, name: str) -> Cell:
    value = row.figures.get(name)
    if value is None:
        return number("–", None)
    if name == "error":  # what perf states: relative, in percent
        return number(f"± {value:.2g} %", value)
    return number(f"{value:g}" if name == "count" else quantity(value, row.unit), value)
