"""Verbs over a pool: the jobs of one experiment, told of as they end, and the one directory that they make."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from etude.cluster.distributed.blocks import Blocks
from etude.cluster.distributed.jobs import Jobs, document_of, is_complete, stored_request
from etude.cluster.pool.job import PoolSpec
from etude.cluster.pool.journal import FILE, timeline
from etude.cluster.pool.spec import open_pool
from etude.errors import EtudeError, InputError, MachineRefuses, UsageError
from etude.experiment import monitoring
from etude.experiment.plan import Plan, check_resumes, digest, from_document, to_document
from etude.experiment.session import existing_results, holds_results, new_directory
from etude.machine.cool.methods import REBOOTS
from etude.masking import mask_of
from etude.osutil.processes import ending_by_signals, naming_results
from etude.peak import record
from etude.peak.distributed import search_on_pool
from etude.peak.search_store import SearchSpec, SearchStore
from etude.peak.sources import Source
from etude.present.terminal import Terminal
from etude.results.reader import load_results
from etude.results.results import Results
from etude.results.writer import sole_writer, write_error
from etude.script.distributed import Tests, groups_of
from etude.script.run import ScriptOptions, plan_of, read_script

Say = Callable[[str], None]


def bench(plan: Plan, spec: PoolSpec, options: argparse.Namespace, monitor: Any) -> Results:
    """`etude bench --pool`."""
    if any(test.cool in REBOOTS for test in plan.tests):
        raise UsageError("--cool reboot: a job of --pool cannot restart its node; leave out one of them")
    document = document_of(
        "bench", plan.name, to_document(plan), digest(plan), spec, options.command_line, monitor
    )
    return _blocks(new_directory(options.output, plan.name), document, spec)


def script(asked: ScriptOptions, spec: PoolSpec, options: argparse.Namespace, monitor: Any) -> Path:
    """`etude run --pool`."""
    groups_of(asked.dry_run(), asked.program.path)  # what cannot be is found before anything is made
    name = Path(asked.program.path).stem
    document = document_of(
        "run", name, plan_of(asked), asked.program.digest, spec, options.command_line, monitor
    )
    path = new_directory(options.output, name)
    _tests(path, document, spec, asked, options.include)
    return path


def is_over_pool(directory: Path) -> bool:
    """True if an experiment was begun over a pool."""
    return stored_request(directory) is not None


def go_on(directory: Path, kind: Literal["script"] | None, include: list[str] | None = None) -> bool:
    """Go on with an experiment over its pool; False for one that was begun without.

    Raises:
        InputError: it is of another kind; EtudeError: as its loop.
    """
    found = stored_request(directory)
    if found is None:
        return False
    document, spec = found
    check_resumes(document, directory, kind)
    if is_complete(document):
        return True
    if kind is None:
        _blocks(directory, document, spec)
        return True
    plan = document["plan"]
    words = [f"{name}={text}" for name, text in plan["assignments"].items()]
    asked = read_script(
        plan["script"],
        words,
        seed=plan["seed"],
        directories=include or (),
        res=plan["res"],
        counters=plan["counters"],
        masks=mask_of(plan, str(directory / "experiment.json")).patterns,
    )
    if asked.program.digest != document["digest"]:
        raise InputError(f"{plan['script']}: has changed since {directory} was begun; start a new run")
    _tests(directory, document, spec, asked, include or [])
    return True


def peak(
    directory: Path, source: Source, sought: SearchSpec, spec: PoolSpec, options: argparse.Namespace
) -> SearchStore:
    """`etude peak --pool`."""
    if options.speed is not None:
        raise UsageError("--speed is for watching: leave it out with --pool")
    words = (
        {"simulate": options.simulate}
        if options.simulate is not None
        else {"harness": _absolute(options.harness[0])}
    )
    plan = sought.plan()
    document = document_of("peak", sought.name, plan, record.digest(plan), spec, options.command_line)
    if holds_results(directory) and stored_request(directory) is None:
        raise existing_results(directory)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise write_error(directory, error) from error
    again = f"the same command with -o {directory}"
    with open_jobs(directory, spec, again) as (jobs, _):
        return search_on_pool(jobs, source, words, sought, document, options.deadline, source.nodes)


def _absolute(word: str) -> str:
    """A file as every node finds it; MODULE:NAME stays."""
    return str(Path(word).resolve()) if Path(word).exists() else word


def _blocks(path: Path, document: dict[str, Any], spec: PoolSpec) -> Results:
    plan = from_document(document["plan"], str(path / "experiment.json"))
    with open_jobs(path, spec, f"etude bench --resume {path}") as (jobs, say):
        Blocks(plan, jobs, document, monitoring.from_document(document), say).run()
    return load_results(path)


def _tests(
    path: Path, document: dict[str, Any], spec: PoolSpec, asked: ScriptOptions, include: list[str]
) -> None:
    groups = groups_of(asked.dry_run(), asked.program.path)
    with open_jobs(path, spec, f"etude run --resume {path}") as (jobs, _):
        Tests(asked, groups, jobs, document, monitoring.from_document(document), include).run()


@contextmanager
def open_jobs(directory: Path, spec: PoolSpec, go_on_by: str) -> Iterator[tuple[Jobs, Say]]:
    """The jobs of the experiment in a directory, with the pool open; at the end the timeline is shown.

    Raises:
        EtudeError: with where the results are; Interrupted: with how to go on, too.
    """
    screen = Terminal(sys.stderr)

    def on_disk(error: EtudeError | None) -> str:
        if error and not (directory / FILE).exists():
            return ""  # no job was handed in, and the line itself says what to do
        by = f"; resume with: {go_on_by}" if error is None or isinstance(error, MachineRefuses) else ""
        return f"what was measured is in {directory}{by}"

    with (
        sole_writer(directory),
        ending_by_signals(),
        naming_results(on_disk),
        open_pool(spec, directory.resolve(), screen.say) as pool,
    ):
        jobs = Jobs(directory, pool, python=spec.python, say=screen.say)
        yield jobs, screen.say
        for line in timeline(jobs.journal.jobs):
            screen.say(line)
