"""The verdict on the screen: what differs in the work, the table, the sentences, and where the results are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from etude.cli.fitting import Column
from etude.cli.terminal import Terminal
from etude.report import export, text
from etude.report.verdict import Verdict

if TYPE_CHECKING:
    from etude.report.across import Across

COLUMNS = (
    ("mean", 0),
    ("± 95 %", 0),
    ("median", 2),
    ("min … max", 3),
    ("trials", 1),
    ("user", 4),
    ("system", 4),
    ("peak memory", 4),
)
"""Of the table; where it is too wide, those of the highest rank are left out first."""
BESIDE = ("user", "system", "peak_memory")
"""Metrics that the table shows beside the one that is judged."""


def show(
    verdict: Verdict,
    *,
    json: bool = False,
    across: Sequence[Across] = (),
    without: Sequence[str] = (),
    machines: Sequence[str] = (),
) -> None:
    """Print a verdict and its comparisons with a stored baseline, or why there are none; say where the results are."""
    if json:
        print(export.to_json(verdict, across, machines))
        return
    screen = Terminal()
    for line in machines:
        screen.say(f"! {line}", "yellow")
    for warning in verdict.warnings:
        screen.say(f"! {warning}", "yellow")
    _table(verdict, screen)
    for line in _sentences(verdict):
        screen.say(line)
    for comparison in across:
        from etude.report.details import across_lines

        for line in across_lines(comparison):
            screen.say(line)
    for line in without:
        screen.say(line)
    screen.say_path("Results", str(verdict.directory), "dim")


def _sentences(verdict: Verdict) -> list[str]:
    return [
        *(
            f"{t.test}: {t.inner} launches in each trial; figures are per launch."
            for t in verdict.tests
            if t.inner > 1
        ),
        *text.joined_lines(verdict.tests, (verdict.primary, *BESIDE)),
        *([widened] if (widened := text.widened_line(verdict.asked)) else []),
        *(line for c in verdict.comparisons for line in text.comparison_lines(c)),
        *(line for test in verdict.tests if (line := text.precision_line(test, verdict.asked))),
    ]


def _table(verdict: Verdict, screen: Terminal) -> None:
    rows = [_cells(test, verdict.primary) for test in verdict.tests]
    columns = [Column(heading, [row.get(heading, "–") for row in rows], rank) for heading, rank in COLUMNS]
    ratios = {c.other: text.ratio_text(c.ratio) for c in verdict.comparisons}
    if ratios:
        columns.append(Column("ratio", [ratios.get(test.test, "1") for test in verdict.tests]))
    screen.table(Column(verdict.primary, [test.test for test in verdict.tests]), columns)


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
