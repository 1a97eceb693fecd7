"""Comparison of results of different sessions; refused if the spread between sessions is unknown."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from etude.analysis.comparison import samples
from etude.analysis.load_subject import read_ours
from etude.analysis.snapshot_differences import Differences, compare
from etude.analysis.subject import Subject
from etude.errors import EtudeError, InputError, NotComparable
from etude.results.series import Column, Floats, Series
from etude.stats.cross_session import (
    CrossSessionRatio,
    NotSupported,
    Overall,
    SessionSpread,
    between_sessions,
    compare_sessions,
    overall_ratio,
    stated_session_spread,
)
from etude.stats.describe import describe
from etude.stats.means import Kind, average
from etude.stats.ratio import Ratio, ratio_of_fitting_means, unpaired_mean_ratio, unpaired_ratio

MOST_STORED = 50
"""Maximum number of sibling results searched for further sessions of a result's tests, newest first."""


@dataclass(frozen=True)
class CrossSession:
    """A test of one result compared with a test of another result."""

    base: str
    other: str
    base_label: str
    other_label: str
    metric: str
    unit: str
    base_mean: float
    found: CrossSessionRatio | Ratio | NotSupported
    """Ratio: both have several sessions, and the interval is over those."""
    other_command: bool = False
    """True if the command lines of the tests differ."""
    trials: int | None = None
    """Number of values of the smaller test; None if unknown."""

    @property
    def adjusted_p(self) -> float | None:
        """p adjusted for all comparisons with the same first result; None for a single or a refused comparison."""
        if isinstance(self.found, NotSupported) or self.found.together == 1:
            return None
        return self.found.adjusted_p


def compare_across(
    base: Subject,
    other: Subject,
    metric: str,
    *,
    known: SessionSpread | None = None,
    stored: Sequence[Subject] = (),
    confidence: float = 0.95,
) -> list[CrossSession]:
    """Comparison of each test of `other` with the test of `base` of the same name, or of two single tests.

    known: the stated spread between sessions; by default it is computed from the sessions of the base's test in
    `base` and `stored` on the same machine, of which there must be three.

    Raises:
        InputError: no tests match; ValueError: their values have no ratio.
    """
    found = []
    themselves = {Path(subject.label).resolve() for subject in (base, other)}
    beside = [subject for subject in stored if Path(subject.label).resolve() not in themselves]
    for old, new in tests_in_common(base, other):
        column, theirs = (_column(s, series, metric) for s, series in ((base, old), (other, new)))
        if theirs.unit != column.unit:
            raise InputError(
                f"{other.label}: {metric} is in {theirs.unit} there, in {column.unit} in {base.label}"
            )
        before, after = old.sample(metric), new.sample(metric)
        if min(before.size, after.size) >= 2:
            ratio = _ratio(old, new, metric, known, _alike(base, old, beside), confidence)
            mean = describe(before, cast(Kind, column.kind)).mean
            other_command = not same_command(base, old, other, new)
            found.append(
                CrossSession(
                    old.test,
                    new.test,
                    base.label,
                    other.label,
                    metric,
                    column.unit,
                    mean,
                    ratio,
                    other_command,
                    min(before.size, after.size),
                )
            )
    return found


def overall(across: Sequence[CrossSession]) -> list[tuple[str, Overall]]:
    """Label of each later result with two or more compared tests, and the ratio of all of them together."""
    found = []
    for label in dict.fromkeys(a.other_label for a in across):
        ratios = [a.found for a in across if a.other_label == label and not isinstance(a.found, NotSupported)]
        together = overall_ratio(ratios)
        if together is not None:
            found.append((label, together))
    return found


def machines_compared(subjects: Sequence[Subject]) -> list[tuple[str, Differences]]:
    """Label of each later result of Étude, and the differences of its machine and settings from the first's."""
    base, *others = subjects
    return [
        (other.label, compare(base.experiment, other.experiment))
        for other in others
        if base.experiment is not None and other.experiment is not None
    ]


