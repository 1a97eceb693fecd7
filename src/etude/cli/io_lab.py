"""Do the whole I/O lab: throughput over buffer sizes, and static against dynamic linking over file sizes.

Three figures come out (PDF, unless --format says otherwise), as in the lab's notes: (1) throughput against buffer size
with this machine's caches, (2) whole-program time and its ratio, (3) means with deviations and p-values. What they show
is said in words. A few minutes; the results are kept, and etude io explain reads them again. Each trial stands in
buffers.csv and linking.csv, too.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from etude.cli import parser as kinds
from etude.cli.io_options import add_figures, add_place
from etude.iolab.sweeps import TOTALS

if TYPE_CHECKING:
    from etude.iolab.lab import Studied
    from etude.results.results import Results


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude io lab`."""
    add_place(parser)
    parser.add_argument(
        "-o",
        "--output",
        type=kinds.place,
        metavar="DIR",
        help="where it all goes (default etude-results/io-lab-UTCTIME)",
    )
    parser.add_argument(
        "--resume",
        metavar="DIR",
        help="resume an interrupted lab in this directory; takes only --format and --exercise",
    )
    parser.add_argument(
        "--exercise",
        action="store_true",
        help="ask, and do not explain: questions into answers.toml of the lab's directory, figures without a reading",
    )
    parser.add_argument(
        "--check",
        metavar="FILE",
        help="grade a file of answers against the intervals of its own lab; exit code 1 if one is wrong or missing",
    )
    add_figures(parser)


def run(options: argparse.Namespace) -> int:
    """Measure both, then show."""
    import os
    from functools import partial

    from etude.cli.io_options import check_alone
    from etude.cli.io_show import show
    from etude.cli.sweep_display import SweepDisplay
    from etude.experiment.sitting import new_directory
    from etude.iolab.lab import Lab, begin, begun, run_lab
    from etude.iolab.run_sweep import resume_sweep, sweep
    from etude.iolab.sweeps import make_plan, make_sweep

    if options.check is not None:
        check_alone(options, add_arguments, "check", ())
        return _check(options.check)
    if options.resume is not None:
        check_alone(options, add_arguments, "resume", ("format", "exercise"))
        directory = Path(options.resume)
        lab = begun(directory)
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
    from etude.cli.terminal import Terminal
    from etude.iolab.exercise import NAME, questions, template
    from etude.iolab.lab import write_text

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
    from etude.cli.terminal import Terminal
    from etude.iolab.exercise import graded, lab_of, questions
    from etude.iolab.lab import SWEEPS, read_only
    from etude.results.reader import load_results

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
