"""From a path to what can be judged: our own results, or any file that a reader knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from etude.report.asked import asked_of
from etude.report.subject import (
    Subject,
    in_stretches,
    session_notes,
    subject_of,
    subject_of_table,
    watched_in,
)
from etude.report.usual import ALWAYS, usual_names
from etude.results.reader import load_results, read_experiment
from etude.results.results import Results
from etude.results.series import Series
from etude.results.stretches import stretches

if TYPE_CHECKING:
    from etude.report.pipeline.transforms import Transform
    from etude.report.summaries import Summaries

LARGE_BYTES = 64 << 20
"""Results of ours above this size are read as columns only: what single trials printed is not looked at."""


def read_subject(
    path: str,
    transforms: Sequence[Transform] = (),
    variables: Mapping[str, float | str] | None = None,
    *,
    metrics: Sequence[str] | None = None,
    watched: Sequence[str] = (),
    confidence: float = 0.95,
) -> Subject | Summaries:
    """The tests of a results directory or file, after these transforms with these variables.

    metrics: those that are needed of large results; None: all. watched: further ones.

    Raises:
        InputError: it cannot be read; UsageError: a transform does not fit.
    """
    place = Path(path)
    if not transforms and _is_ours(place):
        experiment = read_experiment(place) if place.is_dir() else None
        if experiment is None or _size(place) <= LARGE_BYTES:
            return subject_of(load_results(place))
        return _of_columns(place, experiment, metrics, watched)
    from etude.report.pipeline.steps import apply
    from etude.results.readers import read_table

    table = apply(read_table(path), transforms, variables, confidence=confidence)
    if table.summary_only:
        from etude.report.summaries import summaries_of

        return summaries_of(table, confidence)
    found = subject_of_table(table)
    return _of_experiment(found, place) if _is_ours(place) and place.is_dir() else found


def _of_experiment(found: Subject, place: Path) -> Subject:
    """Transformed rows of ours with what their experiment was asked for, as far as its tests are still there."""
    results = Results(place, read_experiment(place), {}, ())
    asked = asked_of(results)
    names = [series.test for series in found.tests]
    if not set(names) <= set(results.names()):
        note = "the transforms made other tests: blocks, and what the stop rule costs, are not counted"
        return replace(found, notes=(*found.notes, note))
    primary = asked.primary if any(asked.primary in s.columns for s in found.tests) else found.asked.primary
    groups = tuple(group for group in asked.groups if set(group) <= set(names))
    return replace(found, asked=replace(asked, primary=primary, groups=groups), experiment=results.experiment)


def _is_ours(place: Path) -> bool:
    """A results directory, or Auto-pilot's format by its name."""
    try:
        return (place / "experiment.json").is_file() or (place.suffix == ".res" and place.is_file())
    except OSError:
        return False  # said by who reads it


def _size(place: Path) -> int:
    return sum(file.stat().st_size for file in place.glob("*/results.jsonl"))


def _of_columns(
    place: Path, experiment: Mapping[str, Any], metrics: Sequence[str] | None, watched: Sequence[str]
) -> Subject:
    from etude.results.columns import read_columns
    from etude.results.columns_series import series_of_columns

    results = Results(place, experiment, {}, ())
    asked = asked_of(results)
    wanted = (
        None
        if metrics is None
        else (
            *(metrics or usual_names(asked.primary, experiment.get("metrics") or ALWAYS)),
            *watched,
            *watched_in(experiment),
        )
    )
    columns = read_columns(place, wanted, roles=("test", "again", "shell"))
    parts = stretches(experiment["sittings"])
    found = {series.test: in_stretches(series, parts) for series in series_of_columns(columns)}
    large = "these results are large: what single trials printed was not looked at"

    def of_role(role: str) -> tuple[Series, ...]:
        return tuple(found[name] for name in results.names(role) if name in found)

    tests = of_role("test")
    return Subject(
        label=str(place),
        asked=asked,
        tests=tests,
        twins=of_role("again"),
        shell=next(iter(of_role("shell")), None),
        experiment=experiment,
        notes=(*columns.warnings, *session_notes(results, tests), large),
        directory=place,
    )
