"""`etude bench`: compare commands: interleaved until the ratio is known."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from etude.cli import parser as kinds
from etude.cli import verb_parsers
from etude.cli.analyse.bounds import check_bounds, read_bounds
from etude.cli.measure import hyperfine
from etude.cli.measure.bench_tests import shell_of, tests_of
from etude.cli.shared_options import pool_of
from etude.errors import MachineRefuses, UsageError
from etude.escaping import unescaped
from etude.experiment.bench import Event
from etude.experiment.plan import BUDGET_S, NewLimits, check_resumes, make_plan, plan_to_resume
from etude.experiment.progress import Progress
from etude.experiment.run import resume
from etude.experiment.run import run as run_plan
from etude.present.progress.bench import Display
from etude.results.reader import load_results, read_experiment
from etude.results.results import Results
from etude.why.explainable import explainable

if TYPE_CHECKING:
    from etude.analysis.gate import Bound
    from etude.analysis.subject import Subject


RESUMED = (
    *("resume", "trials", "max_trials", "time", "precision", "baseline", "between_sessions", "fail_if"),
    *("undecided", "export", "json", "why"),
)
"""Options that an experiment may be resumed or extended with; all others are in its results directory."""


class ShownOutput:
    """An observer that prints the captured output of each trial, as the program wrote it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = unescaped(stream)

    def observe(self, event: Event, ledger: Progress) -> None:
        """Print what came of a trial."""
        if event.what != "trial":
            return
        for test in event.tests:
            for m in ledger.trials(test.name)[-1].measurements:
                for captured in (m.stdout, m.stderr):
                    self._stream.write((captured or {}).get("tail", ""))
        self._stream.flush()

    def close(self) -> None:
        """Nothing is left to take away."""


def run(options: argparse.Namespace) -> int:
    """Measure, show the verdict, say where the results are."""
    hyperfine.check_output_option(options.output)
    exports = [_export_of(text) for text in options.export]
    _check_places(exports, options.output)
    bounds = read_bounds(options.fail_if)
    baseline = None
    if options.baseline is not None:
        from etude.cli.measure.bench_verdict import read_baseline

        baseline = read_baseline(options.baseline)
    if options.resume is not None:
        results = _resumed(options, bounds, baseline)
    else:
        results = _measured(options, bounds, baseline)
    from etude.cli.measure.bench_verdict import show_verdict  # loaded while nothing is measured

    return show_verdict(options, results, bounds, exports, baseline)


def _export_of(text: str) -> tuple[str, Path | None]:
    """Format and file of one `--export`. Raises UsageError for a format that there is not."""
    from etude.export import FORMATS, SUMMARIES

    form, _, file = text.partition("=")
    if form not in SUMMARIES and form not in FORMATS:
        known = ", ".join((*SUMMARIES, *(name for name in FORMATS if name not in SUMMARIES)))
        raise UsageError(f"--export {text}: expected {known}, with =FILE if need be")
    return form, Path(file) if file else None


def _check_places(exports: Sequence[tuple[str, Path | None]], results: str | None) -> None:
    """Raise MachineRefuses for a file that could not be written, before anything is measured for it.

    results: the directory of the results, which is yet to be made.
    """
    for path in (path for _, path in exports if path is not None):
        if results is not None and path.parent == Path(results):
            continue
        why = None
        if path.is_dir():
            why = "is a directory"
        elif not path.parent.is_dir():
            why = f"there is no directory {path.parent}"
        elif not os.access(path if path.exists() else path.parent, os.W_OK):
            why = "permission denied"
        if why is not None:
            raise MachineRefuses(f"{path}: cannot be written: {why}; name another file")


def _resumed(options: argparse.Namespace, bounds: Sequence[Bound], baseline: Subject | None) -> Results:
    """An experiment that is resumed or extended, over its pool where it was begun over one."""
    from etude.cli.measure import pool_run

    _check_resume(options)
    document = read_experiment(Path(options.resume))
    check_resumes(document, options.resume, None)
    if options.why:
        explainable(plan_to_resume(document, str(Path(options.resume, "experiment.json"))), (), "--why")
    if bounds:
        plan = document["plan"]
        own, stored = {m["name"] for t in plan["tests"] for m in t["metrics"]}, baseline is not None
        check_bounds(bounds, plan["primary"], len(plan["tests"]), plan["schedule"], own, stored=stored)
    limits = NewLimits(options.trials, options.max_trials, options.time, options.precision)
    if pool_run.is_over_pool(Path(options.resume)):
        if limits:
            raise UsageError(
                f"{options.resume}: an experiment over a pool cannot be extended; begin a new one"
            )
        pool_run.go_on(Path(options.resume), None)
        return load_results(options.resume)
    with closing(Display(sys.stderr)) as display:
        return resume(options.resume, limits, observe=display.observe).results


def _measured(options: argparse.Namespace, bounds: Sequence[Bound], baseline: Subject | None) -> Results:
    plan, spec = _plan(options), pool_of(options)
    own, stored = [metric.name for metric in options.metric], baseline is not None
    check_bounds(bounds, plan.primary, len(plan.tests), plan.schedule, own, stored=stored)
    if baseline is not None:
        from etude.cli.measure.bench_verdict import check_baseline

        check_baseline(baseline, plan, options, over_pool=spec is not None)
    if options.why:
        explainable(plan, (), "--why")
    if spec is not None:
        from etude.cli.measure import pool_run

        if options.why:
            raise UsageError("--why: instruments run on this machine only; leave out --pool")
        if options.show_output:
            raise UsageError("--show-output: jobs of a pool print elsewhere; leave out one of them")
        return pool_run.bench(plan, spec, options, kinds.monitor(options))
    with closing(ShownOutput(sys.stderr) if options.show_output else Display(sys.stderr)) as display:
        return run_plan(
            plan,
            options.output,
            observe=display.observe,
            command_line=options.command_line,
            verb="bench",
            monitor=kinds.monitor(options),
        ).results


def _plan(options: argparse.Namespace):  # type: ignore[no-untyped-def]  # a Plan; imported late
    tests = tests_of(options)
    return make_plan(
        tests,
        name=tests[0].name if len(options.name) == 1 and len(options.commands) == 1 else None,
        trials=options.trials,
        min_trials=options.min_trials,
        max_trials=options.max_trials,
        precision=options.precision,
        budget_s=BUDGET_S if options.time is None else options.time,
        least_s=_least_s(options),
        schedule=options.schedule,
        seed=options.seed,
        shell=shell_of(options),
        ignore_failure=options.ignore_failure,
        check_output="each" if options.show_output else options.check_output,
        warmup=options.warmup,
        cgroup=not options.no_cgroup,
        counters=options.counters,
        primary=options.primary,
        masks=tuple(options.mask),
    )


def _least_s(options: argparse.Namespace) -> float | None:
    """The shortest time by the clock; 0 over a pool, whose jobs take longer than that to begin."""
    if options.pool and options.min_time:
        raise UsageError("--min-time: jobs of a pool are spread over more time anyway; leave out one of them")
    return 0.0 if options.pool else options.min_time


def _check_resume(options: argparse.Namespace) -> None:
    if others := verb_parsers.others_given(options, RESUMED):
        raise UsageError(
            f"--resume takes its settings from the results directory: leave out {', '.join(others)}"
        )
