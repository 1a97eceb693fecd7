"""A map from its spec to its results: measured, kept, and resumed; and its rehearsal (`--rehearse`)."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from etude.cli.capacity.peak_run import place_of, say_lost
from etude.cli.capacity.show_results import show_map
from etude.cli.shared_options import pool_of
from etude.cluster.pool.job import PoolSpec
from etude.cluster.pool.journal import Journal, JournaledPool, timeline
from etude.cluster.pool.spec import open_pool
from etude.errors import UsageError
from etude.experiment.session import new_directory
from etude.osutil.processes import ending_by_signals
from etude.present.progress.capacity import SurfaceDisplay
from etude.present.section import Sentence
from etude.present.sections.rehearsal import map_rehearsal_blocks, map_rehearsal_document
from etude.present.terminal import Terminal, show, show_aside
from etude.present.to_json import print_json
from etude.surface import rehearsal
from etude.surface.configuration_jobs import ConfigurationJobs
from etude.surface.distributed_map import DistributedDisplay, run_map_over_pool
from etude.surface.map_request import MapRequest, changed_rules, map_here, naming_configurations, request_map
from etude.surface.map_store import MapDefinition, MapStore, open_map
from etude.surface.metric import Metric
from etude.surface.peaks import PeakRate, source_of
from etude.surface.response import Response
from etude.surface.run_map import Display, MapBudget
from etude.surface.spec import MetricOf, read_spec

FORMAT, VERSION = "etude-surface", 1
MAPS = 5


def map_surface(options: argparse.Namespace) -> int:
    """Map on this machine or over a pool, and show the map; returns the exit code."""
    pool = pool_of(options)
    asked = request_map(
        None if options.spec is None else Path(options.spec),
        options.simulate or "",
        _changes(options),
        budget_s=options.budget,
        deadline=options.deadline,
        over_pool=pool is not None,
    )
    if pool is not None:
        return show_map(mapped_over(options, pool, asked), options)
    with ending_by_signals():
        kept = map_here(
            directory_of(options, asked.definition),
            asked,
            command_line=options.command_line,
            retry=options.retry,
            watch=partial(_watched, options),
        )
    return show_map(kept, options)


def _changes(options: argparse.Namespace) -> dict[str, Any]:
    changes = {name: getattr(options, name) for name in ("plan", "count", "error")}
    return changes | {"skip": options.skip or None}


@contextmanager
def _watched(options: argparse.Namespace, kept: MapStore) -> Iterator[Display]:
    say_lost(kept, "configurations")
    if options.quiet:
        yield Display()
        return
    with closing(SurfaceDisplay(sys.stderr, kept)) as display:
        yield Display(display.begins, display.tell, display.made)


def directory_of(options: argparse.Namespace, what: MapDefinition) -> Path:
    """The results directory: as -o says, else a new one."""
    return Path(options.output) if options.output is not None else new_directory(None, f"surface-{what.name}")


def mapped_over(options: argparse.Namespace, pool: PoolSpec, asked: MapRequest) -> MapStore:
    """The map; it goes on after the cells that are on disk, and with the jobs that are under way."""
    what, response, budget = asked.definition, asked.response, asked.budget
    _check_pool(pool, response, budget)
    screen = Terminal(sys.stderr)
    path = directory_of(options, what).absolute()
    spec = None if options.spec is None else Path(options.spec)
    simulate = options.simulate or ""
    cells = ConfigurationJobs(
        what.name, what.space, response, spec, simulate, options.deadline, pool.python, what.spec
    )
    with ending_by_signals(), open_map(path, what, options.command_line, elsewhere=True) as kept:
        if options.retry:
            kept.forget_failed()
        with naming_configurations(kept), open_pool(pool, path, say=screen.say) as nodes:
            _spread(kept, cells, JournaledPool(nodes, Journal(path)), budget, quiet=options.quiet)
    return kept


def _check_pool(pool: PoolSpec, response: Response, budget: MapBudget) -> None:
    if isinstance(response, PeakRate) and response.load_hosts:
        raise UsageError(
            "--pool: its jobs would offer load from the same hosts ([generator] hosts): leave out one of them"
        )
    resource = next(iter(budget.resources), None)
    if pool.etude == "copied":
        what = (
            None
            if isinstance(response, Metric) and response.asked.command
            else f"a configuration of {response.name}"
        )
        what = what if resource is None else f"factor {resource} (a resource)"
        if what is not None:
            raise UsageError(
                f"--pool: {what} needs Étude on the nodes: etude=copied is for commands only; install "
                "it on a file system that the nodes share, and leave out etude=copied"
            )
    if response.nodes > 1 and resource is not None and pool.kind != "local":
        raise UsageError(
            f"--pool: factor {resource} is a resource of the machine that offers, and the system is on another "
            "([commands] apart): leave out one of them"
        )


def _spread(
    kept: MapStore, cells: ConfigurationJobs, pool: JournaledPool, budget: MapBudget, *, quiet: bool
) -> None:
    if quiet:
        run_map_over_pool(kept, cells, pool, budget, DistributedDisplay())
        return
    display = SurfaceDisplay(sys.stderr, kept)
    try:
        run_map_over_pool(
            kept,
            cells,
            pool,
            budget,
            DistributedDisplay(looks=display.looks, made=display.made, lost=display.lost),
        )
    finally:
        display.close()
        show_aside(*(Sentence(row, "aside") for row in timeline(pool.journal.jobs)))


def rehearse_surface(options: argparse.Namespace) -> int:
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
    rules = changed_rules(spec.rules, _changes(options), spec.space.size)
    screen = Terminal(sys.stderr)
    count = options.maps or MAPS

    def progress(done: int) -> None:
        if not options.quiet:
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
    screen.draw()
    if options.json:
        document = {"format": FORMAT, "version": VERSION}
        document["rehearsal"] = map_rehearsal_document(found, spec.space.size, source.task, place)
        print_json(document)
    else:
        show(map_rehearsal_blocks(found, spec.space.size, source.task, place))
    return 0
