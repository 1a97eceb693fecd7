"""Reading of a path as a subject: results of Étude, or any file that a reader knows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from etude.analysis.subject import (
    ResultNote,
    Subject,
    asked_of,
    subject_of,
    subject_of_table,
    subject_of_trials,
)
from etude.results.reader import read_experiment
from etude.results.res import read_res
from etude.results.results import names_of
from etude.results.table import Table
from etude.results.trials import read_trials
from etude.stats.intervals import Interval, t_quantile
from etude.stats.moments import interval_above_zero

if TYPE_CHECKING:
    from etude.analysis.transforms import Transform


def read_subject(
    path: str,
    transforms: Sequence[Transform] = (),
    variables: Mapping[str, float | str] | None = None,
    *,
    confidence: float = 0.95,
) -> Subject | Summaries:
    """The tests of a results directory or file, after these transforms with these variables.

    Raises:
        InputError: it cannot be read; UsageError: a transform does not fit.
    """
    place = Path(path)
    if not transforms and is_ours(place):
        return read_ours(place)
    from etude.analysis.pipeline import apply
    from etude.results.readers import read_table

    table = apply(read_table(path), transforms, variables, confidence=confidence)
    if table.summary_only:
        return summaries_of(table, confidence)
    found = subject_of_table(table)
    return _of_experiment(found, place) if is_ours(place) and place.is_dir() else found


def relabelled(found: Subject | Summaries, label: str) -> Subject | Summaries:
    """The same under the name of the bundle that holds it."""
    if isinstance(found, Summaries) or found.label == label:
        return found
    return replace(found, label=label, file=label)


def read_ours(place: Path) -> Subject:
    """Tests of a results directory, or of a file in Auto-pilot's format. Raises InputError: it cannot be read."""
    if place.suffix == ".res" and not place.is_dir():
        return subject_of(read_res(place))
    return subject_of_trials(read_trials(place))


def _of_experiment(found: Subject, place: Path) -> Subject:
    """Transformed rows of Étude with the request of their experiment, if it still has their tests."""
    experiment = read_experiment(place)
    asked = asked_of(experiment, place)
    names = [series.test for series in found.tests]
    if not set(names) <= set(names_of(experiment)):
        return replace(found, notes=(*found.notes, ResultNote("transformed")))
    primary = asked.primary if any(asked.primary in s.columns for s in found.tests) else found.asked.primary
    groups = tuple(group for group in asked.groups if set(group) <= set(names))
    return replace(found, asked=replace(asked, primary=primary, groups=groups), experiment=experiment)


def is_ours(place: Path) -> bool:
    """True for a results directory, or a file of Auto-pilot's format by its name."""
    try:
        return (place / "experiment.json").is_file() or (place.suffix == ".res" and place.is_file())
    except OSError:
        return False  # the reader reports it


@dataclass(frozen=True)
class SummaryRow:
    """One metric of one test, in `unit`."""

    test: str
    parameters: Mapping[str, str]
    metric: str
    unit: str
    figures: Mapping[str, float]
    """Figures that the file has, by the names of `results.table.SUMMARY`."""
    interval: Interval | None
    """Student's interval of the mean, from count, mean and deviation; None if one is missing."""


@dataclass(frozen=True)
class Summaries:
    """A file of summaries."""

    label: str
    rows: tuple[SummaryRow, ...]
    warnings: tuple[str, ...]


def summaries_of(table: Table, confidence: float = 0.95) -> Summaries:
    """The rows of a table of summaries."""
    rows = []
    for row in table.frame.iter_rows(named=True):
        figures = {
            name: float(value)
            for name, value in row.items()
            if isinstance(value, float) and value is not None and math.isfinite(value)
        }
        parameters = {name: row[name] for name in table.parameters if row[name] is not None}
        unit = table.units.get(row["metric"], "1")
        interval = _interval(figures, confidence)
        rows.append(SummaryRow(row["test"], parameters, row["metric"], unit, figures, interval))
    return Summaries(table.label, tuple(rows), table.warnings)


def _interval(figures: Mapping[str, float], confidence: float) -> Interval | None:
    """Student's interval of the mean; None if a figure is missing. Values known to be positive keep it above 0."""
    count, mean, deviation = (figures.get(name) for name in ("count", "mean", "deviation"))
    if count is None or mean is None or deviation is None or count < 2:
        return None
    half = t_quantile(confidence, count - 1) * deviation / math.sqrt(count)
    interval = Interval(mean - half, mean + half)
    if mean > 0.0 and figures.get("minimum", -1.0) >= 0.0:
        return interval_above_zero(interval, mean, int(count))
    return interval
