"""From a path to what can be judged: our own results, or any file that a reader knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from etude.analysis.stop_rule_info import asked_of
from etude.analysis.subject import Subject, subject_of, subject_of_table, subject_of_trials
from etude.results.reader import read_experiment
from etude.results.resfile import read_res
from etude.results.results import names_of
from etude.results.trials import read_trials

if TYPE_CHECKING:
    from etude.analysis.pipeline.transforms import Transform
    from etude.analysis.summaries import Summaries


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
    from etude.analysis.pipeline.steps import apply
    from etude.results.readers import read_table

    table = apply(read_table(path), transforms, variables, confidence=confidence)
    if table.summary_only:
        from etude.analysis.summaries import summaries_of

        return summaries_of(table, confidence)
    found = subject_of_table(table)
    return _of_experiment(found, place) if is_ours(place) and place.is_dir() else found


def read_ours(place: Path) -> Subject:
    """The tests of a results directory, or of a file in Auto-pilot's format. Raises InputError: it cannot be read."""
    if place.suffix == ".res" and not place.is_dir():
        return subject_of(read_res(place))
    return subject_of_trials(read_trials(place))


def _of_experiment(found: Subject, place: Path) -> Subject:
    """Transformed rows of ours with what their experiment was asked for, as far as its tests are still there."""
    experiment = read_experiment(place)
    asked = asked_of(experiment, place)
    names = [series.test for series in found.tests]
    if not set(names) <= set(names_of(experiment)):
        note = "the transforms made other tests: blocks, and what the stop rule costs, are not counted"
        return replace(found, notes=(*found.notes, note))
    primary = asked.primary if any(asked.primary in s.columns for s in found.tests) else found.asked.primary
    groups = tuple(group for group in asked.groups if set(group) <= set(names))
    return replace(found, asked=replace(asked, primary=primary, groups=groups), experiment=experiment)


def is_ours(place: Path) -> bool:
    """A results directory, or Auto-pilot's format by its name."""
    try:
        return (place / "experiment.json").is_file() or (place.suffix == ".res" and place.is_file())
    except OSError:
        return False  # said by who reads it
