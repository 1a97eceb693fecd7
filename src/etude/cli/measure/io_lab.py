"""`etude io lab`: both I/O sweeps, with explanations and figures."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from etude.cli.measure.io_sweep import show_sweeps
from etude.cli.shared_options import check_alone
from etude.experiment.session import new_directory
from etude.iolab.exercise import NAME, Grade, graded, lab_of, questions, template
from etude.iolab.lab import SWEEPS, Lab, Studied, begin, read_lab, read_only, run_lab, write_text
from etude.iolab.run_sweep import resume_sweep, sweep
from etude.iolab.sweeps import TOTALS, make_plan, make_sweep
from etude.present.progress.script import SweepDisplay
from etude.present.section import Block, FilePath, Sentence
from etude.present.sections.io_sweep import figure_places
from etude.present.to_terminal import show
from etude.results.reader import load_results
from etude.results.results import Results


def run(options: argparse.Namespace) -> int:
    """Measure both, then show."""
    if options.check is not None:
        check_alone(options, "check", ())
        return _check(options.check)
    if options.resume is not None:
        check_alone(options, "resume", ("format", "exercise"))
        directory = Path(options.resume)
        lab = read_lab(directory)
    else:
        lab = Lab(os.path.abspath(options.where), options.trials, options.cpu, options.seed)
        # What the second sweep lacks is said before the first.
        make_plan(make_sweep(lab.where, totals=TOTALS, trials=lab.trials, cpu=lab.cpu))
        directory = new_directory(options.output, "io-lab")
        begin(directory, lab)
    display = SweepDisplay(sys.stderr)

    def shown(measure: Callable[..., Results], *arguments: Any, **named: Any) -> Results:
        results = measure(*arguments, observe=display.observe, **named)
        display.figures()
        return results

    observed = partial(shown, sweep, command_line=options.command_line)
    try:
        studied = run_lab(lab, directory, observed, partial(shown, resume_sweep), options.format)
    finally:
        display.close()
    if options.exercise:
        _ask(studied, directory)
    else:
        show_sweeps(studied)
    return 0


def _ask(studied: Sequence[Studied], directory: Path) -> None:
    """Figures and questions, and no explanation."""
    asked, path = questions(studied), directory / NAME
    show(block for each in studied for block in figure_places(each))
    show(Sentence(f"{question.key}: {question.text}") for question in asked)
    if not path.exists():
        write_text(path, template(asked))
    command = f"etude io lab --check {shlex.quote(str(path))}"
    show([FilePath("Answers", str(path)), FilePath("Then", command)])


def _check(path: str) -> int:
    """Print how each answer was, and the interval of those that are wrong; 1 unless all are right."""
    answers, directory = lab_of(path)
    grades = graded(answers, questions([read_only(load_results(directory / name)) for name in SWEEPS]))
    right = sum(grade.right is True for grade in grades)
    show([*map(_graded, grades), Sentence(f"{right} of {len(grades)} are right.")])
    return int(right < len(grades))


def _graded(grade: Grade) -> Block:
    if grade.right is None:
        return Sentence(f"{grade.question.key}: no answer")
    if grade.right:
        return Sentence(f"{grade.question.key}: right ({grade.answer})")
    return Sentence(f"{grade.question.key}: wrong ({grade.answer}); expected {grade.question.expected}")
