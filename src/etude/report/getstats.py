"""The figures and tables of Auto-pilot's Getstats, in the layout of figure 2 of its paper.

Plain Student intervals, with nothing paid for looking again and again and nothing for dependence: for numbers that
can be compared with published ones. `etude stats` is more careful.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from etude.results.model import signal_name
from etude.results.samples import Trial
from etude.stats.columns import DISPLAY, RAW, display_name, metric_name
from etude.stats.predicate import Figures, figures

HIGH_Z = 2.0
"""From how many standard deviations on a value is warned of."""

HEADINGS = ("NAME", "COUNT", "MEAN", "MEDIAN", "LOW", "HIGH", "MIN", "MAX", "SDEV%", "HW%")
OVERHEAD = "O/H"
UNKNOWN = "-"


class File(NamedTuple):
    """One column of values by display name, and what is known of them."""

    label: str
    samples: Mapping[str, Sequence[float]]
    epochs: Mapping[str, Sequence[int]] = {}
    """The epoch of each value; counted from 1 where a column has none."""
    warnings: Sequence[str] = ()


def value_of(trial: Trial, column: str) -> float | None:
    """One value of a trial by our name of a column: a metric joined over commands and workers, `wait` or `cpu`."""
    if column not in ("wait", "cpu"):
        return trial.value(column)
    elapsed, user, system = (trial.value(name) for name in ("elapsed", "user", "system"))
    if elapsed is None or user is None or system is None:
        return None
    if column == "wait":
        return elapsed - user - system
    return 100.0 * (user + system) / elapsed if elapsed else None


def relation(trials: Iterable[Trial]) -> dict[str, list[float]]:
    """Elapsed, System, User (s), Wait (s) and CPU% of each kept trial; those of which there is a value.

    Wait is elapsed - user - system and CPU% is 100·(user + system)/elapsed, of each trial.
    """
    return {name: list(values) for name, values in file_of("", trials).samples.items()}


def judged(trials: Iterable[Trial], columns: Iterable[str]) -> dict[str, list[float]]:
    """The values of the kept trials by our names of these columns, as a predicate is judged on; may be empty."""
    kept = [trial for trial in trials if trial.kept]
    return {
        column: [value for trial in kept if (value := value_of(trial, column)) is not None]
        for column in map(metric_name, columns)
    }


def file_of(label: str, trials: Iterable[Trial], columns: Sequence[str] = tuple(DISPLAY)) -> File:
    """What a table shows of a test: these columns, by our names, of its kept trials."""
    trials = list(trials)
    samples: dict[str, list[float]] = {}
    epochs: dict[str, list[int]] = {}
    for trial in trials:
        for column in columns if trial.kept else ():
            value = value_of(trial, column)
            if value is not None:
                samples.setdefault(display_name(column), []).append(value)
                epochs.setdefault(display_name(column), []).append(trial.first.trial)
    return File(label, samples, epochs, _failures(trials))


def _failures(trials: Iterable[Trial]) -> list[str]:
    """Commands of kept trials that failed, and trials that were set aside for another reason than being the first."""
    found = []
    for trial in trials:
        for m in trial.measurements if trial.kept else ():
            if m.failed:
                how = f"signal {signal_name(m.signal)}" if m.signal else f"status {m.exit_status}"
                found.append(f"Thread {m.worker + 1} ended with {how} in epoch {m.trial}.")
        if not trial.kept and trial.first.why != "first run":
            found.append(f"Epoch {trial.first.trial} was set aside: {trial.first.why or 'no reason given'}.")
    return found


def table(files: Sequence[tuple[Any, ...]], confidence: float = 0.95) -> str:
    """Warnings, then a table for each file (a `File`, or its label and samples); the first one is the baseline.

    Raises ValueError for a value that is not finite.
    """
    warnings, tables = list[str](), list[str]()
    for label, found, rows in _described(files, confidence):
        warnings += [f"{label}: {line}" for line in found]
        cells = [[name, *map(_cell, values)] for name, *values in rows]
        heading = HEADINGS if not tables else (*HEADINGS, OVERHEAD)
        tables.append("\n".join([label, *aligned([heading, *cells])]))
    return "\n".join([*warnings, "\n\n".join(tables)])


def as_csv(files: Sequence[tuple[Any, ...]], confidence: float = 0.95) -> str:
    """The same figures with all their digits, a line each; warnings are left out."""
    lines = [("FILE", *HEADINGS, OVERHEAD)]
    for label, _, rows in _described(files, confidence):
        for name, *values in rows:
            digits = ["" if value is None else f"{value:.15g}" for value in values]
            lines.append((label, name, *digits, *[""] * (len(HEADINGS) - len(values))))
    return comma_separated(lines)


def comma_separated(lines: Iterable[Sequence[str]]) -> str:
    """Rows of cells as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue().rstrip("\n")


def aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells: the first to the left and two blanks behind it, the others to the right with one between."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        f"{first.ljust(widths[0])}  {' '.join(map(str.rjust, rest, widths[1:]))}" for first, *rest in lines
    ]


Row = tuple[Any, ...]  # a column's name, then a number or None for each heading


def _described(
    files: Sequence[tuple[Any, ...]], confidence: float
) -> Iterator[tuple[str, list[str], list[Row]]]:
    """Label, warnings and rows of each file."""
    baseline: Mapping[str, Figures] | None = None
    for file in (File(*members) for members in files):
        found = {name: figures(values, confidence) for name, values in file.samples.items() if len(values)}
        rows = [
            (name, *_numbers(f), *([] if baseline is None else [_overhead(f, baseline.get(name))]))
            for name, f in found.items()
        ]
        yield file.label, [*file.warnings, *_high_scores(file, found)], rows
        baseline = found if baseline is None else baseline


def _numbers(f: Figures) -> list[float | None]:
    center = [f.count, f.mean, f.median]
    if f.count < 2:
        return [*center, None, None, f.minimum, f.maximum, None, None]
    return [*center, f.mean - f.delta, f.mean + f.delta, f.minimum, f.maximum, f.sdev, f.hw]


def _overhead(f: Figures, baseline: Figures | None) -> float | None:
    return None if baseline is None or baseline.mean == 0.0 else 100.0 * (f.mean / baseline.mean - 1.0)


def _high_scores(file: File, found: Mapping[str, Figures]) -> Iterator[str]:
    """A sentence for each value that is far from its column's mean; the sign is dropped, as in the paper."""
    for name, f in found.items():
        if f.count < 2 or f.stddev == 0.0:
            continue
        column = RAW.get(metric_name(name), name)
        epochs = file.epochs.get(name) or range(1, f.count + 1)
        for value, epoch in zip(file.samples[name], epochs, strict=True):
            score = abs(value - f.mean) / f.stddev
            if score >= HIGH_Z:
                yield f"High z-score of {score:.15g} for {column} in epoch {epoch}."


def _cell(value: float | None) -> str:
    if value is None:
        return UNKNOWN
    return str(value) if isinstance(value, int) else f"{value:.3f}"
