"""A search from its source to its answer, its rehearsal (`--rehearse`), and a calibration of trials (`--calibrate`)."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from etude.cli.capacity.show_results import saved_figures, show_searches
from etude.cli.shared_options import pool_of
from etude.errors import EtudeError, InputError, UsageError
from etude.experiment.session import new_directory
from etude.osutil.processes import ending_by_signals, naming_results
from etude.peak import calibrate as calibrating
from etude.peak import rehearse as rehearsing
from etude.peak.harnesses.curves import CURVES
from etude.peak.policies import policy
from etude.peak.record import Record
from etude.peak.rehearse import Place, bench_model_like
from etude.peak.search import Bench, PacedBench, Policy, Watcher, search, with_deadline
from etude.peak.search_store import SearchSpec, SearchStore, open_store
from etude.peak.sources import Source, simulated_curves
from etude.peak.task import CALIBRATION, Answer
from etude.present.progress.capacity import PeakDisplay
from etude.present.section import FilePath, note
from etude.present.sections.calibration import calibration_blocks, calibration_document, calibration_figures
from etude.present.sections.peak import FORMAT, VERSION, search_of
from etude.present.sections.rehearsal import rehearsal_blocks, rehearsal_document
from etude.present.terminal import Terminal, show, show_aside
from etude.present.to_json import print_json
from etude.units.formatting import counted, duration

SEARCHES = 20
"""Default number of rehearsed searches on each curve."""


def search_peak(options: argparse.Namespace, source: Source) -> int:
    """Search, and show the answer; returns the exit code."""
    chosen = policy(options.policy)
    sought = SearchSpec(source.name, source.task, options.policy, source.text, dict(options.factor))
    if (spec := pool_of(options)) is not None:
        from etude.cli.measure import pool_run  # clusters are loaded where there is one

        found = pool_run.peak(directory_of(options, source), source, sought, spec, options)
        assert found.answer is not None
        show_searches([search_of(found, found.answer, source.peak)], options)
        return 0 if found.answer.kept else 1
    with ending_by_signals(), open_store(directory_of(options, source), sought, options.command_line) as kept:
        answer = _answered(options, source, chosen, kept)
        kept.answered(answer)
    show_searches([search_of(kept, answer, source.peak)], options)
    return 0 if answer.kept else 1


def directory_of(options: argparse.Namespace, source: Source) -> Path:
    """The results directory: that of -o, else a new one."""
    return Path(options.output) if options.output is not None else new_directory(None, f"peak-{source.name}")


def _answered(options: argparse.Namespace, source: Source, policy: Policy, kept: SearchStore) -> Answer:
    """The search itself: it goes on after the trials that are on disk."""
    if options.deadline is not None:
        policy = with_deadline(policy, options.deadline)
    before = kept.trials()
    say_lost(kept, "trials")
    with open_bench(options, source, kept) as bench:
        if options.quiet:
            return search(policy, kept.task, bench, before, kept.keep)
        with closing(PeakDisplay(sys.stderr, kept.task, policy)) as display:
            display.resumed(before)
            watcher = Watcher(display.begins, display.window, display.made)
            return search(policy, kept.task, bench, before, kept.keep, watcher)


def say_lost(kept: Record, what: str) -> None:
    """Print the trials that a directory has lost since its last session."""
    if text := kept.lost_text(what):
        show_aside(note(f"{kept.directory}: {text}; missing trials are repeated where needed"))


@contextmanager
def open_bench(options: argparse.Namespace, source: Source, kept: SearchStore) -> Iterator[Bench]:
    """The bench of a search, brought to where the trials on disk left it; however it ends, it says where they are.

    Raises:
        EtudeError: with where the trials are, and how to go on.
    """
    place = kept.directory / "harness"

    def on_disk(error: EtudeError | None) -> str:
        count = len(kept.trials())
        return "" if error and not count else resumed_by_same_command(counted(count, "trial"), kept.directory)

    with (
        naming_results(on_disk),
        source.bench(kept.sought.factors, place, kept.trials(), kept.task.seed) as bench,
    ):
        yield bench if options.speed is None else PacedBench(bench, options.speed, time.sleep)


def resumed_by_same_command(count: str, directory: object) -> str:
    """The clause of a verb that resumes by being typed again."""
    return f"{count} on disk; the same command with -o {directory} resumes"


def rehearse(options: argparse.Namespace, source: Source) -> int:
    """Search simulated servers, and say what it cost and how often it was right."""
    task = source.task
    place = place_of(options, source)
    curves = [simulated_curves()[source.curve]] if source.curve else list(CURVES.values())
    screen = Terminal(sys.stderr)

    def progress(done: int, of: int) -> None:
        if not options.quiet:
            screen.draw(f"{done} of {of} searches")

    found = rehearsing.rehearse(
        policy(options.policy),
        task,
        curves,
        options.searches or SEARCHES,
        task.seed,
        place=place,
        progress=progress,
    )
    screen.draw()
    if options.json:
        _print_json({"rehearsal": rehearsal_document(found, options.policy, place)})
    else:
        show(rehearsal_blocks(found, place))
    return 0


def place_of(options: argparse.Namespace, source: Source) -> Place:
    """The cost and the windows of a trial: as the options or the harness say, else as in the paper."""
    if options.like is not None:
        return _like(Path(options.like), options.fixed_cost)
    usual = Place()
    fixed_cost_s = getattr(source.harness, "fixed_cost_s", usual.fixed_cost_s)
    return Place(
        fixed_cost_s if options.fixed_cost is None else options.fixed_cost,
        getattr(source.harness, "report_interval_s", usual.window_s),
    )


def _like(path: Path, fixed_cost_s: float | None) -> Place:
    """A simulated place like that of a stored search or calibration. Raises InputError: it is none, or ended without a
    rate."""
    kept = SearchStore(path)
    kept.check_whole("trials")
    answer = kept.answer
    rate = kept.task.seed_load if answer is None else answer.rate
    if rate is None:
        raise InputError(f"--like {path}: no peak rate is known there: expected a search that ended with one")
    try:
        place = bench_model_like(kept.task, kept.trials(), rate)
    except InputError as error:
        raise InputError(f"--like {path}: {error}") from None
    return place if fixed_cost_s is None else replace(place, fixed_cost_s=fixed_cost_s)


def calibrate(options: argparse.Namespace, source: Source) -> int:
    """Make the trials of a calibration, resumably, and say what run lengths and trials it suggests.

    Raises:
        UsageError: no load near the peak is given; EtudeError: as a search.
    """
    task, peak = source.task, source.task.seed_load or source.peak
    if peak is None:
        raise UsageError("--calibrate measures at shares of the peak: give a load near it with --seed-load")
    plan = calibrating.plan(task, peak)
    sought = SearchSpec(source.name, task, CALIBRATION, source.text, dict(options.factor))
    screen = Terminal(sys.stderr)
    with ending_by_signals(), open_store(directory_of(options, source), sought, options.command_line) as kept:
        with open_bench(options, source, kept) as bench:
            for number, request in enumerate(plan[len(kept.trials()) :], len(kept.trials()) + 1):
                if not options.quiet:
                    where = f"{task.load_text(request.load)} for {duration(request.runlength_s)}"
                    screen.say(f"{number} of {len(plan)}: {where}: {request.why}")
                kept.keep(request, bench.run(request, lambda windows: False))
        found = calibrating.calibrate(task, peak, kept.trials())
        kept.answered(Answer(None, 0.0, float("inf"), task.confidence, False, "a calibration"))
    files = saved_figures(calibration_figures(task, found), options, kept.directory)
    if options.json:
        _print_json({"calibration": calibration_document(found), "results": str(kept.directory)})
        list(files)
    else:
        show(calibration_blocks(task, found))
        show([FilePath("Results", str(kept.directory), "aside")])
        show(files)
    return 0


def _print_json(document: dict[str, Any]) -> None:
    print_json({"format": FORMAT, "version": VERSION} | document)