def same_command(one: Subject, test: Series, other: Subject, its_test: Series) -> bool:
    """True if both tests are recorded to run the same command, or if a command is not recorded."""
    made_of = [_recorded(one, test.test), _recorded(other, its_test.test)]
    return None in made_of or made_of[0] == made_of[1]


def _recorded(subject: Subject, test: str) -> Any:
    """Command and environment of a test of `etude bench`, or digest of a script; None if not recorded."""
    if subject.experiment is None:
        return None
    plan = subject.experiment.get("plan") or {}
    if plan.get("kind") == "script":
        return subject.experiment.get("digest")
    found = [
        (list(t.get("command") or ()), dict(t.get("environment") or {}))
        for t in plan.get("tests") or ()
        if t.get("name") == test
    ]
    return found[0] if found else None


def _column(subject: Subject, series: Series, metric: str) -> Column:
    column = series.column(metric)
    if column is None:
        raise InputError(
            f"{subject.label}: test {series.test} has no {metric}; it has {', '.join(series.columns)}"
        )
    return column


def compare_with_first(
    subjects: Sequence[Subject], metric: str, *, between: float | None = None, confidence: float = 0.95
) -> tuple[list[CrossSession], list[tuple[str, str]]]:
    """Comparisons of the later results with the first; and label and reason of each that is not compared.

    Intervals hold for all comparisons together.
    between: the stated relative spread between sessions (0.03); by default it is computed from stored results.
    """
    base, *others = subjects
    known = None if between is None else stated_session_spread(100.0 * between)
    stored = [] if known else stored_beside(base)
    found: list[CrossSession] = []
    without: list[tuple[str, str]] = []
    for other in others:
        try:
            found += compare_across(base, other, metric, known=known, stored=stored, confidence=confidence)
        except (InputError, ValueError) as error:
            without.append((other.label, str(error)))
    return _as_family(found), without


def _as_family(found: Sequence[CrossSession]) -> list[CrossSession]:
    together = sum(not isinstance(a.found, NotSupported) for a in found)
    return [
        a if isinstance(a.found, NotSupported) else replace(a, found=a.found.among(together)) for a in found
    ]


def check_comparable(
    base: Subject,
    planned: Mapping[str, Sequence[str]],
    metric: str,
    unit: str | None,
    *,
    between: float | None = None,
    several: bool = False,
) -> None:
    """Refuse a comparison with tests still to be measured, if it is already known to fail.

    planned: their commands by name; unit: of the metric, where they state it; several: they get several sessions.

    Raises:
        NotComparable: the message has the remedy.
    """
    check_names(base, list(planned))
    by_name = {series.test: series for series in base.tests}
    pairs = [(by_name[name], name) for name in planned if name in by_name]
    stored = stored_beside(base) if between is None else []
    for old, name in pairs or [(base.tests[0], next(iter(planned)))]:
        column = old.column(metric)
        if column is None:
            known = ", ".join(old.columns)
            raise NotComparable(
                f"{base.label}: test {old.test} has no {metric}; it has {known}: choose one with --primary"
            )
        if unit not in (None, column.unit):
            raise NotComparable(
                f"{base.label}: {metric} of {old.test} is in {column.unit}, --metric {metric} in {unit}; "
                "state the same unit"
            )
        sessions = by_session(old, metric)
        if not sessions:
            raise NotComparable(f"{base.label}: test {old.test} has fewer than two values of {metric}")
        if between is not None or (several and len(sessions) >= 2):
            continue
        found = between_sessions([*sessions, *_more_sessions(old, metric, _alike(base, old, stored))])
        if isinstance(found, NotSupported):
            raise NotComparable(
                f"{base.label}: {found.reason}, so {name} cannot be compared with it; "
                f"{_instead(base, old, planned[name])}"
            )


