"""Check that the compared commands did the same work, by their output and how they ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from etude.results.columns import SIGNALLED, Columns, Whole
from etude.results.results import names_of
from etude.results.trials import Trials


@dataclass(frozen=True)
class WorkDifference:
    """A sign that the tests did not do the same work."""

    what: Literal["ending", "output"]
    test: str
    base: str = ""
    """The test that it is compared with; empty where the test's own trials differ."""
    endings: tuple[str, ...] = ()
    """Endings of the test and the base, or all endings of a test's own trials."""
    printed_bytes: tuple[int, ...] = ()
    """Output sizes of the test and the base."""

    @property
    def between(self) -> bool:
        """True if two tests differ, which may be intended."""
        return bool(self.base)


def work_differences(trials: Trials) -> list[WorkDifference]:
    """Differences that speak against the same work, most important first: endings, then the output of first runs.

    The output of a program that prints a metric is a measurement, never the same, and is not compared.
    """
    columns, plan = trials.columns, trials.experiment["plan"]
    codes = {name: code for code, name in enumerate(columns.test.texts)}
    rows = {
        name: np.flatnonzero(columns.test.codes == codes[name])
        for name in names_of(trials.experiment)
        if name in codes
    }
    each = plan["check_output"] == "each"
    found = [difference for name in rows for difference in _within(name, columns, rows[name], each)]
    measuring = {test["name"] for test in plan["tests"] if test.get("metrics")}
    firsts = {
        name: first
        for name in rows
        if name not in measuring and (first := _first_output(columns, rows[name])) is not None
    }
    reference = next(iter(firsts), None)
    for name in list(firsts)[1:]:
        assert reference is not None
        found += _between(columns, reference, firsts[reference], name, firsts[name])
    return found


def _first_output(columns: Columns, rows: Whole) -> int | None:
    """The first row of the first trial whose first row has an output."""
    _, first = np.unique(columns.trial[rows], return_index=True)
    firsts = np.sort(rows[first]).tolist() if columns.rare else ()
    return next((row for row in firsts if "stdout" in columns.rare.get(row, {})), None)


def _between(columns: Columns, base: str, a: int, other: str, b: int) -> list[WorkDifference]:
    found = []
    endings = columns.ending(b), columns.ending(a)
    if endings[0] != endings[1]:
        found.append(WorkDifference("ending", other, base, endings))
    one, two = columns.rare[a]["stdout"], columns.rare[b]["stdout"]
    if one["sha256"] != two["sha256"]:
        found.append(WorkDifference("output", other, base, printed_bytes=(two["bytes"], one["bytes"])))
    return found


def _within(name: str, columns: Columns, rows: Whole, each: bool) -> list[WorkDifference]:
    """Differences among a test's own trials; their output is compared only if `each`."""
    finished = rows[~columns.unfinished[rows]]
    signalled = columns.flags[finished] & SIGNALLED
    _, first = np.unique(columns.status[finished] * 256 + signalled, return_index=True)
    rare = (
        [(row, columns.rare[row]) for row in finished.tolist() if row in columns.rare] if columns.rare else []
    )
    accepted = {members["accepted"]: row for row, members in rare if "accepted" in members}
    found = []
    endings = {columns.ending(row) for row in (*finished[first].tolist(), *accepted.values())}
    if len(endings) > 1:
        found.append(WorkDifference("ending", name, endings=tuple(sorted(endings))))
    if each and len({members["stdout"]["sha256"] for _, members in rare if "stdout" in members}) > 1:
        found.append(WorkDifference("output", name))
    return found
