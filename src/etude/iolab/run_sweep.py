"""A sweep is run, and gone on with: sizes are added where a curve bends."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from etude.analysis.subject import subject_of
from etude.errors import InputError, UsageError
from etude.experiment.plan import resume_command
from etude.experiment.run import Observer, extend, ignore_events, resume, run
from etude.experiment.session import EngineMaker
from etude.iolab.points import Points, swept_of
from etude.iolab.sweeps import Sweep, make_plan, make_sweep, make_test
from etude.results.reader import read_experiment
from etude.results.results import Results

PAGE = 4096


def bends(results: Results, what: Sweep, count: int) -> list[int]:
    """Up to `count` new sizes beside the points where the slope, of logarithms, changes most; rising, bytes."""
    swept = swept_of(subject_of(results, (("bandwidth" if what.over == "buffer" else "elapsed"),)))
    found: dict[int, float] = {}
    for curve in swept.curves:
        for size, change in midpoints(curve):
            found[size] = max(change, found.get(size, 0.0))
    chosen = sorted(found, key=lambda size: -found[size])[:count]
    return sorted(chosen)


def midpoints(curve: Points) -> list[tuple[int, float]]:
    """Sizes halfway, by logarithms, to either side of each inner point, with how much the slope changes there."""
    if curve.sizes.size < 3:
        return []
    x, y = np.log2(curve.sizes), np.log2(curve.medians)
    slopes = np.diff(y) / np.diff(x)
    changes = np.abs(np.diff(slopes))
    found = []
    for point, change in enumerate(changes, 1):
        for side in (point - 1, point):
            size = _round(float(np.exp2((x[side] + x[side + 1]) / 2)))
            if curve.sizes[side] < size < curve.sizes[side + 1]:
                found.append((size, float(change)))
    return found


def _round(size: float) -> int:
    """The size rounded to whole pages, or below a page to eight bytes: no program has buffers of 5793 bytes."""
    step = PAGE if size > 2 * PAGE else 8
    return max(1, round(size / step) * step)


def sweep(
    where: str | os.PathLike[str] = ".",
    *,
    buffers: str | int | Sequence[int] | None = None,
    totals: str | int | Sequence[int] | None = None,
    curves: Sequence[str] | None = None,
    trials: int | None = None,
    refine: int = 0,
    seed: int | None = None,
    directory: str | os.PathLike[str] | None = None,
    observe: Observer = ignore_events,
    command_line: Sequence[str] = (),
    **options: object,
) -> Results:
    """Run the micro-benchmark over sizes; the results are those of an ordinary experiment.

    `buffers` and `totals` are sizes in bytes, or text such as `8..16M`; by default buffers of 8 B to 16 MiB of a file
    of 16 MiB are swept, untouched, touched and on huge pages, ten times each; over totals static against dynamic
    linking, twenty times. `refine`: so many sizes more where a curve bends. Other options as `Sweep`.

    Raises:
        EtudeError: as `etude.experiment.run.run`.
    """
    if refine < 0:
        raise UsageError(f"refine {refine}: expected how many more sizes there may be, 0 or more")
    what = make_sweep(where, buffers=buffers, totals=totals, curves=curves, trials=trials, **options)
    plan = make_plan(what, seed)
    results = run(
        plan, directory, observe=observe, command_line=command_line, verb="io sweep", monitor=None
    ).results
    return refined(results, what, refine, observe=observe) if refine else results


def resume_sweep(directory: str | os.PathLike[str], *, observe: Observer = ignore_events) -> Results:
    """Go on with a sweep that was interrupted, in a new session.

    Raises:
        InputError: the directory is that of no sweep; EtudeError: as `etude.experiment.run.resume`.
    """
    document = read_experiment(Path(directory))
    tests = document.get("tests") or ()
    if not all("curve" in (test.get("parameters") or {}) for test in tests):
        raise InputError(
            f"{directory}: holds no results of a sweep; resume with: {resume_command(document, directory)}"
        )
    return resume(directory, observe=observe).results


def refined(
    results: Results,
    what: Sweep,
    count: int,
    *,
    observe: Observer = ignore_events,
    make_engine: EngineMaker | None = None,
) -> Results:
    """The results with up to `count` more sizes where a curve bends most, measured in a session of their own.

    Raises:
        EtudeError: as `etude.experiment.run.extend`.
    """
    more = bends(results, what, count)
    if not more:
        return results
    fresh = [
        make_test(what, chosen, *((size, total) if what.over == "buffer" else (what.buffers[0], size)))
        for chosen in what.curves
        for total in what.totals[:1]
        for size in more
    ]
    return extend(results.directory, fresh, observe=observe, make_engine=make_engine).results
