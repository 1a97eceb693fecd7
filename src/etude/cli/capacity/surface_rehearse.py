"""Forecast of a map's cost (`etude surface --rehearse`)."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from etude.cli.capacity.peak_rehearse import place_of
from etude.cli.capacity.surface_run import rules_of
from etude.errors import UsageError
from etude.present.sections.rehearsal import map_rehearsal_blocks, map_rehearsal_document
from etude.present.terminal import Terminal
from etude.present.to_json import print_json
from etude.present.to_terminal import show
from etude.surface import rehearsal
from etude.surface.peaks import source_of
from etude.surface.spec import MetricOf, read_spec

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
        document["rehearsal"] = map_rehearsal_document(found, spec.space.size, source.task, place)
        print_json(document)
    else:
        show(map_rehearsal_blocks(found, spec.space.size, source.task, place))
    return 0
