"""Runs a script into a results directory, resumes one that was interrupted, and reads a stored one to run it again."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from etude.codec import decoded
from etude.engine import Engine
from etude.errors import InputError, Interrupted, UsageError
from etude.experiment.bench import Event
from etude.experiment.monitoring import DEFAULT_MONITORING, Monitoring
from etude.experiment.origin import original_directory
from etude.experiment.plan import check_resumes, refuse_masked
from etude.experiment.progress import Progress, trials_of
from etude.experiment.remote_engine import require_local_engine
from etude.experiment.session import (
    EngineMaker,
    SessionContext,
    existing_results,
    holds_results,
    is_complete,
    new_directory,
    new_document,
    run_session,
)
from etude.machine.boot import record, restart
from etude.machine.boot.record import boot_id
from etude.masking import mask_of
from etude.results.model import signal_name
from etude.results.reader import load_results, read_experiment, read_trusted_experiment
from etude.results.results import Results, machine_member
from etude.results.writer import sole_writer
from etude.script import checkpoint
from etude.script.arguments import parse_assignment
from etude.script.bench import ScriptBench
from etude.script.check import Outline, dry_run
from etude.script.checkpoint import STATE_FILE, Checkpoint
from etude.script.directive_words import ArgumentError
from etude.script.environment import search_path
from etude.script.machine import GivenUp, Machine
from etude.script.parse import parse_script, parse_stored
from etude.script.program import Program
from etude.script.source import same_text
from etude.script.state import Scope, State, mark_cold
from etude.script.stop import own_predicate, raise_failures
from etude.script.world import SelectedTests
from etude.units.formatting import counted

Observer = Callable[[Event, Progress], None]


@dataclass(frozen=True)
class ScriptOptions:
    """A script with its options: NAME=VALUE of the command line, the seed of random orders, and output formats."""

    program: Program
    assignments: Mapping[str, str]
    seed: int
    res: bool = True
    counters: str = "auto"
    masks: tuple[str, ...] = ()
    """Patterns of secrets in commands, in addition to the default ones."""
    only: frozenset[str] | None = None
    """Tests to run; None: all."""

    def state(self) -> State:
        """Its initial state. Assignments of the command line are also in the environment, as by ENV."""
        scope = Scope(environment=dict(self.assignments))
        directory = os.path.dirname(os.path.abspath(self.program.path))
        scope.variables |= {"SCRIPTDIR": directory, **self.assignments}
        return State(scope=scope, fixed=list(self.assignments), seed=self.seed)

    def dry_run(self) -> Outline:
        """Dry run of the script.

        Raises:
            ScriptError, InputError: it is invalid.
        """
        return dry_run(self.program, self.state())


def read_script(
    path: str,
    assignments: Sequence[str] = (),
    *,
    seed: int | None = None,
    directories: Sequence[str] = (),
    **options: Any,
) -> ScriptOptions:
    """A script with the options of the command line; `directories` are searched for includes.

    Raises:
        ScriptError, InputError: it cannot be read; UsageError: an invalid assignment.
    """
    search = [Path(directory) for directory in (*directories, *search_path(os.environ))]
    values = dict(map(_assignment, assignments))
    chosen = random.SystemRandom().randrange(2**32) if seed is None else seed
    return ScriptOptions(parse_script(path, search), values, chosen, **options)


def _assignment(text: str) -> tuple[str, str]:
    try:
        return parse_assignment(text)
    except ArgumentError as error:
        raise UsageError(f"{text!r}: {error}; expected NAME=VALUE behind the script") from None


def run_script(
    asked: ScriptOptions,
    directory: str | os.PathLike[str] | None = None,
    *,
    observe: Observer,
    make_engine: EngineMaker = Engine,
    command_line: Sequence[str] = (),
    monitor: Monitoring | None = DEFAULT_MONITORING,
) -> Path:
    """Run a script into a new results directory (default `etude-results/NAME-UTCTIME`), with the monitor.

    Returns:
        That directory.

    Raises:
        EtudeError: see the classes of etude.errors; what was measured is on disk.
    """
    planned = asked.dry_run()  # errors are found before anything runs
    for test in planned.tests if not asked.res else ():
        if test.program and own_predicate(tuple(test.program)) is None:
            raise UsageError(f"test {test.name!r}: {test.program[0]} needs the .res file; leave out --no-res")
    for entry in planned.entries:
        restart.check(entry or None)
    path = new_directory(directory, Path(asked.program.path).stem)
    with sole_writer(path):
        if holds_results(path):
            raise existing_results(path)
        document = _new_document(asked, command_line, monitor)
        _run_session(
            asked, path, document, asked.state(), observe, make_engine, len(planned.tests) * planned.whole
        )
    return path


def resume_script(
    file: Path,
    *,
    observe: Observer,
    make_engine: EngineMaker = Engine,
    directories: Sequence[str] = (),
) -> Path:
    """Resume from a state file, or from that of a results directory, in the directory in which the script was started;
    returns the results directory.

    Raises:
        EtudeError: same as `run_script`; InputError: the state cannot be trusted, or the script or a program has
            changed.
    """
    named = file if file.is_dir() else None
    if named is not None:
        check_resumes(read_experiment(named), named, "script")
        with sole_writer(named):
            if _is_complete(named, read_experiment(named)):
                return named
        file = named / STATE_FILE
    saved = checkpoint.load(file)
    path = named or saved.results_directory(file)
    directories = [os.path.abspath(directory) for directory in directories]
    search = [Path(directory) for directory in directories]
    read_experiment(path)
    with sole_writer(path):
        document = read_trusted_experiment(path)
        plan = document["plan"]
        check_resumes(document, path, "script")
        # A script resumes from a CHECKPOINT of its own even after its end.
        if file.resolve() == (path / STATE_FILE).resolve() and _is_complete(path, document):
            return path
        with original_directory(path, document) as there:
            program = parse_script(saved.script, [*search, *map(Path, saved.library)])
            checkpoint.check_unchanged(file, saved, program)
            masks = mask_of(plan, str(path / "experiment.json")).patterns
            asked = ScriptOptions(
                program, plan["assignments"], plan["seed"], plan["res"], plan["counters"], masks
            )
            planned = asked.dry_run()
            if saved.boot_id != boot_id():
                mark_cold(saved.state)
            lost = forget_lost_trials(saved, load_results(there))
            expected = len(planned.tests) * planned.whole
            _run_session(asked, there, document, saved.state, observe, make_engine, expected, lost)
    return path


def plan_of(asked: ScriptOptions) -> dict[str, Any]:
    """The plan of a script, as in experiment.json."""
    program = asked.program
    return {
        "kind": "script",
        "script": os.path.abspath(program.path),
        "text": {file: list(lines) for file, lines in program.lines.items()},
        "assignments": dict(asked.assignments),
        "seed": asked.seed,
        "res": asked.res,
        "counters": asked.counters,
        "primary": "elapsed",
        "check_output": "first",
        **({"masks": list(asked.masks)} if asked.masks else {}),
    }


def _new_document(
    asked: ScriptOptions, command_line: Sequence[str], monitor: Monitoring | None
) -> dict[str, Any]:
    program, plan = asked.program, plan_of(asked)
    return new_document(Path(program.path).stem, "run", command_line, plan, program.digest, [], {}, monitor)


def _run_session(
    asked: ScriptOptions,
    path: Path,
    document: dict[str, Any],
    state: State,
    observe: Observer,
    make_engine: EngineMaker,
    expected: int,
    notes: Sequence[str] = (),
) -> None:
    require_local_engine("etude run")

    def work(context: SessionContext) -> list[str]:
        bench = ScriptBench(
            context,
            asked.program,
            observe,
            expected=expected,
            res=asked.res,
            counters=asked.counters,
            masks=asked.masks,
        )
        if context.resumed:
            observe(Event("resumed", (), context.resumed_with()), context.progress)
        for note in notes:
            bench.warn(note)
        bench.safe_point(state)
        try:
            if state.quiet and (why := bench.quiet(state.quiet)):  # same as when the state was stored
                bench.warn(why)
            world = bench if asked.only is None else SelectedTests(bench, asked.only, state)
            with suppress(GivenUp):  # the results on disk say more, below
                Machine(asked.program, state, world).run()
        finally:
            bench.close()
        signal = context.watch.signal
        if signal is not None:
            bench.stop_here(state)
            raise Interrupted(signal, f"ended by {signal_name(signal)}")
        raise_failures(path, context.document["tests"], context.progress.kept)
        return [f"{test['name']}: {test.get('ended', '')}" for test in context.document["tests"]]

    run_session(path, document, make_engine, work)
    _forget(path)


def _is_complete(path: Path, document: Mapping[str, Any]) -> bool:
    complete = is_complete(path, document)
    if complete:
        _forget(path)
    return complete


def _forget(path: Path) -> None:
    (path / STATE_FILE).unlink(missing_ok=True)
    record.forget(path)


__all__ = ["ScriptOptions", "load_results", "read_script", "resume_script", "run_script"]


def forget_lost_trials(saved: Checkpoint, results: Results) -> list[str]:
    """Remove trials that are no longer on disk from the state, so that the test under way makes them again.

    Returns:
        A sentence for each test that has lost some.

    Raises:
        InputError: a test that has ended has lost some; it makes none again.
    """
    under_way = {test.name: test for test in saved.state.tests}
    entries = {entry["name"]: entry for entry in results.experiment["tests"]}
    said = []
    for name, kept in saved.kept.items():
        test, entry = under_way.get(name), entries.get(name, {})
        found = [trial.first.trial for trial in trials_of(results.measurements.get(name, ())) if trial.kept]
        lost = kept - sum(test is None or trial < test.trial for trial in found)
        if lost <= 0:
            continue
        if test is None or entry.get("ended"):
            place = results.directory / entry.get("directory", name) / "results.jsonl"
            raise InputError(
                f"{place}: holds {kept - lost} of the {counted(kept, 'trial')} of test {name!r}, which has ended; "
                "restore it from a copy, or begin a new experiment"
            )
        test.kept, test.made = max(test.kept - lost, 0), max(test.made - lost, 0)
        said.append(f"test {name!r}: {counted(lost, 'trial')} of {kept} not on disk any more: made again")
    return said


def stored_script(document: Mapping[str, Any], seed: int, source: str) -> ScriptOptions:
    """The stored script of an experiment.json, with another seed. `source` is its path.

    Raises:
        InputError: it is not of a script, or its text cannot be run.
    """
    plan = document["plan"]
    if plan.get("kind") != "script":
        raise InputError(f"{source}: is not of a script")
    try:
        stored = decoded(_Script, plan, source, "plan")
    except InputError:
        stored = _Script({}, "", {})
    if not stored.text:
        raise InputError(f"{source}: the script's text is not in it; run the script itself")
    refuse_masked({"text": stored.text, "assignments": stored.assignments}, source)
    program = parse_stored(stored.text)
    digest = document.get("digest")
    program = replace(
        program, path=stored.script, digest=digest if isinstance(digest, str) else program.digest
    )
    return ScriptOptions(
        program,
        stored.assignments,
        seed,
        plan.get("res", True) is not False,
        str(plan.get("counters", "auto")),
        mask_of(plan, source).patterns,
    )


def changed_files(document: Mapping[str, Any]) -> list[str]:
    """Files of the script that have changed since they were read, one line each; the stored text is run."""
    plan = document["plan"]
    place = machine_member(document, "directory", "path") or ""
    found = []
    for number, (file, lines) in enumerate(plan["text"].items()):
        path = plan["script"] if number == 0 else os.path.join(place, file)
        same = same_text(path, lines)
        if same is not True:
            found.append(f"{path} {'is gone' if same is None else 'has changed'} since")
    return found


@dataclass(frozen=True)
class _Script:
    text: dict[str, list[str]]
    """Lines of each of its files."""
    script: str
    """Its path."""
    assignments: dict[str, str]
