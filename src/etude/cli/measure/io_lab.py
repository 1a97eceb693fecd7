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

from etude.cli.shared_options import check_alone
from etude.experiment.session import new_directory
from etude.iolab.exercise import NAME, graded, lab_of, questions, template
from etude.iolab.lab import SWEEPS, Lab, Studied, begin, read_lab, read_only, run_lab, write_text
from etude.iolab.run_sweep import resume_sweep, sweep
from etude.iolab.sweeps import TOTALS, make_plan, make_sweep
from etude.present.io_display import show
from etude.present.sweep_display import SweepDisplay
from etude.present.terminal import Terminal
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
        show(studied)
    return 0


def _ask(studied: Sequence[Studied], directory: Path) -> None:
    """Figures and questions, and no explanation."""
    screen, path = Terminal(), directory / NAME
    for each in studied:
        for name, figure in each.figures.items():
            screen.say_path(f"Figure {name}", str(figure), "dim")
    asked = questions(studied)
    for question in asked:
        screen.say(f"{question.key}: {question.text}")
    if not path.exists():
        write_text(path, template(asked))
    screen.say_path("Answers", str(path))
    screen.say_path("Then", f"etude io lab --check {shlex.quote(str(path))}")


def _check(path: str) -> int:
    """Print how each answer was, and the interval of those that are wrong; 1 unless all are right."""
    answers, directory = lab_of(path)
    grades = graded(answers, questions([read_only(load_results(directory / name)) for name in SWEEPS]))
    screen = Terminal()
    for grade in grades:
        if grade.right is None:
            screen.say(f"{grade.question.key}: no answer")
        elif grade.right:
            screen.say(f"{grade.question.key}: right ({grade.answer})")
        else:
            screen.say(f"{grade.question.key}: wrong ({grade.answer}); expected {grade.question.expected}")
    right = sum(grade.right is True for grade in grades)
    screen.say(f"{right} of {len(grades)} are right.")
    return int(right < len(grades))
