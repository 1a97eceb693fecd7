"""Did the compared commands do the same work? What they printed and how they ended, before any number is believed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from etude.results.columns import SIGNALLED, Columns, Whole
from etude.results.results import names_of
from etude.results.trials import Trials


class WorkDifference(NamedTuple):
    """One thing that speaks against the tests having done the same work."""

    text: str
    """The difference in words, with figures and without a full stop."""
    between: bool
    """Whether two tests differ, so that it may be on purpose; else one test's own trials do."""

    @property
    def advice(self) -> str:
        """The advice, a short clause."""
        return "is it the same work?" if self.between else "compare what they do before any number"


def work_differences(trials: Trials) -> list[WorkDifference]:
    """Differences that speak against the same work, most important first: endings, then the output of first runs.

    A program whose output is read for a metric prints a measurement: it is never the same, and is not compared.
    """
    columns, plan = trials.columns, trials.experiment["plan"]
    codes = {name: code for code, name in enumerate(columns.test.texts)}
    rows = {
        name: np.flatnonzero(columns.test.codes == codes[name])
        for name in names_of(trials.experiment)
        if name in codes
    }
    each = plan["check_output"] == "each"
    found = [
        WorkDifference(text, False) for name in rows for text in _within(name, columns, rows[name], each)
    ]
    measuring = {test["name"] for test in plan["tests"] if test.get("metrics")}
    firsts = {
        name: first
        for name in rows
        if name not in measuring and (first := _first_output(columns, rows[name])) is not None
    }
    reference = next(iter(firsts), None)
    for name in list(firsts)[1:]:
        assert reference is not None
        texts = _between(columns, reference, firsts[reference], name, firsts[name])
        found += [WorkDifference(text, True) for text in texts]
    return found


def _first_output(columns: Columns, rows: Whole) -> int | None:
    """The first row of the first trial whose first row has an output."""
    _, first = np.unique(columns.trial[rows], return_index=True)
    firsts = np.sort(rows[first]).tolist() if columns.rare else ()
    return next((row for row in firsts if "stdout" in columns.rare.get(row, {})), None)


def _between(columns: Columns, base: str, a: int, other: str, b: int) -> list[str]:
    found = []
    if columns.ending(a) != columns.ending(b):
        found.append(f"{other} ended with {columns.ending(b)}, {base} with {columns.ending(a)}")
    one, two = columns.rare[a]["stdout"], columns.rare[b]["stdout"]
    if one["sha256"] != two["sha256"]:
        found.append(_printed(base, one["bytes"], other, two["bytes"]))
    return found


def _printed(base: str, base_bytes: int, other: str, other_bytes: int) -> str:
    if base_bytes == other_bytes:
        return f"{other} printed something else than {base} ({base_bytes:,} B each)"
    how = "less" if other_bytes < base_bytes else "more"
    return f"{other} printed {how} than {base} ({other_bytes:,} B against {base_bytes:,} B)"


def _within(name: str, columns: Columns, rows: Whole, each: bool) -> list[str]:
    """Whether a test's own trials differ among themselves; in what they print only where that was asked for."""
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
        found.append(f"{name} did not always end alike: {', '.join(sorted(endings))}")
    if each and len({members["stdout"]["sha256"] for _, members in rare if "stdout" in members}) > 1:
        found.append(f"{name} printed different things in different trials")
    return found
