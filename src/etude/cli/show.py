"""The verdict on the screen: what differs in the work, the table, the sentences, and where the results are."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from etude.report import export, text
from etude.report.verdict import Verdict, against

if TYPE_CHECKING:
    from rich.table import Table

    from etude.results.reader import Results

PLAIN_WIDTH = 160
BESIDE = ("user", "system", "peak_memory")
"""Metrics that the table shows beside the one that is judged."""


def show(
    verdict: Verdict,
    *,
    json: bool = False,
    exports: Sequence[tuple[str, Path | None]] = (),
    baseline: Results | None = None,
) -> None:
    """Print a verdict, write its exports, and say last where the results are."""
    for form, path in exports:
        export.write(verdict, form, path or verdict.results.directory / f"summary.{export.SUFFIX[form]}")
    if json:
        print(export.to_json(verdict))
        return
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH, highlight=False)
    for warning in verdict.warnings:
        console.print(f"! {warning}", style="yellow", markup=False)
    console.print(_table(verdict))
    for line in _sentences(verdict):
        console.print(line, markup=False)
    for line in _baseline_lines(verdict, baseline):
        console.print(line, markup=False)
    console.print(f"Results: {verdict.results.directory}", style="dim", markup=False)


def _sentences(verdict: Verdict) -> list[str]:
    return [
        *(
            f"{t.test}: {t.inner} launches in each trial; figures are per launch."
            for t in verdict.tests
            if t.inner > 1
        ),
        *(line for c in verdict.comparisons for line in text.comparison_lines(c)),
        *(line for test in verdict.tests if (line := text.precision_line(test, verdict.plan))),
    ]


def _baseline_lines(verdict: Verdict, baseline: Results | None) -> list[str]:
    if baseline is None:
        return []
    metric = verdict.plan.primary
    return [
        f"{text.takes(metric, name, text.ratio_text(ratio), f'the baseline {name}')} "
        f"(95 %: {text.span(ratio.low, ratio.high)}; unpaired, drift not controlled); "
        f"the baseline's {metric} is {text.quantity(mean, unit)} (mean)."
        for name, ratio, mean, unit in against(baseline, verdict.results, metric)
    ]


def _table(verdict: Verdict) -> Table:
    from rich import box
    from rich.table import Table

    primary = verdict.plan.primary
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(primary, overflow="fold")
    for heading in ("mean", "± 95 %", "median", "min … max", "trials", "user", "system", "peak memory"):
        table.add_column(heading, justify="right", no_wrap=True)
    if verdict.comparisons:
        table.add_column(f"× {verdict.plan.tests[0].name}", justify="right", overflow="fold")
    ratios = {c.other: text.ratio_text(c.ratio) for c in verdict.comparisons}
    for test in verdict.tests:
        row = _row(test, primary)
        if verdict.comparisons:
            row.append(ratios.get(test.test, "1"))
        table.add_row(*row)
    return table


def _row(test: Any, primary: str) -> list[str]:
    found = test.metric(primary)
    summary = found.summary if found else None
    if summary is None:
        return [test.test, "–", "–", "–", "–", str(test.kept), "–", "–", "–"]
    q = text.quantity
    half = (
        summary.mean_interval.half_width / abs(summary.mean)
        if summary.mean_interval and summary.mean
        else None
    )
    return [
        test.test,
        q(summary.mean, found.unit),
        "–" if half is None else text.percent(half),
        q(summary.median, found.unit, summary.mean),
        f"{q(summary.minimum, found.unit, summary.mean)} … {q(summary.maximum, found.unit, summary.mean)}",
        str(summary.count),
        *(_mean(test, name) for name in BESIDE),
    ]


def _mean(test: Any, metric: str) -> str:
    found = test.metric(metric)
    return "–" if found is None or found.summary is None else text.quantity(found.summary.mean, found.unit)
