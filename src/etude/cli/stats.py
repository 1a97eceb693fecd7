"""Per test and metric: count, mean and median each with its interval, extremes, deviation; and the comparisons."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from etude.report.verdict import Comparison, TestVerdict, Verdict
    from etude.stats.describe import Summary
    from etude.stats.intervals import Interval

HEADINGS = ("count", "mean", "95 % of the mean", "median", "95 % of the median", "min", "max", "deviation")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude stats`."""
    parser.add_argument(
        "directories",
        nargs="+",
        metavar="DIR|FILE",
        help="a results directory, or a results file in Auto-pilot's format (.res)",
    )
    parser.add_argument(
        "--metric",
        action="append",
        default=[],
        metavar="NAME",
        help="show this metric only; the first is compared",
    )
    parser.add_argument("--json", action="store_true", help="print JSON (docs/formats.md)")


def run(options: argparse.Namespace) -> int:
    """Print the statistics of each directory or file."""
    from etude.report.verdict import verdict
    from etude.results.reader import load_results

    for directory in options.directories:
        found = verdict(load_results(directory), options.metric or None)
        if options.json:
            from etude.report.export import to_json

            print(to_json(found))
        else:
            _show(found)
    return 0


def _show(verdict: Verdict) -> None:
    import sys

    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else 160, highlight=False, markup=False, emoji=False)
    console.print(str(verdict.results.directory), style="bold", markup=False)
    for warning in verdict.warnings:
        console.print(f"! {warning}", style="yellow", markup=False)
    for test in verdict.tests:
        aside = "".join(f", {count} set aside: {why}" for why, count in test.set_aside.items())
        console.print(f"\n{test.test}: {test.kept} trials kept{aside}", markup=False)
        console.print(_table(test))
        for line in _without_value(test):
            console.print(line, style="dim", markup=False)
    for comparison in verdict.comparisons:
        console.print(_comparison(comparison), markup=False)


def _table(test: TestVerdict) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("metric", no_wrap=True)
    for heading in HEADINGS:
        table.add_column(heading, justify="right")
    for m in test.metrics:
        if m.summary is not None:
            table.add_row(m.metric, str(m.summary.count), *_figures(m.summary, m.unit))
    return table


def _figures(s: Summary, unit: str) -> list[str]:
    from etude.report.text import quantity

    def between(interval: Interval | None) -> str:
        if interval is None:
            return "–"
        return f"{quantity(interval.low, unit, like)} … {quantity(interval.high, unit, like)}"

    like = s.mean or None
    mean, median, low, high, deviation = (
        quantity(value, unit, like) for value in (s.mean, s.median, s.minimum, s.maximum, s.deviation)
    )
    return [mean, between(s.mean_interval), median, between(s.median_interval), low, high, deviation]


def _without_value(test: TestVerdict) -> list[str]:
    """The metrics that could not be measured, by reason."""
    reasons: dict[str, list[str]] = {}
    for m in test.metrics:
        if m.summary is None:
            reasons.setdefault(m.reason or "unknown", []).append(m.metric)
    return [f"not measured: {', '.join(names)}: {reason}" for reason, names in reasons.items()]


def _comparison(c: Comparison) -> str:
    from etude.report import text

    kind = "duet: ratio under contention" if c.contention else c.ratio.method
    return (
        f"{text.takes(c.metric, c.other, text.ratio_text(c.ratio), c.base)}, 95 % CI "
        f"{text.span(c.ratio.low, c.ratio.high)} ({kind}, {c.ratio.count} blocks); "
        f"{c.base}: {text.quantity(c.base_mean, c.unit)}"
    )
