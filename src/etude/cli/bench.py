"""`etude bench`: compare commands: interleaved until the ratio is known."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from etude.cli import hyperfine, verb_parsers
from etude.cli import parser as kinds
from etude.cli.bench_tests import shell_of, tests_of
from etude.cli.bounds import answer, check_bounds, read_bounds
from etude.cli.exports import check_places, export_of, write_exports
from etude.cli.pool_options import pool_of

if TYPE_CHECKING:
    from etude.report.across import Across
    from etude.report.failing import Bound
    from etude.report.subject import Subject
    from etude.report.verdict import Verdict
    from etude.results.results import Results

RESUMED = (
    *("resume", "trials", "max_trials", "time", "precision", "baseline", "between_sittings", "fail_if"),
    *("undecided", "export", "json"),
)
"""Options that an experiment may be resumed or extended with; all others are in its results directory."""


def run(options: argparse.Namespace) -> int:
    """Measure, show the verdict, say where the results are."""
    hyperfine.check_output_option(options.output)
    exports = [export_of(text) for text in options.export]
    check_places(exports, options.output)
    bounds = read_bounds(options.fail_if)
    baseline = _baseline(options.baseline)
    if options.resume is not None:
        results = _resumed(options, bounds, baseline)
    else:
        results = _measured(options, bounds, baseline)

    from etude.cli.show import BESIDE, show
    from etude.cli.terminal import Terminal
    from etude.report.judging import Judging
    from etude.report.verdict import verdict

    primary = results.experiment["plan"]["primary"]
    bounded = (bound.metric for bound in bounds)
    metrics = None if options.json or exports else tuple(dict.fromkeys((primary, *BESIDE, *bounded)))
    found = verdict(results, metrics, Judging(every_outlier=options.json))
    across, without = _across(baseline, found, options.between_sittings)
    left_out = write_exports(found, exports)
    show(
        found,
        json=options.json,
        across=across,
        without=without,
        machines=_machines(baseline, found),
    )
    for line in left_out:
        Terminal(sys.stderr).say(f"Left out: {line}")
    code = answer(
        bounds,
        [found],
        across,
        undecided=options.undecided,
        beside=_beside_bounds(options),
        aside=options.json,
    )
    return code or _refusal(across, without)


def _beside_bounds(options: argparse.Namespace) -> list[tuple[str, str]]:
    """The options that say what the bounds compare with."""
    pairs = [] if options.baseline is None else [("--baseline", str(options.baseline))]
    if options.between_sittings is not None:
        pairs.append(("--between-sittings", f"{100 * options.between_sittings:.12g}%"))
    return pairs


def _resumed(options: argparse.Namespace, bounds: Sequence[Bound], baseline: Subject | None) -> Results:
    """An experiment that is resumed or extended, over its pool where it was begun over one."""
    from etude.cli import pooled
    from etude.cli.display import Display
    from etude.errors import UsageError
    from etude.experiment.new_limits import NewLimits
    from etude.experiment.run import resume
    from etude.results.reader import load_results, read_experiment

    _check_resume(options)
    if bounds:
        plan = read_experiment(Path(options.resume))["plan"]
        own, stored = {m["name"] for t in plan["tests"] for m in t["metrics"]}, baseline is not None
        check_bounds(bounds, plan["primary"], len(plan["tests"]), plan["schedule"], own, stored=stored)
    limits = NewLimits(options.trials, options.max_trials, options.time, options.precision)
    if pooled.is_over_pool(Path(options.resume)):
        if limits:
            raise UsageError(
                f"{options.resume}: an experiment over a pool cannot be extended; begin a new one"
            )
        pooled.go_on(Path(options.resume))
        return load_results(options.resume)
    display = Display(sys.stderr)
    try:
        return resume(options.resume, limits, observe=display.observe).results
    finally:
        display.close()


def _measured(options: argparse.Namespace, bounds: Sequence[Bound], baseline: Subject | None) -> Results:
    """A new experiment."""
    from etude.cli.display import Display
    from etude.cli.shown_output import ShownOutput
    from etude.experiment.run import run as run_plan

    plan, spec = _plan(options), pool_of(options)
    own, stored = [metric.name for metric in options.metric], baseline is not None
    check_bounds(bounds, plan.primary, len(plan.tests), plan.schedule, own, stored=stored)
    if baseline is not None:
        from etude.report.across import check_comparable
        from etude.results.units import unit_kept

        check_comparable(
            baseline,
            {test.name: test.command for test in plan.tests},
            plan.primary,
            next((unit_kept(m.unit).base for m in options.metric if m.name == plan.primary), None),
            between=options.between_sittings,
            several=spec is not None,
        )
        if spec is None:
            _note_other_machine(baseline)
    if spec is not None:
        from etude.cli import pooled
        from etude.errors import UsageError

        if options.show_output:
            raise UsageError("--show-output: what runs over a pool prints elsewhere; leave out one of them")
        return pooled.bench(plan, spec, options, kinds.monitor(options))
    display = ShownOutput(sys.stderr) if options.show_output else Display(sys.stderr)
    try:
        return run_plan(
            plan,
            options.output,
            observe=display.observe,
            command_line=options.command_line,
            verb="bench",
            monitor=kinds.monitor(options),
        ).results
    finally:
        display.close()


def _note_other_machine(baseline: Subject) -> None:
    """Print, before anything is measured, how this machine differs from the baseline's."""
    from etude.cli.diff import NOW, state_now
    from etude.cli.show import say_note
    from etude.cli.terminal import Terminal
    from etude.report.differences import compare_states, first_line, state_of

    known = state_of(baseline.experiment or {})
    line = first_line(baseline.label, NOW, compare_states(known, state_now(known)))
    if line is not None:
        say_note(Terminal(sys.stderr), line)


def _refusal(across: list[Across], without: list[str]) -> int:
    """The exit code where a test was not compared with the baseline; 0 where there is none, or all were."""
    if not (across or without):
        return 0
    from etude.errors import NotComparable
    from etude.stats.sittings import Refused

    refused = without or any(isinstance(each.found, Refused) for each in across)
    return NotComparable.exit_code if refused else 0


def _machines(baseline: Subject | None, found: Verdict) -> list[str]:
    """What the comparison with the baseline begins with, where its machine was another."""
    if baseline is None:
        return []
    from etude.report.across import machines_lines

    return machines_lines([baseline, found.subject])


def _across(
    baseline: Subject | None, found: Verdict, between: float | None
) -> tuple[list[Across], list[str]]:
    """The tests against those of the baseline, and why they are not compared."""
    if baseline is None:
        return [], []
    from etude.report.across import compare_with_first

    across, without = compare_with_first([baseline, found.subject], found.primary, between=between)
    return across, [f"Not compared: {reason}" for _, reason in without]


def _plan(options: argparse.Namespace):  # type: ignore[no-untyped-def]  # a Plan; imported late
    from etude.experiment.ask import BUDGET_S, make_plan

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
    from etude.errors import UsageError

    if options.pool and options.min_time:
        raise UsageError("--min-time: jobs of a pool are spread over more time anyway; leave out one of them")
    return 0.0 if options.pool else options.min_time


def _check_resume(options: argparse.Namespace) -> None:
    from etude.errors import UsageError

    if others := verb_parsers.others_given(options, "bench", RESUMED):
        raise UsageError(
            f"--resume takes what to do from the results directory: leave out {', '.join(others)}"
        )


def _baseline(directory: str | None) -> Subject | None:
    if directory is None:
        return None
    from etude.report.subject import subject_of
    from etude.results.reader import load_results

    return subject_of(load_results(directory))
