"""Per test and metric: count, mean and median each with its interval, extremes, deviation; and the comparisons."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from etude.report.verdict import Comparison, Verdict


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude stats`."""
    parser.add_argument("directories", nargs="+", metavar="DIR", help="a results directory")
    parser.add_argument(
        "--metric",
        action="append",
        default=[],
        metavar="NAME",
        help="show this metric only; the first is compared",
    )
    parser.add_argument("--json", action="store_true", help="print JSON (docs/formats.md)")


def run(options: argparse.Namespace) -> int:
    """Print the statistics of each directory."""
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

    console = Console(width=None if sys.stdout.isatty() else 160, highlight=False)
    console.print(str(verdict.results.directory), style="bold", markup=False)
    for warning in verdict.warnings:
        console.print(f"! {warning}", style="yellow", markup=False)
    for test in verdict.tests:
        set_aside = test.made - test.kept
        console.print(f"\n{test.test}: {test.kept} trials kept, {set_aside} set aside", markup=False)
        console.print(_table(test))
    for comparison in verdict.comparisons:
        console.print(_comparison(comparison), markup=False)


def _table(test: Any) -> Any:
    from rich import box
    from rich.table import Table

    from etude.report import text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("metric")
    for heading in (
        "count",
        "mean",
        "95 % of the mean",
        "median",
        "95 % of the median",
        "min",
        "max",
        "deviation",
    ):
        table.add_column(heading, justify="right")
    for m in test.metrics:
        if m.summary is None:
            table.add_row(m.metric, "0", f"none: {m.reason}")
            continue
        s, like = m.summary, m.summary.mean

        def q(value: float | None, unit: str = m.unit, like: float = like) -> str:
            return text.quantity(value, unit, like or None)

        def between(interval: Any) -> str:
            return f"{q(interval.low)} … {q(interval.high)}" if interval else "–"

        table.add_row(
            m.metric,
            str(s.count),
            q(s.mean),
            between(s.mean_interval),
            q(s.median),
            between(s.median_interval),
            q(s.minimum),
            q(s.maximum),
            q(s.deviation),
        )
    return table


def _comparison(c: Comparison) -> str:
    from etude.report import text

    kind = "duet: ratio under contention" if c.contention else c.ratio.method
    return (
        f"{text.takes(c.metric, c.other, text.ratio_text(c.ratio), c.base)}, 95 % CI "
        f"{text.span(c.ratio.low, c.ratio.high)} ({kind}, {c.ratio.count} blocks); "
        f"{c.base}: {text.quantity(c.base_mean, c.unit)}"
    )
