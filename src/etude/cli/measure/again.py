"""`etude run --again DIR`, or a bundle: run an experiment's own record, then compare both."""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from etude.analysis.cross_session import stored_beside
from etude.analysis.repetition import repetition
from etude.analysis.subject import Subject
from etude.analysis.verdict import Verdict, verdict
from etude.cli.verb_parsers import others_given
from etude.errors import InputError, UsageError
from etude.experiment.monitoring import from_document as monitor_of
from etude.experiment.plan import plan_to_resume
from etude.experiment.run import run as run_plan
from etude.osutil.trust import check_directory_for_root, check_for_root
from etude.present.progress.bench import Display, ScriptDisplay
from etude.present.section import Sentence
from etude.present.sections.bench import verdict_blocks
from etude.present.sections.repetition import again_blocks, to_document
from etude.present.terminal import show, show_aside
from etude.present.to_json import print_json
from etude.results.bundle import is_bundle, open_bundle
from etude.results.reader import load_results
from etude.results.results import machine_member
from etude.script.run import changed_files, run_script, stored_script
from etude.stats.cross_session import stated_session_spread


def repeat_experiment(options: argparse.Namespace) -> int:
    """Repeat, show the new verdict, and say what is reproduced; 1 where something is not."""
    _check(options)
    given = Path(options.again)
    (check_directory_for_root if given.is_dir() else check_for_root)(given)
    with open_bundle(given) if is_bundle(given) else nullcontext((given,)) as found:
        return _again(given, _only(given, found), options)


def _only(given: Path, found: Sequence[Path]) -> Path:
    if len(found) != 1:
        names = ", ".join(f"results/{path.name}" for path in found)
        raise UsageError(f"{given}: holds {len(found)} results; unpack it, and name one of {names}")
    return found[0]


def _again(given: Path, first: Path, options: argparse.Namespace) -> int:
    known = None
    if options.between_sessions is not None:
        known = _stated(100 * options.between_sessions, stated_session_spread)
    then = verdict(load_results(first))
    document: Mapping[str, Any] = then.subject.experiment or {}
    _check_record(first, document, then)
    seed = random.SystemRandom().randrange(2**32) if options.seed is None else options.seed
    notes = _notes(document, seed, options.seed is None)
    show_aside(*map(Sentence, notes))
    path = _repeat(first, document, seed, options)
    now = verdict(load_results(path))
    found = repetition(then, now, known=known, stored=_stored(then, path), notes=notes)
    if options.json:
        print_json(to_document(found, str(given), str(path)))
    else:
        show(verdict_blocks(now))
        show(again_blocks(found, str(given)))
    return 1 if found.outcome == "not reproduced" else 0


def _check(options: argparse.Namespace) -> None:
    if others := others_given(options, ("again", "output", "seed", "between_sessions", "json")):
        raise UsageError(f"--again takes its settings from the record: leave out {', '.join(others)}")


def _stated(percent: float, stated_session_spread: Any) -> Any:
    try:
        return stated_session_spread(percent)
    except ValueError as error:
        raise UsageError(f"--between-sessions: {error}") from None


def _check_record(first: Path, document: Mapping[str, Any], then: Verdict) -> None:
    if document.get("verb") not in ("bench", "run"):
        raise InputError(
            f"{first}: is no results directory of etude bench or etude run; only those can be repeated"
        )
    if not any(test.kept for test in then.tests):
        raise InputError(f"{first}: holds no included trial; there is no verdict to reproduce")


def _notes(document: Mapping[str, Any], seed: int, new: bool) -> list[str]:
    plan = document["plan"]
    before = plan.get("seed")
    order = f"a new one ({seed}; then {before})" if new else f"{seed} (then {before})"
    notes = [f"The seed of the random order is {order}."]
    if plan.get("kind") == "script":
        changed = changed_files(document)
        notes += [f"{line}: what ran is the text of the record." for line in changed]
    ended = [sitting.get("how_ended") for sitting in document["sittings"]]
    if not ended or ended[-1] != "complete":
        notes.append(f"The first experiment was not complete: {ended[-1] if ended else 'no session'}.")
    place = machine_member(document, "directory", "path")
    if place not in (None, os.getcwd()):
        notes.append(f"The first one ran in {place}, this one in {os.getcwd()}: relative paths differ.")
    return notes


def _repeat(first: Path, document: Mapping[str, Any], seed: int, options: argparse.Namespace) -> Path:
    """Run it into a new directory; returns that."""
    source, monitor = str(first / "experiment.json"), monitor_of(document)
    if document["plan"].get("kind") == "script":
        check_for_root(source)
        asked = stored_script(document, seed, source)
        with closing(ScriptDisplay(sys.stderr)) as shown:
            return run_script(
                asked,
                options.output,
                observe=shown.observe,
                command_line=options.command_line,
                monitor=monitor,
            )
    plan = replace(plan_to_resume(document, source), seed=seed)
    with closing(Display(sys.stderr)) as display:
        return run_plan(
            plan,
            options.output,
            observe=display.observe,
            command_line=options.command_line,
            verb=document["verb"],
            monitor=monitor,
        ).results.directory


def _stored(then: Verdict, path: Path) -> list[Subject]:
    """Further sessions that lie beside the first result; not the repetition itself, which is to be judged by them."""
    new = path.resolve()
    return [subject for subject in stored_beside(then.subject) if Path(subject.label).resolve() != new]
