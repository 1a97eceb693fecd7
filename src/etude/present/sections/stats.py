"""The output of `etude stats`: status, a table a test, its time breakdown, the comparisons, and notes last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from etude.analysis.comparison import Comparison
from etude.analysis.cross_session import CrossSession
from etude.analysis.load_subject import Summaries, SummaryRow
from etude.analysis.verdict import MetricSummary, TestVerdict, Verdict
from etude.analysis.verdict_options import VerdictOptions
from etude.present.long_names import shortened
from etude.present.section import Block, Column, Command, Number, Sentence, Table, number
from etude.present.sections.bench import notes_blocks
from etude.present.sentences import comparison as text
from etude.present.sentences import details, extra_statistics
from etude.present.sentences.extension import narrowing_command, reaching_command
from etude.present.sentences.result_notes import missing_reason
from etude.present.sentences.status import status_of
from etude.present.sentences.verdict import joined_lines, not_compared_lines
from etude.present.table_layout import MARK, sparkline
from etude.results.series import Series
from etude.stats.describe import fewest_for_interval
from etude.stats.means import MARKS
from etude.units.formatting import counted, level_text, percent, quantity, rounded

FEWEST_FOR_QUARTILES = 4
MANY = 8
"""Number of tests above which each is shown in one line, unless all is requested."""
COLUMNS = {
    "n": 1,
    "n_eff": 5,
    "mean": 0,
    "bar": 0,
    "median": 2,
    "of median": 3,
    "quartiles": 6,
    "min": 7,
    "max": 7,
    "deviation": 4,
}
"""Columns and their ranks; where the table is too wide, those of the highest rank are left out first."""
SUMMARY_COLUMNS = {
    "metric": 0,
    "n": 1,
    "mean": 0,
    "interval": 0,
    "median": 2,
    "quartiles": 4,
    "min": 5,
    "max": 5,
    "deviation": 3,
    "error": 1,
}
MOST_BARS = 100
"""Most bars of a sparkline, however wide the screen."""
MOST_NAMED = 6
"""Outliers whose trials are named."""


@dataclass(frozen=True)
class Statistics:
    """Verdicts as sections, as the options say."""

    options: Any
    """Options of `etude stats`."""
    verdict_options: VerdictOptions
    width: int | None = None
    """Characters in a line of the screen; None: no limit."""

    def blocks(
        self,
        verdicts: Sequence[Verdict],
        across: Sequence[CrossSession] = (),
        without: Sequence[str] = (),
        machines: Sequence[str] = (),
    ) -> Iterator[Block]:
        """All of it in tables and words; last how the machines differ, and why some are not compared."""
        for place, verdict in enumerate(verdicts):
            if place:
                yield Sentence()
            of_all = (across, without) if not place else ((), ())
            yield from self._verdict(verdict, "; ".join(status_of(verdict, *of_all)))
        if across or without:
            yield Sentence()
        for line in (*details.across_lines(across), *details.overall_lines(across), *without):
            yield Sentence(line)
        summaries = [m.summary for verdict in verdicts for test in verdict.tests for m in test.metrics]
        if any(s is not None and s.count > 1 and s.median_interval is None for s in summaries):
            fewest = fewest_for_interval(0.5)
            yield Sentence(f"–: the interval of a median takes {fewest} independent values", "aside")
        yield from notes_blocks(verdicts, every=self.options.verbose, first=machines)

    def _verdict(self, verdict: Verdict, status: str) -> Iterator[Block]:
        yield Sentence(f"{verdict.subject.label}{status and f': {status}'}", "strong")
        if len(verdict.tests) > MANY and not self.options.all:
            primary = [(test.test, test.metric(verdict.primary)) for test in verdict.tests]
            yield self._grid(verdict.primary, primary)
            if self.options.wide:
                yield from self._bars([(name, verdict.subject.test(name), m) for name, m in primary])
        else:
            for test in verdict.tests:
                yield from self._test(verdict, test)
        if verdict.comparisons and len(verdict.tests) <= MANY:
            yield Sentence()
        yield from shortened(list(self._compared(verdict)), [test.test for test in verdict.tests])

    def _compared(self, verdict: Verdict) -> Iterator[Block]:
        for comparison in verdict.comparisons:
            several = len(verdict.comparisons) > 1
            yield from map(Sentence, text.comparison_lines(comparison, several=several))
            further = extra_statistics.further_lines(verdict.subject, comparison, self.options.test)
            yield from (Sentence(f"  {line}") for line in (*details.detail_lines(comparison), *further))
            yield from self._narrower(verdict, comparison)
        yield from map(Sentence, not_compared_lines(verdict))
        if (extension := reaching_command(verdict)) is not None:
            yield Command(extension.label, extension.command)

    def _narrower(self, verdict: Verdict, c: Comparison) -> Iterator[Block]:
        line, extension = text.narrower_line(c), narrowing_command(verdict, c)
        if line is None:
            return
        if extension is None:
            yield Sentence(f"  {line}")
        else:
            yield Command(f"  {line.rstrip('.')}", extension.command)

    def _test(self, verdict: Verdict, test: TestVerdict) -> Iterator[Block]:
        aside = "".join(f", {count} excluded ({why})" for why, count in test.set_aside.items())
        yield Sentence()
        yield Sentence(f"{test.test}: {counted(test.kept, 'trial')}{aside}")
        shown = [m for m in test.metrics if self.options.all or not _is_nothing(m)]
        yield self._grid("metric", [(m.metric, m) for m in shown if m.summary is not None])
        if self.options.wide:
            yield from self._bars([(m.metric, verdict.subject.test(test.test), m) for m in shown])
        known = [
            *joined_lines([test], [m.metric for m in shown]),
            details.time_line(test.spent) if test.spent is not None else None,
            details.cache_line(verdict.subject.test(test.test)),
            details.disk_line(verdict.subject.experiment, test.test),
        ]
        yield from (Sentence(f"  {line}", "aside") for line in known if line is not None)
        yield from (Sentence(f"  {line}") for line in self._below(verdict, test))
        hidden = len(verdict.subject.test(test.test).columns) - len(test.metrics)
        if hidden > 0 and not self.options.metric:
            yield Sentence(f"  {counted(hidden, 'more metric')}: --all", "aside")
        missing = _without_value(test, self.options.all)
        yield from (Sentence(f"  {line}", "aside") for line in missing)
        if (precision := text.precision_line(test, verdict.asked)) is not None:
            yield Sentence(f"  {precision}")

    def _below(self, verdict: Verdict, test: TestVerdict) -> Iterator[str]:
        series = verdict.subject.test(test.test)
        for m in test.metrics:
            if m.summary is None or (m.metric != verdict.primary and not self.options.metric):
                continue
            yield from extra_statistics.mean_lines(
                series, m, self.options.mean, self.options.trim, self.verdict_options
            )
            yield from extra_statistics.level_lines(m)
            if self.options.percentiles:
                yield from extra_statistics.percentile_lines(
                    series, m, self.options.percentiles, self.verdict_options
                )

    def _grid(self, what: str, rows: Sequence[tuple[str, MetricSummary | None]]) -> Table:
        cells = [["–"] * len(COLUMNS) if m is None or m.summary is None else self._cells(m) for _, m in rows]
        columns = [
            Column(heading, [row[place] for row in cells], rank)
            for place, (heading, rank) in enumerate(zip(self._headings(), COLUMNS.values(), strict=True))
        ]
        return Table((Column(what, [name for name, _ in rows]), *columns), every=self.options.wide)

    def _bars(self, samples: Sequence[tuple[str, Series, MetricSummary | None]]) -> Iterator[Block]:
        for name, series, m in samples:
            if m is None or m.summary is None:
                continue
            width = min(MOST_BARS, (self.width or MOST_BARS) - 2)
            told, bars, marks = bar_lines(name, series, m, self.verdict_options, width)
            yield Sentence(f"  {told}", "aside")
            for line in filter(None, (bars, marks)):
                yield Sentence(f"  {line}")
        yield Sentence()

    def _headings(self) -> list[str]:
        level = level_text(self.verdict_options.confidence)
        bars = {
            "interval": f"{level} of mean",
            "min-max": "min … max",
            "quartiles": "quartiles",
            "deviation": "± deviation",
        }
        names = {"bar": bars[self.options.error_bars], "of median": f"{level} of median"}
        return [names.get(column, column) for column in COLUMNS]

    def _cells(self, m: MetricSummary) -> list[str]:
        found = summary_cells(m, extra_statistics.bar(m, self.options.error_bars))
        return [found[column].text for column in COLUMNS]


def bar_lines(
    name: str, series: Series, m: MetricSummary, verdict_options: VerdictOptions, width: int
) -> tuple[str, str, str]:
    """Heading of a sample's sparkline of that width, the sparkline, and the marks below it.

    Outliers are those of which `etude stats` warns: kept, counted, only marked.
    """
    from etude.stats.shape import outlier_places

    values = series.sample(m.metric) - m.corrected_s
    trials = series.places(m.metric)
    far = outlier_places(values, level=verdict_options.thresholds.outliers).tolist()
    bars, marks, each = sparkline(values.tolist(), frozenset(far), width)
    like = m.summary.median or m.summary.mean or None if m.summary else None
    low, high = (quantity(float(end), m.unit, like) for end in (values.min(), values.max()))
    told = f"{name}: {counted(values.size, 'trial')} in order, {low.partition(' ')[0]} … {high}"
    if low == high:
        return f"{name}: {counted(values.size, 'trial')}, all {high}", "", ""
    if each > 1:
        told += f", {each} to a bar (their median)"
    if far:
        named = ", ".join(
            f"{trials[place]} ({quantity(float(values[place]), m.unit, like)})" for place in far[:MOST_NAMED]
        )
        more = f" and {len(far) - MOST_NAMED} more" if len(far) > MOST_NAMED else ""
        told += f"; {MARK} {'outlier: trial' if len(far) == 1 else 'outliers: trials'} {named}{more}"
    return told, bars, marks


def summary_cells(m: MetricSummary, bar: tuple[float, float] | None) -> dict[str, Number]:
    """Statistics of a sample by the names of columns. `bar`: the ends of its error bar, in the metric's unit."""
    s, unit = m.summary, m.unit
    assert s is not None
    like = s.median or s.mean or None
    off = s.mean_interval.half_width if s.mean_interval else None
    off_median = s.median_interval.half_width if s.median_interval else None
    relative = s.relative_deviation
    middle = s.median_interval

    def between(ends: tuple[float, float] | None, uncertainty: float | None) -> Number:
        if ends is None:
            return number("–", None)
        low, high = (rounded(v, unit, uncertainty, like) for v in ends)
        return number(f"{low.partition(' ')[0]} … {high}", ends[0])

    return {
        "n": number(str(s.count), s.count),
        "n_eff": number(
            f"{s.effective_count:.{int(s.effective_count < min(10, s.count))}f}", s.effective_count
        ),
        "mean": number(rounded(s.mean, unit, off, like) + MARKS.get(s.which, ""), s.mean),
        "bar": between(bar, off),
        "median": number(rounded(s.median, unit, off_median, like), s.median),
        "of median": between((middle.low, middle.high) if middle else None, off_median),
        "quartiles": between(s.quartiles if s.count >= FEWEST_FOR_QUARTILES else None, off_median),
        "min": number(quantity(s.minimum, unit, like), s.minimum),
        "max": number(quantity(s.maximum, unit, like), s.maximum),
        "deviation": number("–" if relative is None else percent(relative), relative),
    }


