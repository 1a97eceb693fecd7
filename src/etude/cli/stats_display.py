"""How `etude stats` looks: warnings first, a table a test, where its time went, and the comparisons."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console

from etude.report import details, further, text
from etude.report.judging import Judging
from etude.report.verdict import MetricSummary, TestVerdict, Verdict

if TYPE_CHECKING:
    from etude.report.across import Across
    from etude.report.summaries import Summaries, SummaryRow

PLAIN_WIDTH = 200
"""Of tables where the output is no terminal; sentences are not broken there."""
MANY = 8
"""More tests than this are shown a line each, unless all is asked for."""
MOST_WARNINGS = 8
FEWEST_FOR_QUARTILES = 4
LAYOUTS = (
    (150, ("n", "n_eff", "mean", "bar", "median", "of median", "quartiles", "min", "max", "deviation")),
    (110, ("n", "mean", "bar", "median", "of median", "deviation")),
    (0, ("n", "mean", "bar", "median")),
)
"""Columns of the table, for terminals of at least so many characters."""


class StatsDisplay:
    """Prints verdicts as the options say."""

    def __init__(self, options: argparse.Namespace, judging: Judging) -> None:
        self._options = options
        self._judging = judging
        self._console = _console()

    def json(self, verdicts: Sequence[Verdict], across: Sequence[Across]) -> None:
        """One document a verdict; what was compared across files stands in the last one."""
        from etude.report.export import to_json

        for number, verdict in enumerate(verdicts, 1):
            print(to_json(verdict, across if number == len(verdicts) else ()))

    def show(
        self, verdicts: Sequence[Verdict], across: Sequence[Across], without: Sequence[str] = ()
    ) -> None:
        """All of it, in words and tables; last why some files are not compared."""
        for verdict in verdicts:
            self._verdict(verdict)
        for comparison in across:
            for line in details.across_lines(comparison):
                self._line(line)
        for line in without:
            self._line(line)

    def _verdict(self, verdict: Verdict) -> None:
        self._line(verdict.subject.label, style="bold")
        most = len(verdict.warnings) if self._options.all_warnings else MOST_WARNINGS
        for warning in verdict.warnings[:most]:
            self._line(f"! {warning}", style="yellow")
        if len(verdict.warnings) > most:
            self._line(f"! and {len(verdict.warnings) - most} more: --all-warnings", style="yellow")
        if len(verdict.tests) > MANY and not self._options.all:
            self._grid(verdict.primary, [(test.test, test.metric(verdict.primary)) for test in verdict.tests])
        else:
            for test in verdict.tests:
                self._test(verdict, test)
        for comparison in verdict.comparisons:
            for line in text.comparison_lines(comparison):
                self._line(line)
            for line in details.detail_lines(comparison):
                self._line(f"  {line}")
            for line in further.further_lines(verdict.subject, comparison, self._options.test):
                self._line(f"  {line}")

    def _test(self, verdict: Verdict, test: TestVerdict) -> None:
        aside = "".join(f", {count} set aside: {why}" for why, count in test.set_aside.items())
        self._line(f"\n{test.test}: {text.counted(test.kept, 'trial')} kept{aside}")
        shown = [m for m in test.metrics if self._options.all or not _is_nothing(m)]
        self._grid("metric", [(m.metric, m) for m in shown if m.summary is not None])
        if test.spent is not None:
            self._line(f"  {details.time_line(test.spent)}", style="dim")
        for line in self._below(verdict, test):
            self._line(f"  {line}")
        hidden = len(verdict.subject.test(test.test).columns) - len(test.metrics)
        if hidden > 0 and not self._options.metric:
            self._line(f"  {text.counted(hidden, 'more metric')}: --all", style="dim")
        for line in _without_value(test, self._options.all):
            self._line(f"  {line}", style="dim")
        precision = text.precision_line(test, verdict.asked)
        if precision is not None:
            self._line(f"  {precision}")

    def _below(self, verdict: Verdict, test: TestVerdict) -> Iterator[str]:
        """Levels, the means that were asked for, and percentiles, of the primary metric or all that were named."""
        series = verdict.subject.test(test.test)
        for m in test.metrics:
            if m.summary is None or (m.metric != verdict.primary and not self._options.metric):
                continue
            yield from further.mean_lines(series, m, self._options.mean, self._options.trim, self._judging)
            yield from further.level_lines(m)
            if self._options.percentiles:
                yield from further.percentile_lines(series, m, self._options.percentiles, self._judging)

    def _grid(self, what: str, rows: Sequence[tuple[str, MetricSummary | None]]) -> None:
        """A line for each, with what is known of it."""
        headings = self._headings()
        cells = [
            (name, *(["–"] * len(headings) if m is None or m.summary is None else self._cells(m)))
            for name, m in rows
        ]
        width = self._console.width if self._console.is_terminal else None
        self._line("")
        self._line("\n".join(text.grid((what, *headings), cells, width)))
        self._line("")

    def _columns(self) -> tuple[str, ...]:
        return next(columns for least, columns in LAYOUTS if self._console.width >= least)

    def _headings(self) -> list[str]:
        level = text.level_text(self._judging.confidence)
        bars = {
            "interval": f"{level} of mean",
            "min-max": "min … max",
            "quartiles": "quartiles",
            "deviation": "± deviation",
        }
        names = {"bar": bars[self._options.error_bars], "of median": f"{level} of median"}
        return [names.get(column, column) for column in self._columns()]

    def _cells(self, m: MetricSummary) -> list[str]:
        s, unit = m.summary, m.unit
        assert s is not None
        like = s.median or s.mean or None
        bar = further.bar(m, self._options.error_bars)
        off = s.mean_interval.half_width if s.mean_interval else None
        off_median = s.median_interval.half_width if s.median_interval else None

        def between(ends: Any, uncertainty: float | None) -> str:
            if ends is None:
                return "–"
            low, high = (text.rounded(v, unit, uncertainty, like) for v in ends)
            return f"{low.partition(' ')[0]} … {high}"

        mark = {"harmonic": " (h)", "geometric": " (g)", "proportion": " (share)"}.get(s.which, "")
        relative = s.relative_deviation
        of_median = s.median_interval and (s.median_interval.low, s.median_interval.high)
        cells = {
            "n": str(s.count),
            "n_eff": f"{s.effective_count:.0f}",
            "mean": text.rounded(s.mean, unit, off, like) + mark,
            "bar": between(bar, off),
            "median": text.rounded(s.median, unit, off_median, like),
            "of median": between(of_median, off_median),
            "quartiles": between(s.quartiles if s.count >= FEWEST_FOR_QUARTILES else None, off_median),
            "min": text.quantity(s.minimum, unit, like),
            "max": text.quantity(s.maximum, unit, like),
            "deviation": "–" if relative is None else text.percent(relative),
        }
        return [cells[column] for column in self._columns()]

    def _line(self, line: str, style: str | None = None) -> None:
        self._console.print(line, style=style, markup=False, soft_wrap=not self._console.is_terminal)


def show_summaries(found: Summaries, options: argparse.Namespace) -> None:
    """A file of which only summaries are known: what it states, and an interval where that can be computed."""
    console = _console()
    console.print(found.label, style="bold", markup=False)
    for warning in found.warnings:
        console.print(f"! {warning}", style="yellow", markup=False)
    console.print("Only summaries: no trial can be looked at, so nothing is warned of.", style="dim")
    level = text.level_text(options.confidence)
    headings = (
        "metric",
        "n",
        "mean",
        f"{level} of mean",
        "median",
        "quartiles",
        "min",
        "max",
        "deviation",
        "error",
    )
    lines = text.grid(("test", *headings), [_summary_cells(row) for row in found.rows])
    console.print("\n".join(["", *lines, ""]), soft_wrap=True)


def _summary_cells(row: SummaryRow) -> tuple[str, ...]:
    f, unit = row.figures, row.unit
    like = f.get("median") or f.get("mean") or None

    def shown(name: str) -> str:
        return text.quantity(f.get(name), unit, like)

    def between(ends: tuple[float, float] | None) -> str:
        return " … ".join(text.quantity(end, unit, like) for end in ends) if ends else "–"

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


def _console() -> Console:
    width = None if sys.stdout.isatty() else PLAIN_WIDTH
    return Console(width=width, highlight=False, markup=False, emoji=False)


def _is_nothing(m: MetricSummary) -> bool:
    """Whether it is 0 in each trial, and not time: a counter of what never happened."""
    return m.summary is not None and m.summary.minimum == m.summary.maximum == 0.0 and m.unit != "s"


def _without_value(test: TestVerdict, everything: bool) -> list[str]:
    """The metrics that are always 0, or could not be measured, by reason; and means that there are not."""
    reasons: dict[str, list[str]] = {}
    for m in test.metrics:
        if m.summary is None:
            reasons.setdefault(m.reason or "unknown", []).append(m.metric)
    nothing = [m.metric for m in test.metrics if _is_nothing(m)]
    missing = [f"always 0: {', '.join(nothing)} (--all)"] if nothing and not everything else []
    missing += [f"not measured: {', '.join(names)}: {reason}" for reason, names in reasons.items()]
    return missing + [
        f"{m.metric}: {m.summary.mean_reason}"
        for m in test.metrics
        if m.summary and m.summary.mean_reason and (everything or not _is_nothing(m))
    ]
