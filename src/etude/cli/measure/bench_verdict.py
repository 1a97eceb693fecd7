"""The verdict of `etude bench` on what it has just measured, and the baseline that this is compared with."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from etude.analysis.cross_session import CrossSession, check_comparable, compare_with_first
from etude.analysis.gate import Bound
from etude.analysis.load_subject import read_ours
from etude.analysis.snapshot_differences import compare_states, state_now, state_of
from etude.analysis.subject import Subject
from etude.analysis.verdict import Verdict, verdict
from etude.analysis.verdict_options import VerdictOptions, is_shown
from etude.cli.analyse.bounds import answer
from etude.cli.analyse.diff import NOW
from etude.errors import NotComparable
from etude.experiment.plan import Plan
from etude.export import FORMATS, SUMMARIES, export_to
from etude.export.document import lost_lines
from etude.export.gather import gather
from etude.present.export import write, write_text
from etude.present.section import Sentence, note
from etude.present.sections.bench import BESIDE, verdict_blocks
from etude.present.sentences.machines import machine_line, machines_lines
from etude.present.terminal import show, show_aside
from etude.present.to_json import print_json, verdict_document
from etude.results.results import Results
from etude.results.trial_join import stored_unit
from etude.stats.cross_session import NotSupported

if TYPE_CHECKING:
    from etude.api.why import Why


def show_verdict(
    options: argparse.Namespace,
    results: Results,
    bounds: Sequence[Bound],
    exports: Sequence[tuple[str, Path | None]],
    baseline: Subject | None,
) -> int:
    """Judge what was measured, show it and write the exports; returns the exit code."""
    primary = results.experiment["plan"]["primary"]
    bounded = (bound.metric for bound in bounds)
    metrics = None if options.json or exports else tuple(dict.fromkeys((primary, *BESIDE, *bounded)))
    found = verdict(results, metrics, VerdictOptions(every_outlier=options.json))
    across, without = _across(baseline, found, options.between_sessions)
    left_out = _write_exports(found, exports)
    machines = [] if baseline is None else machines_lines([baseline, found.subject])
    if options.json:
        document = verdict_document(found, across, machines)
        print_json(document | ({"why": causes(results.directory).document()} if options.why else {}))
    else:
        show(verdict_blocks(found, across, without, machines))
        if options.why:
            show(causes(results.directory).section().blocks)
    show_aside(*(Sentence(f"Left out: {line}") for line in left_out))
    code = answer(
        bounds,
        [found],
        across,
        undecided=options.undecided,
        beside=_beside_bounds(options),
        aside=options.json,
    )
    return code or _refusal(across, without)


def causes(directory: Path) -> Why:
    """The causes of the difference of the first two tests, with the progress of the pairs."""
    from etude.cli.analyse.why import explained  # what it needs takes a tenth of a second to load

    return explained(directory)


def _write_exports(verdict: Verdict, exports: Sequence[tuple[str, Path | None]]) -> list[str]:
    """Write each; returns a line for each kind of thing that is shown and that a format could not hold.

    Raises:
        MachineRefuses: a file cannot be written; UsageError: a format cannot hold these results.
    """
    left_out: list[str] = []
    for form, path in exports:
        if form in SUMMARIES:
            write(verdict, form, path or verdict.directory / f"summary.{SUMMARIES[form]}")
        else:
            left_out += _write_other(verdict.directory, form, path)
    return left_out


def _write_other(directory: Path, form: str, path: Path | None) -> list[str]:
    found = export_to(form, gather([str(directory)]))
    write_text(path or directory / f"{form}.{FORMATS[form].suffix}", found.text)
    return list(lost_lines([lost for lost in found.left_out if is_shown(lost.metric)]))


def _beside_bounds(options: argparse.Namespace) -> list[tuple[str, str]]:
    pairs = [] if options.baseline is None else [("--baseline", str(options.baseline))]
    if options.between_sessions is not None:
        pairs.append(("--between-sessions", f"{100 * options.between_sessions:.12g}%"))
    return pairs


def _refusal(across: list[CrossSession], without: list[str]) -> int:
    """The exit code where a test was not compared with the baseline; 0 where there is none, or all were."""
    if not (across or without):
        return 0
    refused = without or any(isinstance(each.found, NotSupported) for each in across)
    return NotComparable.exit_code if refused else 0


def _across(
    baseline: Subject | None, found: Verdict, between: float | None
) -> tuple[list[CrossSession], list[str]]:
    if baseline is None:
        return [], []
    across, without = compare_with_first([baseline, found.subject], found.primary, between=between)
    return across, [f"Not compared: {reason}" for _, reason in without]


def check_baseline(baseline: Subject, plan: Plan, options: argparse.Namespace, *, over_pool: bool) -> None:
    """Check, before anything is measured, that the tests can be compared with the baseline's, and show how this machine
    differs.

    Raises:
        EtudeError: they cannot.
    """
    check_comparable(
        baseline,
        {test.name: test.command for test in plan.tests},
        plan.primary,
        next((stored_unit(m.unit).base for m in options.metric if m.name == plan.primary), None),
        between=options.between_sessions,
        several=over_pool,
    )
    if not over_pool:
        _note_other_machine(baseline)


def _note_other_machine(baseline: Subject) -> None:
    """Print, before anything is measured, how this machine differs from the baseline's."""
    known = state_of(baseline.experiment or {})
    line = machine_line(baseline.label, NOW, compare_states(known, state_now(known)))
    if line is not None:
        show_aside(note(line))


def read_baseline(directory: str) -> Subject:
    """The results that are compared with."""
    return read_ours(Path(directory))
