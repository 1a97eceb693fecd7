"""Compare commands at once: interleaved in random order, until the ratio of their times is known.

One command is run until its mean is known. The first run of each command is recorded but set aside. Commands are
split into words as a shell would, and started without one; hooks (--setup and the like) are lines for /bin/sh.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from etude.cli import hyperfine, verb_parsers
from etude.cli import parser as kinds
from etude.cli.bench_tests import shell_of, tests_of
from etude.cli.bounds import add_undecided, answer, check_bounds, read_bounds
from etude.cli.exports import check_places, export_of, write_exports
from etude.cli.pool_options import add_pool, pool_of
from etude.results.model import CACHE_WAYS

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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude bench`."""
    add = parser.add_argument
    add(
        "commands",
        nargs="*",
        metavar="CMD",
        help="a command line, quoted as one argument; {NAME} is replaced by -P",
    )
    add(
        "-n",
        "--name",
        "--command-name",
        dest="name",
        action="append",
        default=[],
        metavar="NAME",
        help="name of the next command in order; repeat for each",
    )
    add(
        "-o",
        "--output",
        type=kinds.place,
        metavar="DIR",
        help="results directory (default etude-results/NAME-UTCTIME)",
    )
    add(
        "--reference",
        metavar="CMD",
        help="a command that stands before the others: the baseline of all ratios",
    )
    add("--reference-name", metavar="NAME", help="its name")
    add(
        "--resume",
        metavar="DIR",
        help="resume an interrupted experiment, or extend a complete one by --max-trials, --time, --precision or "
        "--trials; takes no commands",
    )
    add_pool(parser)
    _around(parser.add_argument_group("around the trials"))
    _enough(parser.add_argument_group("how many trials"))
    _how(parser.add_argument_group("how trials are run"))
    _after(parser.add_argument_group("what comes out"))


def _around(group: argparse._ArgumentGroup) -> None:
    """Hooks and sweeps."""
    each = "; given once for all tests, or once for each command"
    group.add_argument("-s", "--setup", metavar="LINE", help="once per test, before its first trial")
    group.add_argument(
        "-p", "--prepare", action="append", default=[], metavar="LINE", help=f"before each trial{each}"
    )
    group.add_argument(
        "-C", "--conclude", action="append", default=[], metavar="LINE", help=f"after each trial{each}"
    )
    group.add_argument(
        "--cool",
        choices=CACHE_WAYS,
        default="none",
        metavar="WAY",
        help="the state of the caches before each trial, brought about and looked at (docs/bench.md): "
        + ", ".join(CACHE_WAYS),
    )
    group.add_argument(
        "--data",
        action="append",
        default=[],
        metavar="PATH",
        help="a file or directory of the data set, of which --cool tells how much is in memory; repeat for more",
    )
    group.add_argument("-c", "--cleanup", metavar="LINE", help="once per test, after its last trial")
    group.add_argument(
        "-P",
        "--parameter",
        action="append",
        default=[],
        metavar="NAME=VALUES",
        help="sweep {NAME} over a,b,c or 1..10 or 1..32*2 or 0..1+0.25; repeat for all combinations",
    )
    hyperfine.add_sweeps(group)


def _enough(group: argparse._ArgumentGroup) -> None:
    """The stop rule."""
    group.add_argument(
        "-w",
        "--warmup",
        type=int,
        default=1,
        metavar="N",
        help="N warm-up runs of each before its first trial: recorded, and excluded (default 1)",
    )
    add_count = partial(group.add_argument, type=int, metavar="N")
    add_count("-r", "--trials", "--runs", help="exactly N trials of each")
    add_count("-m", "--min-trials", "--min-runs", help="at least N trials (default 10)")
    add_count(
        "-M", "--max-trials", "--max-runs", help="at most N trials (default 50, or as many as 3 s take)"
    )
    group.add_argument(
        "--min-time",
        type=kinds.seconds,
        metavar="SECONDS",
        help="measure for so long by the clock, however soon the precision is reached; --max-trials and --time end "
        "it sooner (default 3; not with --pool)",
    )
    group.add_argument(
        "--precision",
        type=kinds.share,
        metavar="SHARE",
        help="half width to reach: of the mean for one command (default 5%%), of the ratio for several (2%%)",
    )
    group.add_argument(
        "--time",
        type=kinds.seconds,
        metavar="SECONDS",
        help="stop after this time by the clock, all between the trials included, once the minimum of trials is "
        "done (default 30)",
    )


