"""How `etude stats` looks: status, a table a test, where its time went, the comparisons, and notes last."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from etude.analysis.comparison import Comparison
from etude.analysis.cross_session import CrossSession
from etude.analysis.load_subject import Summaries, SummaryRow
from etude.analysis.verdict import MetricSummary, TestVerdict, Verdict
from etude.analysis.verdict_options import VerdictOptions
from etude.present import details, extra_statistics, text
from etude.present.export import to_json
from etude.present.extension import narrowing_command, reaching_command
from etude.present.join_text import joined_lines
from etude.present.not_compared_text import not_compared_lines
from etude.present.sentences.result_notes import missing_reason
from etude.present.sentences.status import status_of
from etude.present.sparkline import bar_lines
from etude.present.table_layout import Column
from etude.present.terminal import Terminal
from etude.present.verdict_display import say_notes
from etude.results.series import Series
from etude.stats.percentiles import fewest_for_interval
from etude.units.formatting import counted, level_text, percent, quantity, rounded

MANY = 8
"""More tests than this are shown a line each, unless all is asked for."""
FEWEST_FOR_QUARTILES = 4
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
"""Of the table; where it is too wide, those of the highest rank are left out first."""
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
"""Of a sparkline, however wide the screen."""


class StatsDisplay:
    """Prints verdicts as the options say."""

    def __init__(self, options: argparse.Namespace, verdict_options: VerdictOptions) -> None:
        self._options = options
        self._verdict_options = verdict_options
        self._screen = Terminal()

    def json(
        self, verdicts: Sequence[Verdict], across: Sequence[CrossSession], machines: Sequence[str] = ()
    ) -> None:
        """The document of one verdict, or a list of those of several: what was compared stands in the last one."""
        *first, last = verdicts
        documents = [*map(to_json, first), to_json(last, across, machines)]
        print(f"[{','.join(documents)}]" if first else documents[0])

    def show(
        self,
        verdicts: Sequence[Verdict],
        across: Sequence[CrossSession],
        without: Sequence[str] = (),
        machines: Sequence[str] = (),
    ) -> None:
        """All of it in tables and words; last how the machines differ, and why some are not compared."""
        for number, verdict in enumerate(verdicts, 1):
            if number > 1:
                self._screen.say()
            of_all = (across, without) if number == 1 else ((), ())
            self._verdict(verdict, "; ".join(status_of(verdict, *of_all)))
        if across or without:
            self._screen.say()
        for line in (*details.across_lines(across), *details.overall_lines(across), *without):
            self._screen.say(line)
        summaries = [m.summary for verdict in verdicts for test in verdict.tests for m in test.metrics]
        if any(s is not None and s.count > 1 and s.median_interval is None for s in summaries):
            fewest = fewest_for_interval(0.5)
            self._screen.say(f"–: the interval of a median takes {fewest} independent values", "dim")
        say_notes(self._screen, verdicts, every=self._options.verbose, first=machines)

    def _verdict(self, verdict: Verdict, status: str) -> None:
        self._screen.say(f"{verdict.subject.label}{status and f': {status}'}", "bold")
        if len(verdict.tests) > MANY and not self._options.all:
            primary = [(test.test, test.metric(verdict.primary)) for test in verdict.tests]
            self._grid(verdict.primary, primary)
            if self._options.wide:
                self._bars([(name, verdict.subject.test(name), m) for name, m in primary])
        else:
            for test in verdict.tests:
                self._test(verdict, test)
        if verdict.comparisons and len(verdict.tests) <= MANY:
            self._screen.say()
        for comparison in verdict.comparisons:
            for line in text.comparison_lines(comparison, several=len(verdict.comparisons) > 1):
                self._screen.say(line)
            for line in details.detail_lines(comparison):
                self._screen.say(f"  {line}")
            for line in extra_statistics.further_lines(verdict.subject, comparison, self._options.test):
                self._screen.say(f"  {line}")
            self._narrower(verdict, comparison)
        for line in not_compared_lines(verdict):
            self._screen.say(line)
        if (extension := reaching_command(verdict)) is not None:
            self._screen.say_command(extension.label, extension.command)

    def _narrower(self, verdict: Verdict, c: Comparison) -> None:
        """How to know a ratio better, where it is known as well as was asked."""
        line, extension = text.narrower_line(c), narrowing_command(verdict, c)
        if line is None:
            return
        if extension is None:
            self._screen.say(f"  {line}")
        else:
            self._screen.say_command(f"  {line.rstrip('.')}", extension.command)

    def _test(self, verdict: Verdict, test: TestVerdict) -> None:
        aside = "".join(f", {count} excluded ({why})" for why, count in test.set_aside.items())
        self._screen.say()
        self._screen.say(f"{test.test}: {counted(test.kept, 'trial')}{aside}")
        shown = [m for m in test.metrics if self._options.all or not _is_nothing(m)]
        self._grid("metric", [(m.metric, m) for m in shown if m.summary is not None])
        if self._options.wide:
            self._bars([(m.metric, verdict.subject.test(test.test), m) for m in shown])
        for line in joined_lines([test], [m.metric for m in shown]):
            self._screen.say(f"  {line}", "dim")
        if test.spent is not None:
            self._screen.say(f"  {details.time_line(test.spent)}", "dim")
        cached = details.cache_line(verdict.subject.test(test.test))
        if cached is not None:
            self._screen.say(f"  {cached}", "dim")
        disk = details.disk_line(verdict.subject.experiment, test.test)
        if disk is not None:
            self._screen.say(f"  {disk}", "dim")
        for line in self._below(verdict, test):
            self._screen.say(f"  {line}")
        hidden = len(verdict.subject.test(test.test).columns) - len(test.metrics)
        if hidden > 0 and not self._options.metric:
            self._screen.say(f"  {counted(hidden, 'more metric')}: --all", "dim")
        for line in _without_value(test, self._options.all):
            self._screen.say(f"  {line}", "dim")
        precision = text.precision_line(test, verdict.asked)
        if precision is not None:
            self._screen.say(f"  {precision}")

    def _below(self, verdict: Verdict, test: TestVerdict) -> Iterator[str]:
        """Levels, the means that were asked for, and percentiles, of the primary metric or all that were named."""
        series = verdict.subject.test(test.test)
        for m in test.metrics:
            if m.summary is None or (m.metric != verdict.primary and not self._options.metric):
                continue
            yield from extra_statistics.mean_lines(
                series, m, self._options.mean, self._options.trim, self._verdict_options
            )
            yield from extra_statistics.level_lines(m)
            if self._options.percentiles:
                yield from extra_statistics.percentile_lines(
                    series, m, self._options.percentiles, self._verdict_options
                )

    def _grid(self, what: str, rows: Sequence[tuple[str, MetricSummary | None]]) -> None:
        """A line for each, with what is known of it."""
        cells = [["–"] * len(COLUMNS) if m is None or m.summary is None else self._cells(m) for _, m in rows]
        columns = [
            Column(heading, [row[place] for row in cells], rank)
            for place, (heading, rank) in enumerate(zip(self._headings(), COLUMNS.values(), strict=True))
        ]
        self._screen.table(Column(what, [name for name, _ in rows]), columns, every=self._options.wide)

    def _bars(self, samples: Sequence[tuple[str, Series, MetricSummary | None]]) -> None:
        """A sparkline of each sample, in the order of its trials."""
        for name, series, m in samples:
            if m is None or m.summary is None:
                continue
            width = min(MOST_BARS, (self._screen.width or MOST_BARS) - 2)
            told, bars, marks = bar_lines(name, series, m, self._verdict_options, width)
            self._screen.say(f"  {told}", "dim")
            for line in filter(None, (bars, marks)):
                self._screen.say(f"  {line}")
        self._screen.say()

    def _headings(self) -> list[str]:
        level = level_text(self._verdict_options.confidence)
        bars = {
            "interval": f"{level} of mean",
            "min-max": "min … max",
            "quartiles": "quartiles",
            "deviation": "± deviation",
        }
        names = {"bar": bars[self._options.error_bars], "of median": f"{level} of median"}
        return [names.get(column, column) for column in COLUMNS]

    def _cells(self, m: MetricSummary) -> list[str]:
        s, unit = m.summary, m.unit
        assert s is not None
        like = s.median or s.mean or None
        bar = extra_statistics.bar(m, self._options.error_bars)
        off = s.mean_interval.half_width if s.mean_interval else None
        off_median = s.median_interval.half_width if s.median_interval else None

        def between(ends: Any, uncertainty: float | None) -> str:
            if ends is None:
                return "–"
            low, high = (rounded(v, unit, uncertainty, like) for v in ends)
            return f"{low.partition(' ')[0]} … {high}"

        mark = {"harmonic": " (h)", "geometric": " (g)", "proportion": " (share)"}.get(s.which, "")
        relative = s.relative_deviation
        of_median = s.median_interval and (s.median_interval.low, s.median_interval.high)
        cells = {
            "n": str(s.count),
            "n_eff": f"{s.effective_count:.{int(s.effective_count < min(10, s.count))}f}",
            "mean": rounded(s.mean, unit, off, like) + mark,
            "bar": between(bar, off),
            "median": rounded(s.median, unit, off_median, like),
            "of median": between(of_median, off_median),
            "quartiles": between(s.quartiles if s.count >= FEWEST_FOR_QUARTILES else None, off_median),
            "min": quantity(s.minimum, unit, like),
            "max": quantity(s.maximum, unit, like),
            "deviation": "–" if relative is None else percent(relative),
        }
        return [cells[column] for column in COLUMNS]


def show_summaries(found: Summaries, options: argparse.Namespace) -> None:
    """A file of which only summaries are known: what it states, and an interval where that can be computed."""
    screen = Terminal()
    screen.say(found.label, "bold")
    for warning in found.warnings:
        screen.say(f"! {warning}", "yellow")
    screen.say("Only summaries: no trial can be looked at, so nothing is warned of.", "dim")
    interval = f"{level_text(options.confidence)} of mean"
    names, *cells = zip(*map(_summary_cells, found.rows), strict=True)
    columns = [
        Column(interval if heading == "interval" else heading, column, rank)
        for (heading, rank), column in zip(SUMMARY_COLUMNS.items(), cells, strict=True)
    ]
    screen.table(Column("test", names), columns, every=options.wide)


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
    """Whether it is 0 in each trial, and not time: a counter of what never happened."""
    return m.summary is not None and m.summary.minimum == m.summary.maximum == 0.0 and m.unit != "s"


def _without_value(test: TestVerdict, everything: bool) -> list[str]:
    """The metrics that are always 0, or could not be measured, by reason; and means that there are not.

    Those that were not to be joined are in `joined_lines`.
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