def summaries_blocks(found: Summaries, confidence: float, *, wide: bool = False) -> Iterator[Block]:
    """Section on a file of summaries: its figures, and an interval where it can be computed."""
    yield Sentence(found.label, "strong")
    yield from (Sentence(f"! {warning}", "warning") for warning in found.warnings)
    yield Sentence("Only summaries: trials are not available, so there are no warnings.", "aside")
    interval = f"{level_text(confidence)} of mean"
    names, *cells = zip(*map(_summary_cells, found.rows), strict=True)
    columns = (
        Column(interval if heading == "interval" else heading, column, rank)
        for (heading, rank), column in zip(SUMMARY_COLUMNS.items(), cells, strict=True)
    )
    yield Table((Column("test", names), *columns), every=wide)


def _summary_cells(row: SummaryRow) -> tuple[str, ...]:
    f, unit = row.figures, row.unit
    like = f.get("median") or f.get("mean") or None

    def shown(name: str) -> str:
        return quantity(f.get(name), unit, like)

    def between(ends: tuple[float, float] | None) -> str:
        return " … ".join(quantity(end, unit, like) for end in ends) if ends else "–"

    return (
        row.test + "".join(f" {k}={v}" for k, v in row.parameters.items() if v not in row.test),
        row.metric,
        f"{f['count']:.0f}" if "count" in f else "–",
        shown("mean"),
        between((row.interval.low, row.interval.high) if row.interval else None),
        shown("median"),
        between((f["q1"], f["q3"]) if {"q1", "q3"} <= f.keys() else None),
        shown("minimum"),
        shown("maximum"),
        shown("deviation"),
        f"± {f['error']:.2g} %" if "error" in f else "–",
    )


