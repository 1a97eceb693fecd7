"""`etude io sweep`, `etude io lab` and `etude io explain`: the I/O benchmark over sizes, and what it shows."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from etude.cli.shared_options import check_alone
from etude.errors import UsageError
from etude.experiment.session import new_directory
from etude.iolab.exercise import NAME, Grade, graded, lab_of, questions, template
from etude.iolab.lab import SWEEPS, Lab, Studied, begin, csv_text, read_lab, read_only, study, write_text
from etude.iolab.lab import run_lab as measure_lab
from etude.iolab.run_sweep import resume_sweep, sweep
from etude.iolab.sweeps import TOTALS, make_plan, make_sweep
from etude.present.progress.bench import SweepDisplay
from etude.present.section import Block, FilePath, Sentence
from etude.present.sections.io_sweep import figure_places, sweep_blocks, sweeps_document
from etude.present.terminal import show
from etude.present.to_json import print_json
from etude.results.reader import load_results
from etude.results.results import Results


def run_lab(options: argparse.Namespace) -> int:
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
    with closing(SweepDisplay(sys.stderr)) as display:

        def shown(measure: Callable[..., Results], *arguments: Any, **named: Any) -> Results:
            results = measure(*arguments, observe=display.observe, **named)
            display.figures()
            return results

        observed = partial(shown, sweep, command_line=options.command_line)
        studied = measure_lab(lab, directory, observed, partial(shown, resume_sweep), options.format)
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


def run_sweep(options: argparse.Namespace) -> int:
    """Measure, then show what came out."""
    if options.resume is not None:
        check_alone(options, "resume", ("format", "json"))
    with closing(SweepDisplay(sys.stderr)) as display:
        if options.resume is not None:
            results = resume_sweep(options.resume, observe=display.observe)
        else:
            results = sweep(
                options.where,
                buffers=options.buffers,
                totals=options.totals,
                curves=options.curve or None,
                trials=options.trials,
                refine=options.refine,
                seed=options.seed,
                directory=options.output,
                observe=display.observe,
                command_line=options.command_line,
                operation="write" if options.write else "read",
                cpu=options.cpu,
                program=options.program,
                storage=not options.no_storage,
            )
        display.figures()
        studied = study(results, suffix=options.format)
    show_sweeps([studied], as_json=options.json)
    return 0


def show_sweeps(studied: Sequence[Studied], *, as_json: bool = False) -> None:
    """Print each sweep, as tables and sentences or as one JSON document.

    Raises:
        MachineRefuses: figures could not be drawn; all that is known has been printed.
    """
    if as_json:
        print_json(sweeps_document(studied))
    else:
        show(block for each in studied for block in sweep_blocks(each))
    for each in studied:
        if each.undrawn is not None:
            raise each.undrawn


def run_explain(options: argparse.Namespace) -> int:
    """Read, draw, show."""
    if options.figures and len(options.results) > 1:
        raise UsageError("--figures takes one sweep: those of several would have the same names")
    found = [study(load_results(path), options.figures, options.format) for path in options.results]
    if options.csv:
        write_text(Path(options.csv), csv_text([each.swept for each in found]))
    show_sweeps(found, as_json=options.json)
    return 0
