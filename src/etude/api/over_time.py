"""Results in a store: two sides compared, and a test's course over commits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from etude.api.call import public
from etude.api.result import PathText, Result, frame_of
from etude.figures.data import Figure
from etude.figures.history import history as history_figure
from etude.history.comparison import Compared, compare_stored
from etude.history.metric_history import Course, stored_courses
from etude.present.section import Block, Section
from etude.present.sections.history import (
    comparison_blocks,
    comparison_document,
    history_blocks,
    history_section,
)
from etude.store.database import open_store

if TYPE_CHECKING:
    import polars

WIDTH = 100
"""Columns of a text."""


@dataclass(frozen=True, repr=False)
class StoredComparison(Result, Sequence[Compared]):
    """Every test and metric that both sides have, compared."""

    base: str
    other: str
    found: tuple[Compared, ...]

    def __len__(self) -> int:
        return len(self.found)

    def __getitem__(self, place: int) -> Compared:  # type: ignore[override]
        return self.found[place]

    def section(self) -> Section:
        """The answer, and a row for each test and metric."""
        return Section(
            "comparison", "Comparison", tuple(comparison_blocks(self.base, self.other, self.found))
        )

    def to_frame(self) -> polars.DataFrame:
        """One row per test and metric: `test`, `metric`, `unit`, `ratio` (other/base), `low`, `high`, `p`, `refused`
        (reason for a missing ratio)."""
        rows = [
            {name: value for name, value in comparison_document(each).items() if not isinstance(value, list)}
            for each in self.found
        ]
        names = dict.fromkeys(("test", "metric", "unit"), str)
        return frame_of(
            rows, {**names, **dict.fromkeys(("ratio", "low", "high", "p"), float), "refused": str}
        )

    def __repr__(self) -> str:
        return f"<StoredComparison of {self.other} with {self.base}: {len(self)} ratios>"


@public
def compare(
    base: str,
    other: str,
    *,
    test: str | None = None,
    metric: str | None = "elapsed",
    store: PathText | None = None,
) -> StoredComparison:
    """Compare two commits, tags, dates or machines of a store (`etude compare`).

    base, other: what to compare, such as `commit:1f3a`, `tag:v2`, `date:2026-11-01` or `machine:NAME`; the kind may be
    left out. metric: None for all. store: path or URL (default: $ETUDE_STORE, or `etude-store.sqlite`).

    Raises:
        UsageError: a selection that cannot be meant; InputError: the store has no such results, or none in common.
    """
    return StoredComparison(base, other, compare_stored(base, other, store, test=test, metric=metric))


@dataclass(frozen=True, repr=False)
class History(Result, Sequence[Course]):
    """The courses of a test: one per metric and machine, with their steps."""

    courses: tuple[Course, ...]

    def __len__(self) -> int:
        return len(self.courses)

    def __getitem__(self, place: int) -> Course:  # type: ignore[override]
        return self.courses[place]

    def section(self) -> Section:
        """All courses in one section."""
        parts = [history_section(course, place, drawn=False) for place, course in enumerate(self.courses)]
        blocks = tuple(block for part in parts for block in part.blocks)
        return Section("history", f"{self.courses[0].test} over time", blocks)

    def blocks(self) -> Iterable[Block]:
        """The blocks of a terminal."""
        return history_blocks(self.courses, WIDTH)

    def figures(self) -> dict[str, Figure]:
        """All courses in one figure."""
        return {"history": history_figure(self.courses)}

    def to_frame(self) -> polars.DataFrame:
        """One row per result: `test`, `metric`, `unit`, `machine`, `commit`, `day`, `level` (in `unit`), `step` (true
        where a step begins)."""
        rows = []
        for course in self.courses:
            steps = {change.step.at for change in course.changes}
            for place, (entry, level) in enumerate(zip(course.entries, course.levels.tolist(), strict=True)):
                rows.append(
                    {
                        "test": course.test,
                        "metric": course.metric,
                        "unit": course.unit,
                        "machine": course.machine.name,
                        "commit": entry.commit,
                        "day": entry.day,
                        "level": course.value(level),
                        "step": place in steps,
                    }
                )
        names = dict.fromkeys(("test", "metric", "unit", "machine", "commit", "day"), str)
        return frame_of(rows, {**names, "level": float, "step": bool})

    def __repr__(self) -> str:
        steps = sum(len(course.changes) for course in self.courses)
        return f"<History of {self.courses[0].test}: {len(self)} courses, {steps} steps>"


@public
def history(
    test: str,
    metric: str = "elapsed",
    *,
    machine: str | None = None,
    branch: str | None = None,
    store: PathText | None = None,
) -> History:
    """Steps in a test's stored results (`etude history`).

    machine, branch: only results of these. store: path or URL (default: $ETUDE_STORE, or `etude-store.sqlite`).

    Raises:
        InputError: the store has no result of this test with values, or cannot be read.
    """
    with open_store(store) as opened:
        return History(stored_courses(opened, test, metric, machine=machine, branch=branch))
