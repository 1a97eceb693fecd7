"""Parts of the time of two tests, by process and by file, with their paired differences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from etude.stats.outlying import outlying_rows
from etude.why.contributions import CONFIDENCE, Contribution, CountDifference, contribution, each_confidence
from etude.why.instruments import CallCount, Calls, Run
from etude.why.stacks import summed

MOST = 50
"""Number of parts that are listed."""
_Run = TypeVar("_Run")


@dataclass(frozen=True)
class Part:
    """The time of one process or file, means of the pairs without outliers, s."""

    name: str
    a_s: float
    b_s: float
    difference: Contribution


Parts = tuple[list[Part], int]
"""Those with the largest difference first, at most MOST; and how many there are."""


def by_process(sides: tuple[Sequence[Run], Sequence[Run]]) -> Parts:
    """Time of each process on the critical path."""
    return _parts(sides, lambda run: ((cause.process, s) for cause, s in run.causes.items()))


def by_place(sides: tuple[Sequence[Run], Sequence[Run]]) -> Parts:
    """Time on the critical path of each program, library and part of the kernel; empty name: not known."""
    return _parts(sides, lambda run: ((k[0].place if k else "", s) for (_, k), s in run.stacks.items()))


def by_file(sides: tuple[Sequence[Calls], Sequence[Calls]]) -> Parts:
    """Time within the calls about each file, of all threads."""
    return _parts(sides, lambda run: ((file, c.seconds) for (_, file), c in run.items() if file))


def call_rows(sides: tuple[Sequence[Calls], Sequence[Calls]]) -> tuple[list[CountDifference], int]:
    """Means of the calls of both tests, those with the largest difference in number first; and how many there are."""
    keys = {key for side in sides for run in side for key in run}
    rows = []
    for call, file in keys:
        a, b = (_mean([run.get((call, file)) for run in side]) for side in sides)
        rows.append(CountDifference(call, file, a, b, exact=False))
    rows.sort(key=lambda r: (-abs(r.b.count - r.a.count), -abs(r.b.seconds - r.a.seconds), r.call, r.file))
    return rows[:MOST], len(rows)


def _mean(counts: Sequence[CallCount | None]) -> CallCount:
    known = [each for each in counts if each is not None]
    count, moved, seconds = (sum(getattr(each, of) for each in known) for of in ("count", "bytes", "seconds"))
    runs = max(1, len(counts))
    return CallCount(round(count / runs), round(moved / runs), seconds / runs)


def _parts(
    sides: tuple[Sequence[_Run], Sequence[_Run]], times: Callable[[_Run], Iterable[tuple[str, float]]]
) -> Parts:
    if min(map(len, sides)) < 2:
        return [], 0
    sums = [[summed(times(run)) for run in side] for side in sides]
    names = sorted({name for side in sums for run in side for name in run})
    a, b = (np.array([[run.get(name, 0.0) for name in names] for run in side]) for side in sums)
    usual = ~outlying_rows(b - a)
    level = each_confidence(CONFIDENCE, max(1, len(names)))
    found = [
        Part(name, float(x.mean()), float(y.mean()), contribution(None, y - x, level))
        for name, x, y in zip(names, a[usual].T, b[usual].T, strict=True)
    ]
    found.sort(key=lambda part: -abs(part.difference.mean_s))
    return found[:MOST], len(found)