def _is_nothing(m: MetricSummary) -> bool:
    """True if it is 0 in each trial and no time: a counter of an event that never happened."""
    return m.summary is not None and m.summary.minimum == m.summary.maximum == 0.0 and m.unit != "s"


def _without_value(test: TestVerdict, everything: bool) -> list[str]:
    """Lines on metrics that are always 0 or were not measured, by reason, and on missing means.

    Metrics whose workers could not be joined are in `joined_lines`.
    """
    reasons: dict[str, list[str]] = {}
    for m in test.metrics:
        if m.summary is None and not m.joined:
            reasons.setdefault(missing_reason(m) or "unknown", []).append(m.metric)
    nothing = [m.metric for m in test.metrics if _is_nothing(m)]
    missing = [f"always 0: {', '.join(nothing)} (--all)"] if nothing and not everything else []
    missing += [f"not measured: {', '.join(names)}: {reason}" for reason, names in reasons.items()]
    shown = [m for m in test.metrics if m.summary and (everything or not _is_nothing(m))]
    missing += [f"{m.metric}: {m.summary.mean_reason}" for m in shown if m.summary and m.summary.mean_reason]
    without: dict[str, list[str]] = {}
    for m in shown:
        if reason := text.interval_reason(m):
            without.setdefault(reason, []).append(m.metric)
    return missing + [
        f"no interval of the mean: {', '.join(names)}: {reason}" for reason, names in without.items()
    ]
