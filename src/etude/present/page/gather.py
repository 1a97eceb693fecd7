"""All that a report tells of: the verdicts on results, how later ones compare with the first, and their machines."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from etude.analysis.cross_session import CrossSession, compare_with_first
from etude.analysis.load_subject import Summaries, read_subject, relabelled
from etude.analysis.snapshot_differences import Difference, compare, compare_states, state_of
from etude.analysis.subject import Subject
from etude.analysis.verdict import Verdict, verdict
from etude.analysis.verdict_options import VerdictOptions
from etude.iolab.points import over_of
from etude.masking import Mask, mask_of_all
from etude.results.engine_reports import Report, is_report, read_report
from etude.results.reader import first_measurement

SEARCHES = ("peak", "surface", "bisect")
"""Kinds of plans that decide themselves how many trials a test needs."""
SWEEPS = ("buffer", "total")
"""Sweeps of the I/O lab, by what they are over."""
OWN_PARTS = (*SEARCHES, *SWEEPS)
"""Kinds of results whose tests are no ends in themselves: their answer is that of their own part."""


@dataclass(frozen=True, eq=False)
class Gathered:
    """The results of a page, in the order in which they were named; the first is the baseline of the others."""

    verdicts: tuple[Verdict, ...]
    across: tuple[CrossSession, ...]
    without: tuple[str, ...]
    """Reasons why some results are not compared with the first."""
    summaries: tuple[Summaries, ...]
    """Files that hold no trials."""
    machines: tuple[tuple[str, tuple[Difference, ...]], ...]
    """Label of each later result of ours, and the differences of its machine from the first one's."""
    commands: Mapping[tuple[str, str], str]
    """Command lines by label and test, where they are known."""
    verdict_options: VerdictOptions
    reports: tuple[tuple[str, Report], ...] = ()
    """Label and content of each file that holds the output of a replay or a load."""
    mask: Mask = field(default_factory=Mask)
    """The secrets of all results, which must not stand in a page."""


def gather(
    paths: Sequence[str],
    verdict_options: VerdictOptions | None = None,
    metric: str | None = None,
    between_sessions: float | None = None,
    labels: Mapping[str, str] | None = None,
) -> Gathered:
    """Read and judge results.

    metric: judged instead of the primary one. between_sessions: how far sessions lie apart, a share, if it is known.
    labels: names of paths, where they are not themselves.

    Raises:
        InputError: a path cannot be read; UsageError: no such metric or test.
    """
    verdict_options = verdict_options or VerdictOptions(full=True)
    subjects: list[Subject] = []
    summaries: list[Summaries] = []
    reports: list[tuple[str, Report]] = []
    for path in paths:
        if is_report(Path(path)):
            reports.append((path, read_report(Path(path))))
            continue
        found = read_subject(path, confidence=verdict_options.confidence)
        if labels and path in labels:
            found = relabelled(found, labels[path])
        (summaries if isinstance(found, Summaries) else subjects).append(found)  # type: ignore[arg-type]
    mask = mask_of_all((each.label, each.experiment or {}) for each in subjects)
    verdicts = [_judge(subject, metric, verdict_options) for subject in subjects]
    across, without = _across(verdicts, verdict_options, between_sessions)
    return Gathered(
        tuple(verdicts),
        tuple(across),
        tuple(without),
        tuple(summaries),
        _machines(subjects),
        {key: command for subject in subjects for key, command in _commands(subject, mask)},
        verdict_options,
        tuple(reports),
        mask,
    )


def kind_of(subject: Subject) -> str:
    """Kind of the plan, or what a sweep of the I/O lab is over; empty for other results."""
    kind = ((subject.experiment or {}).get("plan") or {}).get("kind")
    if isinstance(kind, str):
        return kind
    return over_of([series.parameters for series in subject.tests]) or "" if subject.experiment else ""


def _of_kind_of_first(subjects: Sequence[Subject]) -> list[Subject]:
    """The first, and those that are compared with it: no sweep is compared with anything but its like."""
    first = kind_of(subjects[0])
    return [s for s in subjects if (kind := kind_of(s)) == first or not {kind, first} & set(SWEEPS)]


def _judge(subject: Subject, metric: str | None, verdict_options: VerdictOptions) -> Verdict:
    """All metrics are summarised; `metric` is judged, where it is given. A search and a map decide themselves how many
    trials a load needs: they have no warning of few. The tests of a sweep are points of curves: the first one is no
    baseline of theirs."""
    kind = kind_of(subject)
    if kind in SEARCHES:
        verdict_options = replace(verdict_options, silent=(*verdict_options.silent, "too-few"))
    known = dict.fromkeys(name for series in subject.tests for name in series.columns)
    metrics = None if metric is None else list(dict.fromkeys((metric, *known)))
    found = verdict(subject, metrics, verdict_options)
    return replace(found, comparisons=()) if kind in SWEEPS else found


def _across(
    verdicts: Sequence[Verdict], verdict_options: VerdictOptions, between: float | None
) -> tuple[list[CrossSession], list[str]]:
    if len(verdicts) < 2:
        return [], []
    subjects = _of_kind_of_first([verdict.subject for verdict in verdicts])
    found, without = compare_with_first(
        subjects, verdicts[0].primary, between=between, confidence=verdict_options.confidence
    )
    return found, [f"{label} is not compared with {subjects[0].label}: {reason}" for label, reason in without]


def _machines(subjects: Sequence[Subject]) -> tuple[tuple[str, tuple[Difference, ...]], ...]:
    ours = [subject for subject in subjects if (subject.experiment or {}).get("machine")]
    if not ours:
        return ()
    first, alike = ours[0].experiment or {}, _of_kind_of_first(ours)
    return tuple((each.label, _differences(first, each.experiment or {}, each in alike)) for each in ours[1:])


def _differences(then: Mapping[str, Any], now: Mapping[str, Any], whole: bool) -> tuple[Difference, ...]:
    """Differences of machine and settings; `whole`: of the plans, too."""
    if whole:
        return compare(then, now).differs
    return compare_states(
        state_of(then), state_of(now), mask=mask_of_all([("then", then), ("now", now)])
    ).differs


def _commands(subject: Subject, mask: Mask) -> list[tuple[tuple[str, str], str]]:
    """Command lines from the plan of `etude bench`, without secrets; for a script's test the first measured command."""
    experiment = subject.experiment or {}
    planned = {
        test.get("name"): test.get("command") for test in (experiment.get("plan") or {}).get("tests") or ()
    }
    found = []
    for series in subject.tests:
        words = planned.get(series.test) or _first_command(subject, series.test)
        if words:
            shown = words if isinstance(words, str) else _shell(mask.words(map(str, words)))
            found.append(((subject.label, series.test), shown))
    return found


def _first_command(subject: Subject, test: str) -> Sequence[str]:
    for entry in (subject.experiment or {}).get("tests") or ():
        if entry.get("name") == test and entry.get("directory") and subject.directory is not None:
            first = first_measurement(subject.directory / entry["directory"] / "results.jsonl")
            return first.command if first else ()
    return ()


def _shell(words: Sequence[str]) -> str:
    """The command line as one would type it; for a command of a shell, that command."""
    if len(words) == 3 and tuple(words[:2]) == ("/bin/sh", "-c"):
        return str(words[2])
    return shlex.join(map(str, words))