def _how(group: argparse._ArgumentGroup) -> None:
    """What a trial is."""
    group.add_argument(
        "--schedule",
        choices=("blocks", "in-turn", "duet"),
        default="blocks",
        help="blocks: one trial of each per block, in random order (default); in-turn: one test after the "
        "other, not compared; duet: all at once on CPUs of their own, a ratio under contention",
    )
    group.add_argument(
        "--workers", type=int, default=1, metavar="N", help="start N copies at once, released together"
    )
    group.add_argument(
        "--cpu",
        type=kinds.cpus,
        metavar="LIST",
        help="CPUs to run on, such as 0,2-3; one each with --workers",
    )
    group.add_argument(
        "--timeout",
        type=kinds.seconds,
        metavar="SECONDS",
        help="end a trial that takes longer (TERM, then KILL); it failed",
    )
    group.add_argument(
        "-i", "--ignore-failure", action="store_true", help="include trials whose exit status is not 0"
    )
    shells = group.add_mutually_exclusive_group()
    shells.add_argument(
        "--shell",
        action="store_true",
        help="run commands by /bin/sh; its start is measured and subtracted",
    )
    shells.add_argument(
        "-S", metavar="SHELL", help="the same by another shell, such as bash or 'bash --norc'"
    )
    shells.add_argument("-N", action="store_true", help="without a shell, which is the default")
    group.add_argument("--shell-program", metavar="PATH", help="the shell of --shell (default /bin/sh)")
    group.add_argument("--input", metavar="FILE", help="standard input of each run (default: empty)")
    group.add_argument(
        "--show-output",
        action="store_true",
        help="print what the programs print, to standard error after each run; it is captured, as by "
        "--check-output each",
    )
    group.add_argument(
        "--inner",
        type=kinds.inner,
        default=1,
        metavar="N|auto",
        help="launches within one trial; auto: enough for trials of 50 ms",
    )
    group.add_argument(
        "--check-output",
        choices=("first", "each"),
        default="first",
        help="capture and compare the output of the set-aside first run (default), or of each trial",
    )
    group.add_argument(
        "--metric",
        type=kinds.metric,
        action="append",
        default=[],
        metavar="NAME[:UNIT[:JOIN]]=REGEX",
        help="a number from the program's own output: the first group of REGEX; or $.NAME.NAME, a place in its JSON",
    )
    group.add_argument(
        "--primary",
        default="elapsed",
        metavar="METRIC",
        help="the metric that is judged and compared (default elapsed)",
    )
    group.add_argument("--no-cgroup", action="store_true", help="do not put tests into a cgroup of their own")
    group.add_argument(
        "--counters",
        choices=("auto", "on", "off"),
        default="auto",
        help="perf events: auto: where the machine has hardware ones (default); on: software ones alone, too",
    )
    group.add_argument(
        "--seed", type=int, metavar="N", help="of the random order (default: random, recorded)"
    )
    kinds.add_monitor(group.add_argument)
    kinds.add_mask(group.add_argument)


def _after(group: argparse._ArgumentGroup) -> None:
    """What is made of the results."""
    group.add_argument(
        "--baseline",
        metavar="DIR",
        help="compare with stored results, too, as far as what changes between sittings is known; "
        "better: run base and head at once, as two commands",
    )
    group.add_argument(
        "--between-sittings",
        type=kinds.share,
        metavar="PERCENT",
        help="how far sittings of one test lie apart on this machine (a standard deviation, such as 3%%)",
    )
    group.add_argument(
        "--fail-if",
        action="append",
        default=[],
        metavar="BOUND",
        help="end with 1 where BOUND holds by the interval, such as 'elapsed > baseline * 1.05'; the baseline "
        "is the first command, or that of --baseline",
    )
    add_undecided(group)
    group.add_argument(
        "--export",
        action="append",
        default=[],
        metavar="FORMAT[=FILE]",
        help="csv, json, markdown, hyperfine, or another format of etude export; FILE defaults to one in the "
        "results directory",
    )
    hyperfine.add_exports(group)
    group.add_argument(
        "--json", action="store_true", help="print the verdict as JSON on standard output (docs/formats.md)"
    )


translated = hyperfine.translated
INSTEAD = hyperfine.INSTEAD
OTHERWISE = "a command and its arguments are quoted as one word, such as 'ls -l'"


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
