"""`etude plan`: how many trials a difference needs, from a pilot."""

from __future__ import annotations

import argparse
from pathlib import Path

from etude.analysis.load_subject import is_ours, read_ours
from etude.analysis.planning import PlanTargets, plan_from
from etude.analysis.subject import Subject, subject_of_table
from etude.errors import InputError
from etude.present.sections.plan import plan_blocks, to_document
from etude.present.terminal import show
from etude.present.to_json import print_json
from etude.results.readers import read_table


def run(options: argparse.Namespace) -> int:
    """Print the plan."""
    subject = _read(options.pilot)
    wanted = PlanTargets(
        options.effect,
        options.precision,
        options.power,
        options.deadline,
        options.metric,
        tuple(options.test),
    )
    plans = plan_from(subject, wanted)
    if options.json:
        print_json(to_document(subject.label, plans))
        return 0
    for plan in plans:
        show(plan_blocks(plan, subject.experiment))
    return 0


def _read(path: str) -> Subject:
    place = Path(path)
    if is_ours(place):
        return read_ours(place)
    table = read_table(path)
    if table.summary_only:
        raise InputError(f"{path}: holds summaries, no trials; a plan needs the trials of a pilot")
    return subject_of_table(table)
