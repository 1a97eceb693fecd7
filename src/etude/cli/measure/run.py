"""`etude run`: run a benchmark script in the Auto-pilot language."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from etude.cli import parser as kinds
from etude.cli import verb_parsers
from etude.cli.shared_options import pool_of
from etude.errors import CommandFailed, UsageError
from etude.escaping import escaped
from etude.present.progress.bench import ScriptDisplay
from etude.results.reader import load_results
from etude.script.check import Outline, PlannedTest
from etude.script.checkpoint import is_state
from etude.script.run import read_script, resume_script, run_script
from etude.units.formatting import counted

RESUMED = ("resume", "include", "json", "why")
"""Options that a script may be resumed with; all others are in its results directory."""


def run(options: argparse.Namespace) -> int:
    """Run, go on, or only say what would run."""
    if options.why and (options.again is not None or options.check or options.list or options.pool):
        raise UsageError(
            "--why: explains tests that are run here and now: leave out --again, --check, --list, --pool"
        )
    if options.again is not None:
        from etude.cli.measure.again import repeat_experiment

        return repeat_experiment(options)
    if options.between_sessions is not None:
        raise UsageError("--between-sessions is for --again")
    if options.resume is not None:
        if others := verb_parsers.others_given(options, RESUMED):
            raise UsageError(
                f"--resume takes its settings from the results directory: leave out {', '.join(others)}"
            )
        return _go_on(Path(options.resume), options)
    if options.script is None:
        raise UsageError("nothing to run: give a script")

    if is_state(Path(options.script)):
        if others := verb_parsers.others_given(options, (*RESUMED, "script")):
            raise UsageError(
                f"{options.script}: a state file has its own settings: leave out {', '.join(others)}"
            )
        return _go_on(Path(options.script), options)
    return _begin(options)


def _begin(options: argparse.Namespace) -> int:
    asked = read_script(
        options.script,
        _assignments(options),
        seed=options.seed,
        directories=options.include,
        res=not options.no_res,
        counters=options.counters,
        masks=tuple(options.mask),
    )
    if options.list or options.check:
        found = asked.dry_run()
        lines = [test.name for test in found.tests] if options.list else _told(found, options.script)
        print("\n".join(escaped(line, lines=False) for line in lines))
        return 0
    if options.why:
        from etude.why.explainable import explainable
        from etude.why.stored_plan import script_plan

        explainable(script_plan(asked, Path(options.output or ".")), (), "--why")
    if (spec := pool_of(options)) is not None:
        from etude.cli.measure import pool_run

        with _table_before_error(options):
            path = pool_run.script(asked, spec, options, kinds.monitor(options))
        return _show(path, options)
    with _display(options) as observe:
        path = run_script(
            asked,
            options.output,
            observe=observe,
            command_line=options.command_line,
            monitor=kinds.monitor(options),
        )
    return _show(path, options, explains=options.why)


def _assignments(options: argparse.Namespace) -> list[str]:
    given: list[str] = list(options.assignments)
    named = {"PROBES": options.probe, "WATCH": options.watch}
    return [*given, *(f"{name}={' '.join(values)}" for name, values in named.items() if values)]


def _go_on(file: Path, options: argparse.Namespace) -> int:
    from etude.cli.measure import pool_run

    with _table_before_error(options):
        over_a_pool = file.is_dir() and pool_run.go_on(file, "script", options.include)
    if over_a_pool:
        return _show(file, options)
    with _display(options) as observe:
        path = resume_script(file, observe=observe, directories=options.include)
    return _show(path, options, explains=options.why)


@contextmanager
def _display(options: argparse.Namespace) -> Iterator[Any]:
    with _table_before_error(options), closing(ScriptDisplay(sys.stderr)) as display:
        yield display.observe


@contextmanager
def _table_before_error(options: argparse.Namespace) -> Iterator[None]:
    """A script that fails shows what was measured before its error."""
    try:
        yield
    except CommandFailed as error:
        if error.results is not None:
            _show(error.results, options)
            sys.stdout.flush()
        raise


def _show(path: Path, options: argparse.Namespace, *, explains: bool = False) -> int:
    from etude.analysis.subject import asked_of
    from etude.analysis.verdict import judged_metrics, verdict
    from etude.present.sections.bench import BESIDE, verdict_blocks
    from etude.present.terminal import show
    from etude.present.to_json import print_json, verdict_document

    results = load_results(path)
    if not results.names():
        print(f"No tests were run. Results: {path}")
        return 0
    asked = asked_of(results.experiment, results.directory)
    metrics = None if options.json else (*judged_metrics(asked, asked.primary), *BESIDE)
    found = verdict(results, metrics)
    if explains:
        from etude.cli.measure.bench_verdict import causes
    if options.json:
        print_json(verdict_document(found) | ({"why": causes(path).document()} if explains else {}))
        return 0
    show(verdict_blocks(found))
    if explains:
        show(causes(path).section().blocks)
    return 0


def _told(found: Outline, script: str) -> list[str]:
    more = "" if found.whole else ", and more: it does not seem to end"
    lines = [f"{script}: {counted(len(found.tests), 'test')}{more}"]
    for test in found.tests:
        lines += ["", *_test_lines(test)]
    outside = [f"  {directive} {line}" for directive, line in found.lines]
    return [*lines, *(["", "outside of tests:", *outside] if outside else [])]


def _test_lines(test: PlannedTest) -> list[str]:
    workers = f", {test.threads} threads" if test.threads > 1 else ""
    until = f"{'at least ' if test.program else ''}{counted(test.minimum, 'trial')}"
    if test.maximum is not None:
        until += f", at most {test.maximum}"
    if test.budget_s is not None:
        until += f", at most {test.budget_s:g} s by the clock"
    ways = f", cache {test.cache}" if test.cache != "none" else ""
    ways += f", boot {test.boot}" if test.boot else ""
    together = f", interleaved (group {test.group})" if test.group is not None else ""
    head = f"{test.name}: {until}{workers}{ways}{together}"
    rule = [f"  until {' '.join(test.program)}"] if test.program else []
    limits = [("TIMEOUT", f"{test.timeout_s:g} s")] if test.timeout_s is not None else []
    lines = (*limits, *(("METRIC", metric) for metric in test.metrics), *test.lines)
    return [head, *rule, *(f"  {directive} {line}" for directive, line in lines)]
