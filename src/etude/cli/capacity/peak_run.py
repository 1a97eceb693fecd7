"""A search from its source to its answer, its rehearsal (`--rehearse`), and a calibration of trials (`--calibrate`)."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from etude.cli.capacity.show_results import saved_figures, show_searches
from etude.cli.shared_options import pool_of
from etude.errors import InputError, UsageError
from etude.experiment.session import new_directory
from etude.osutil.processes import ending_by_signals
from etude.peak import rehearse as rehearsing
from etude.peak.calibrate import run_calibration
from etude.peak.harnesses.curves import CURVES
from etude.peak.policies import policy
from etude.peak.record import Record
from etude.peak.rehearse import Place, bench_model_like
from etude.peak.search import Bench, PacedBench, Policy, Watcher
from etude.peak.search_session import named_bench, run_search, unwatched
from etude.peak.search_store import SearchSpec, SearchStore
from etude.peak.sources import Source, simulated_curves
from etude.peak.task import CALIBRATION, TrialRequest
from etude.present.progress.capacity import PeakDisplay
from etude.present.section import FilePath, note
from etude.present.sections.calibration import calibration_blocks, calibration_document, calibration_figures
from etude.present.sections.peak import FORMAT, VERSION, search_of
from etude.present.sections.rehearsal import rehearsal_blocks, rehearsal_document
from etude.present.terminal import Terminal, show, show_aside
from etude.present.to_json import print_json
from etude.units.formatting import duration

SEARCHES = 20
"""Default number of rehearsed searches on each curve."""


def search_peak(options: argparse.Namespace, source: Source) -> int:
    """Search, and show the answer; returns the exit code."""
    policy(options.policy)  # an unknown one is refused before there is a directory
    path = directory_of(options, source)
    sought = SearchSpec(source.name, source.task, options.policy, source.text, dict(options.factor))
    if (spec := pool_of(options)) is not None:
        from etude.cli.measure import pool_run  # clusters are loaded where there is one

        kept = pool_run.peak(path, source, sought, spec, options)
    else:
        with ending_by_signals():
            kept = run_search(
                path,
                sought,
                partial(_bench, options, source),
                command_line=options.command_line,
                deadline=options.deadline,
                watch=unwatched if options.quiet else _displayed,
            )
    assert kept.answer is not None
    show_searches([search_of(kept, kept.answer, source.peak)], options)
    return 0 if kept.answer.kept else 1


def directory_of(options: argparse.Namespace, source: Source) -> Path:
    """The results directory: that of -o, else a new one."""
    return Path(options.output) if options.output is not None else new_directory(None, f"peak-{source.name}")


@contextmanager
def _bench(options: argparse.Namespace, source: Source, kept: SearchStore) -> Iterator[Bench]:
    say_lost(kept, "trials")
    with named_bench(source, kept) as bench:
        yield bench if options.speed is None else PacedBench(bench, options.speed, time.sleep)


@contextmanager
def _displayed(kept: SearchStore, policy: Policy) -> Iterator[Watcher]:
    with closing(PeakDisplay(sys.stderr, kept.task, policy)) as display:
        display.resumed(kept.trials())
        yield Watcher(display.begins, display.window, display.made)


def say_lost(kept: Record, what: str) -> None:
    """Print the trials that a directory has lost since its last session."""
    if text := kept.lost_text(what):
        show_aside(note(f"{kept.directory}: {text}; missing trials are repeated where needed"))


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
    sought = SearchSpec(source.name, task, CALIBRATION, source.text, dict(options.factor))
    screen = Terminal(sys.stderr)

    def begins(number: int, of: int, request: TrialRequest) -> None:
        if not options.quiet:
            where = f"{task.load_text(request.load)} for {duration(request.runlength_s)}"
            screen.say(f"{number} of {of}: {where}: {request.why}")

    path, opened = directory_of(options, source), partial(_bench, options, source)
    with ending_by_signals():
        kept, found = run_calibration(
            path, sought, peak, opened, command_line=options.command_line, begins=begins
        )
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
