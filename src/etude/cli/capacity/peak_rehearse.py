"""Forecasts of a search: its cost (`--rehearse`), and the run lengths that it needs (`--calibrate`)."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from etude.cli.capacity.peak_run import directory_of, open_bench
from etude.cli.capacity.show_results import saved_figures
from etude.errors import InputError, UsageError
from etude.osutil.processes import ending_by_signals
from etude.peak import calibrate as calibrating
from etude.peak import rehearse as rehearsing
from etude.peak.harnesses.curves import CURVES
from etude.peak.policies import policy
from etude.peak.rehearse import Place, bench_model_like
from etude.peak.search_store import SearchSpec, SearchStore, open_store
from etude.peak.sources import Source, simulated_curves
from etude.peak.task import Answer
from etude.present.section import FilePath
from etude.present.sections.peak import FORMAT, VERSION
from etude.present.sections.rehearsal import (
    calibration_blocks,
    calibration_document,
    calibration_figures,
    rehearsal_blocks,
    rehearsal_document,
)
from etude.present.terminal import Terminal
from etude.present.to_json import print_json
from etude.present.to_terminal import show
from etude.units.formatting import duration

SEARCHES = 20
"""Default number of rehearsed searches on each curve."""


def rehearse(options: argparse.Namespace, source: Source) -> int:
    """Search simulated servers, and say what it cost and how often it was right."""
    task = source.task
    place = place_of(options, source)
    curves = [simulated_curves()[source.curve]] if source.curve else list(CURVES.values())
    screen = Terminal(sys.stderr)

    def progress(done: int, of: int) -> None:
        if screen.obeys and not options.quiet:
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
    if screen.obeys:
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
    sought = SearchSpec(source.name, task, "calibrate", source.text, dict(options.factor))
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
