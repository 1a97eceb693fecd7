"""Before a bench is booked: what a map will cost (`etude surface --rehearse`)."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from etude.cli.peak_rehearse import place_of
from etude.cli.surface_response import source_of
from etude.cli.surface_run import rules_of
from etude.errors import UsageError
from etude.peak.rehearse import Place
from etude.peak.task import Task
from etude.present.peak_text import target_text
from etude.present.table_layout import Column
from etude.present.terminal import Terminal
from etude.surface import rehearsal
from etude.surface.rehearsal import RehearsedMap
from etude.surface.spec import MetricOf, read_spec
from etude.units.formatting import duration, percent

FORMAT, VERSION = "etude-surface", 1
MAPS = 5


def rehearse(options: argparse.Namespace) -> int:
    """Map simulated surfaces over the cells of SPEC, and say what it cost and how many cells were right."""
    if options.pool is not None or options.output is not None or options.simulate is not None:
        other = "--pool" if options.pool is not None else "-o" if options.output is not None else "--simulate"
        raise UsageError(f"--rehearse measures nothing and keeps nothing: leave out {other}")
    spec = read_spec(Path(options.spec))
    if isinstance(spec.response, MetricOf):
        raise UsageError(
            f"--rehearse is for surfaces of peak rates: {spec.path} has a metric of a "
            f"{'command' if spec.response.command else 'script'}"
        )
    source = source_of(spec.response, spec.path.parent)
    place = place_of(options, source)
    rules = rules_of(spec.rules, options, spec.space.size)
    screen = Terminal(sys.stderr)
    count = options.maps or MAPS

    def progress(done: int) -> None:
        if screen.obeys and not options.quiet:
            screen.draw(f"{done} of {count} maps")

    found = rehearsal.rehearse_maps(
        spec.space,
        rules,
        source.task,
        spec.response.policy,
        count,
        place=place,
        bounds=rehearsal.Bounds(spec.budget_s if options.budget is None else options.budget, spec.cell_s),
        progress=progress,
    )
    if screen.obeys:
        screen.draw()
    if options.json:
        document = {"format": FORMAT, "version": VERSION}
        document["rehearsal"] = _document(found, spec.space.size, source.task, place)
        print(json.dumps(document, indent=1))
    else:
        _say(found, spec.space.size, source.task, place)
    return 0


def _say(found: Sequence[RehearsedMap], size: int, task: Task, place: Place) -> None:
    screen = Terminal()
    screen.table(
        Column("simulated server", [each.curve for each in found]),
        [
            Column("benchmarking time", [duration(each.spent_s) for each in found], 0),
            Column("cells", [f"{each.measured} of {size}" for each in found], 2),
            Column("trials", [str(each.trials) for each in found], 3),
            Column("right", [percent(_right(each)) for each in found], 1),
        ],
    )
    costs = [each.spent_s for each in found]
    screen.say(
        f"A map takes {duration(median(costs))} of benchmarking time (median; {duration(min(costs))} … "
        f"{duration(max(costs))}), where a trial costs {duration(place.fixed_cost_s)} besides its run."
    )
    if any(_unknown(each, size) for each in found):
        left = max(_unknown(each, size) for each in found)
        screen.say(f"The budget ends it before up to {left} of {size} cells have a value.", "yellow")
    screen.say(
        f"Right: within {percent(task.within)} of the truth, measured or predicted. Target of a search: "
        f"{target_text(task)}."
    )
    screen.say(
        "Note: simulated surfaces are as smooth and simulated servers as noisy as they were made (docs/surfaces.md).",
        "dim",
    )


def _right(each: RehearsedMap) -> float:
    return each.near / (each.measured + each.predicted)


def _unknown(each: RehearsedMap, size: int) -> int:
    return size - each.measured - each.predicted


def _document(found: Sequence[RehearsedMap], size: int, task: Task, place: Place) -> dict[str, Any]:
    return {
        "cells": size,
        "confidence": task.confidence,
        "within": task.within,
        "fixed_cost_s": place.fixed_cost_s,
        "maps": [
            {
                "curve": each.curve,
                "bench_s": each.spent_s,
                "measured": each.measured,
                "predicted": each.predicted,
                "trials": each.trials,
                "right": _right(each),
            }
            for each in found
        ],
    }
