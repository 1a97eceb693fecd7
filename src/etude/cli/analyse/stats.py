"""`etude stats`: tables, comparisons and warnings of results."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from etude.analysis.cross_session import CrossSession, compare_with_first
from etude.analysis.gate import judge_subjects, read_predicate
from etude.analysis.load_subject import Summaries, read_subject
from etude.analysis.subject import Subject, check_metric
from etude.analysis.verdict import Verdict, verdict
from etude.analysis.verdict_options import VerdictOptions, usual_metrics
from etude.analysis.warnings import KINDS, Thresholds
from etude.cli.analyse.bounds import answer, read_bounds
from etude.errors import UsageError
from etude.present.section import Sentence
from etude.present.sections.stats import Statistics, summaries_blocks
from etude.present.sentences.machines import machines_lines
from etude.present.sentences.verdict import unanswered_lines
from etude.present.terminal import Terminal, show, show_aside
from etude.present.to_json import print_json, verdict_documents
from etude.results.bundle import is_bundle, open_bundle
from etude.stats.predicate import Predicate


def run(options: argparse.Namespace) -> int:
    """Show each file, compare the later ones with the first, answer what was asked."""
    verdict_options = _verdict_options(options)
    bounds = read_bounds(options.fail_if)
    predicate = None if options.predicate is None else read_predicate(options.predicate, options.confidence)
    sources = [source for path in options.files for source in _sources(path, options)]
    subjects = [source for source in sources if source is not None]
    verdicts = [verdict(subject, _metrics(subject, options), verdict_options) for subject in subjects]
    across, without = _across(verdicts, options, verdict_options)
    machines = machines_lines(subjects) if len(subjects) > 1 else []
    notes = unanswered_lines(verdicts, across, same_within=options.same_within, tests=options.test)
    if options.json:
        print_json(verdict_documents(verdicts, across, machines))
        show_aside(*(Sentence(f"Note: {line}") for line in notes))
    else:
        screen = Terminal()
        found = Statistics(options, verdict_options, screen.width)
        show(found.blocks(verdicts, across, without, [*machines, *notes]), screen)
    code = answer(
        bounds,
        verdicts,
        across,
        undecided=options.undecided,
        few=verdict_options.thresholds.few,
        aside=options.json,
    )
    judged = _judge(subjects, predicate, options)
    return 1 if 1 in (code, judged) else code


def _verdict_options(options: argparse.Namespace) -> VerdictOptions:
    for kind in options.no_warn:
        if kind not in KINDS:
            raise UsageError(
                f"--no-warn {kind}: no such kind of warning; there are {', '.join(sorted(KINDS))}"
            )
    return VerdictOptions(
        confidence=options.confidence,
        thresholds=Thresholds.parse(options.threshold),
        silent=frozenset(options.no_warn),
        watched=tuple(name for names in options.watch for name in names.replace(",", " ").split()),
        reference=options.reference,
        same_within=options.same_within,
        secondary=tuple(options.metric[1:]) if options.metric else None,
        every_outlier=options.verbose or options.json,
        full=True,
    )


def _sources(path: str, options: argparse.Namespace) -> list[Subject | None]:
    place = Path(path)
    if not is_bundle(place):
        return [_read(path, options)]
    with open_bundle(place) as found:
        subjects = [(directory.name, _read(str(directory), options)) for directory in found]
    several = len(subjects) > 1
    return [
        subject and replace(subject, label=f"{path}: {name}" if several else path, file=path)
        for name, subject in subjects
    ]


def _read(path: str, options: argparse.Namespace) -> Subject | None:
    """The file's tests; None for one that holds summaries only, which are shown at once."""
    found = read_subject(path, options.transforms, options.variables, confidence=options.confidence)
    if isinstance(found, Summaries):
        show(summaries_blocks(found, options.confidence, wide=options.wide))
        return None
    return found


def _metrics(subject: Subject, options: argparse.Namespace) -> list[str] | None:
    if options.metric:
        for metric in options.metric:
            check_metric(subject.tests, metric)
        return list(options.metric)
    if options.all or options.json:
        return None
    return usual_metrics(subject)


def _across(
    verdicts: Sequence[Verdict], options: argparse.Namespace, verdict_options: VerdictOptions
) -> tuple[list[CrossSession], list[str]]:
    """The later files against the first, and why some are not compared."""
    if len(verdicts) < 2:
        return [], []
    found, without = compare_with_first(
        [verdict.subject for verdict in verdicts],
        verdicts[0].primary,
        between=options.between_sessions,
        confidence=verdict_options.confidence,
    )
    return found, [f"Not compared: {reason}" for _, reason in without]


def _judge(subjects: Sequence[Subject], predicate: Predicate | None, options: argparse.Namespace) -> int:
    """1 unless the predicate holds for every judged metric of every test; says for which it does not."""
    if predicate is None:
        return 0

    judgements = judge_subjects(subjects, predicate, options.metric)
    for test, judgement in judgements:
        if not judgement.holds:
            line = Sentence(f"--predicate does not hold: {test}: {judgement.why}")
            show([line], sys.stderr if options.json else None)
    return 0 if judgements and all(judgement.holds for _, judgement in judgements) else 1
