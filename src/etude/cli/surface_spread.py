"""`etude surface --pool`: a map over the nodes of a pool, and in the end who ran where and when."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from etude.workbench.pool.followed import FollowedPool
    from etude.workbench.pool.wanted import PoolSpec
    from etude.workbench.surfaces.celljobs import CellJobs
    from etude.workbench.surfaces.chart import Means
    from etude.workbench.surfaces.kept import Charted, KeptSurface
    from etude.workbench.surfaces.response import Response


def mapped_over(
    options: argparse.Namespace, pool: PoolSpec, what: Charted, response: Response, means: Means
) -> KeptSurface:
    """The map; it goes on after the cells that are on disk, and with the jobs that are under way."""
    from etude.cli.peak import ending_by_signals
    from etude.cli.surface import directory_of, on_disk
    from etude.cli.terminal import Terminal
    from etude.workbench.pool.followed import FollowedPool
    from etude.workbench.pool.journal import Journal
    from etude.workbench.pool.spec import open_pool
    from etude.workbench.surfaces.celljobs import CellJobs
    from etude.workbench.surfaces.kept import keeping_surface

    _check(pool, response, means)
    screen = Terminal(sys.stderr)
    path = directory_of(options, what).absolute()
    spec = None if options.spec is None else Path(options.spec)
    simulate = options.simulate or ""
    cells = CellJobs(
        what.name, what.space, response, spec, simulate, options.deadline, pool.python, what.spec
    )
    with ending_by_signals(), keeping_surface(path, what, options.command_line, elsewhere=True) as kept:
        if options.retry:
            kept.forget_failed()
        with on_disk(kept), open_pool(pool, path, say=screen.say) as nodes:
            _spread(kept, cells, FollowedPool(nodes, Journal(path)), means, quiet=options.quiet)
    return kept


def _check(pool: PoolSpec, response: Response, means: Means) -> None:
    """Raises UsageError for what the nodes of this pool cannot do."""
    from etude.errors import UsageError
    from etude.workbench.surfaces.metric import Metric
    from etude.workbench.surfaces.peaks import PeakRate

    if isinstance(response, PeakRate) and response.load_hosts:
        raise UsageError(
            "--pool: its jobs would offer load from the same hosts ([generator] hosts): leave out one of them"
        )
    resource = next(iter(means.resources), None)
    if pool.etude == "copied":
        what = (
            None if isinstance(response, Metric) and response.asked.command else f"a cell of {response.name}"
        )
        what = what if resource is None else f"factor {resource} (a resource)"
        if what is not None:
            raise UsageError(
                f"--pool: {what} needs Étude on the nodes: with etude=copied a cell can be a command only; install it "
                "on a file system that the nodes share, and leave out etude=copied"
            )
    if response.nodes > 1 and resource is not None and pool.kind != "local":
        raise UsageError(
            f"--pool: factor {resource} is a resource of the machine that offers, and the system is on another "
            "([commands] apart): leave out one of them"
        )


def _spread(kept: KeptSurface, cells: CellJobs, pool: FollowedPool, means: Means, *, quiet: bool) -> None:
    from etude.cli.surface_display import SurfaceDisplay
    from etude.cli.terminal import Terminal
    from etude.workbench.pool.timeline import timeline
    from etude.workbench.surfaces.spread import SpreadDisplay, spread

    if quiet:
        spread(kept, cells, pool, means, SpreadDisplay())
        return
    display = SurfaceDisplay(sys.stderr, kept)
    try:
        spread(
            kept, cells, pool, means, SpreadDisplay(looks=display.looks, made=display.made, lost=display.lost)
        )
    finally:
        display.close()
        screen = Terminal(sys.stderr)
        for row in timeline(pool.journal.jobs):
            screen.say(row, "dim")
