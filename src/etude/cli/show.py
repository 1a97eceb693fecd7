"""The verdict on the screen: what differs in the work, the table, the sentences, and where the results are."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from etude.report import export, text
from etude.report.verdict import Verdict

if TYPE_CHECKING:
    from rich.table import Table

    from etude.report.across import Across

PLAIN_WIDTH = 160
LAYOUTS = (
    (126, ("mean", "± 95 %", "median", "min … max", "trials", "user", "system", "peak memory")),
    (96, ("mean", "± 95 %", "median", "min … max", "trials")),
    (0, ("mean", "± 95 %", "median", "trials")),
)
"""Columns of the table, for terminals of at least so many characters."""
BESIDE = ("user", "system", "peak_memory")
"""Metrics that the table shows beside the one that is judged."""


def show(
    verdict: Verdict,
    *,
    json: bool = False,
    exports: Sequence[tuple[str, Path | None]] = (),
    across: Sequence[Across] = (),
) -> None:
    """Print a verdict and its comparisons with a stored baseline, write its exports, say where the results are."""
    for form, path in exports:
        export.write(verdict, form, path or verdict.directory / f"summary.{export.SUFFIX[form]}")
    if json:
        print(export.to_json(verdict, across))
        return
    from rich.console import Console

    console = Console(
        width=None if sys.stdout.isatty() else PLAIN_WIDTH, highlight=False, markup=False, emoji=False
    )
    for warning in verdict.warnings:
        console.print(f"! {warning}", style="yellow", markup=False)
    console.print(_table(verdict, console.width))
    for line in _sentences(verdict):
        console.print(line, markup=False)
    for comparison in across:
        from etude.report.details import across_lines

        for line in across_lines(comparison):
            console.print(line, markup=False)
    console.print(f"Results: {verdict.directory}", style="dim", markup=False)


def _sentences(verdict: Verdict) -> list[str]:
    return [
        *(
            f"{t.test}: {t.inner} launches in each trial; figures are per launch."
            for t in verdict.tests
            if t.inner > 1
        ),
        *([widened] if (widened := text.widened_line(verdict.asked)) else []),
        *(line for c in verdict.comparisons for line in text.comparison_lines(c)),
        *(line for test in verdict.tests if (line := text.precision_line(test, verdict.asked))),
    ]


def _table(verdict: Verdict, width: int) -> Table:
    from rich import box
    from rich.table import Table

    columns = next(columns for least, columns in LAYOUTS if width >= least)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(verdict.primary, overflow="fold")
    for heading in columns:
        table.add_column(heading, justify="right", no_wrap=True)
    ratios = {c.other: text.ratio_text(c.ratio) for c in verdict.comparisons}
    if ratios:
        table.add_column("ratio", justify="right", no_wrap=True)
    for test in verdict.tests:
        cells = _cells(test, verdict.primary)
        shown = [cells.get(heading, "–") for heading in columns]
        table.add_row(test.test, *shown, *([ratios.get(test.test, "1")] if ratios else []))
    return table


def _cells(test: Any, primary: str) -> dict[str, str]:
    """One test's row, by column."""
    cells = {"trials": str(test.kept)}
    cells |= {metric.replace("_", " "): _mean(test, metric) for metric in BESIDE}
    found = test.metric(primary)
    if found is None or found.summary is None:
        return cells
    s, like = found.summary, found.summary.mean
    if s.mean_interval and s.mean:
        cells["± 95 %"] = text.percent(s.mean_interval.half_width / abs(s.mean))
    mean, median, low, high = (
        text.quantity(value, found.unit, like) for value in (s.mean, s.median, s.minimum, s.maximum)
    )
    return cells | {"mean": mean, "median": median, "min … max": f"{low} … {high}"}


def _mean(test: Any, metric: str) -> str:
    found = test.metric(metric)
    return "–" if found is None or found.summary is None else text.quantity(found.summary.mean, found.unit)
