"""The loads next to the answer of a search as a table, and as members of JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from etude.cli.fitting import Column
from etude.cli.peak_words import neighbours
from etude.units.formatting import digits, percent, quantity
from etude.workbench.load_figures import QUANTILES, load_figures
from etude.workbench.task import Answer, Task, Trial


def load_columns(task: Task, answer: Answer, trials: Sequence[Trial]) -> list[Column]:
    """A row for each load that was measured next to the answer; a column of which nothing is known is left out.

    What the goal limits is on every screen, however narrow.
    """
    at = [
        [trial for trial in trials if trial.load == each.load and trial.of_server]
        for each in neighbours(task, answer, trials)
    ]
    rows = [load_figures(made) for made in at if any(trial.windows for trial in made)]
    limited = {each.of if each.percent is None else f"p{each.percent:g}" for each in task.goal.criteria}
    quantiles = [
        _times(name, [row.quantiles_s[name] for row in rows], 0 if name in limited else 1)
        for name in QUANTILES
    ]
    columns = [
        Column("load", [task.load_text(row.load) for row in rows]),
        Column("offered", [f"{digits(row.offered)}/s" for row in rows], 2),
        Column("completed", [f"{digits(row.completed)}/s" for row in rows]),
        Column("errors", [percent(row.errors) for row in rows]),
        _times("mean", [row.mean_s for row in rows], 0 if "mean" in limited else 4),
        *quantiles,
        _times("lateness p99", [row.lateness_p99_s for row in rows], 3),
        Column("headroom", ["–" if row.headroom is None else percent(row.headroom) for row in rows], 3),
    ]
    return [column for column in columns if any(cell != "–" for cell in column.cells)]


def _times(name: str, values: Sequence[float | None], rank: int) -> Column:
    return Column(name, ["–" if value is None else quantity(value, "s") for value in values], rank)


def load_members(trial: Trial) -> dict[str, Any]:
    """What a trial's requests came to, for JSON."""
    if not trial.windows:
        return {}
    figures = load_figures([trial])
    return {
        "offered": figures.offered,
        "completed": figures.completed,
        "errors": figures.errors,
        **{f"{name.replace('.', '_')}_s": value for name, value in figures.quantiles_s.items()},
        "lateness_p99_s": figures.lateness_p99_s,
        "headroom": figures.headroom,
    }