def _instead(base: Subject, old: Series, command: Sequence[str]) -> str:
    """Advice on what to run in place of a comparison with a stored result."""
    made_of = _recorded(base, old.test)
    then = made_of[0] if isinstance(made_of, tuple) else None
    both = "measure both together, as two commands"
    if then and then != list(command):
        both = (
            f"measure both at once: {shlex.join(['etude', 'bench', shlex.join(then), shlex.join(command)])}"
        )
    return f"{both}; or state how far sessions lie apart, such as --between-sessions 3%"


def _alike(base: Subject, old: Series, stored: Sequence[Subject]) -> list[Series]:
    return [
        series
        for subject in stored
        for series in subject.tests
        if series.test == old.test and same_command(base, old, subject, series)
    ]


def tests_in_common(base: Subject, other: Subject) -> list[tuple[Series, Series]]:
    """Pairs of tests with the same name; the two single tests if each result has only one.

    Raises:
        InputError: there are none.
    """
    check_names(base, [series.test for series in other.tests])
    by_name = {series.test: series for series in base.tests}
    found = [(by_name[series.test], series) for series in other.tests if series.test in by_name]
    return found or [(base.tests[0], other.tests[0])]


def check_names(base: Subject, names: Sequence[str]) -> None:
    """Raise NotComparable unless a name is that of a test of the base, or both have a single test."""
    known = [series.test for series in base.tests]
    if not set(known) & set(names) and not len(known) == len(names) == 1:
        raise NotComparable(
            f"{base.label}: none of its tests ({', '.join(known)}) has the name of a test that is compared "
            f"with it ({', '.join(names)}); give them the same names, in etude bench with -n"
        )


def stored_beside(subject: Subject) -> list[Subject]:
    """Other results in the parent directory of a result of Étude; unreadable ones are skipped."""
    if subject.experiment is None or subject.experiment.get("verb") == "res":
        return []
    here = Path(subject.label).resolve()
    found = []
    for file in sorted(here.parent.glob("*/experiment.json"), key=_age)[:MOST_STORED]:
        if file.parent != here:
            try:
                found.append(read_ours(file.parent))
            except EtudeError:
                continue
    return found


def _age(path: Path) -> float:
    try:
        return -path.stat().st_mtime
    except OSError:
        return 0.0


def by_session(series: Series, metric: str) -> list[Floats]:
    """Sample of the metric in each session that has two or more values."""
    column = series.column(metric)
    if column is None:
        return []
    there = series.kept & np.isfinite(column.values)
    if series.sittings is None:
        parts = [column.values[there]]
    else:
        parts = [column.values[there & (series.sittings == number)] for number in np.unique(series.sittings)]
    return [part for part in parts if part.size >= 2]


def _ratio(
    old: Series,
    new: Series,
    metric: str,
    known: SessionSpread | None,
    stored: Sequence[Series],
    confidence: float,
) -> CrossSessionRatio | Ratio | NotSupported:
    sides = [by_session(series, metric) for series in (old, new)]
    kind = cast(Kind, old.columns[metric].kind)
    if min(map(len, sides)) >= 2:
        before, after = ([average(part, kind).mean for part in side] for side in sides)
        mean_ratio = partial(unpaired_mean_ratio, confidence=confidence)
        found = ratio_of_fitting_means(before, after, kind, mean_ratio)
        return found or unpaired_ratio(before, after, confidence=confidence)
    between: SessionSpread | NotSupported | None = known
    if between is None:
        between = between_sessions([*sides[0], *_more_sessions(old, metric, stored)])
    before_values, after_values = samples(old, new, metric)
    return compare_sessions(before_values, after_values, between, kind=kind, confidence=confidence)


def _more_sessions(series: Series, metric: str, stored: Sequence[Series]) -> list[Floats]:
    """Samples, all above 0, of the stored sessions of the same test on the same machine."""
    machines = _machines(series)
    return [
        part
        for candidate in stored
        if _machines(candidate) == machines
        for part in by_session(candidate, metric)
        if bool(np.all(part > 0.0))
    ]


def _machines(series: Series) -> set[Any]:
    return set(series.labels.get("machine", ()))
