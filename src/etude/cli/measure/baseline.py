"""Results that new ones are compared with (`--baseline`)."""

from __future__ import annotations

import argparse
from pathlib import Path

from etude.analysis.cross_session import check_comparable
from etude.analysis.load_subject import read_ours
from etude.analysis.snapshot_differences import compare_states, state_of
from etude.analysis.subject import Subject
from etude.cli.analyse.diff import NOW, state_now
from etude.experiment.plan import Plan
from etude.present.section import note
from etude.present.sentences.machines import machine_line
from etude.present.to_terminal import show_aside
from etude.results.trial_join import stored_unit


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
