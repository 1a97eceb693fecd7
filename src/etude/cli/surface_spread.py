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

    screen = Terminal(sys.stderr)
    path = directory_of(options, what).absolute()
    spec = None if options.spec is None else Path(options.spec)
    cells = CellJobs(
        what.name, what.space, response, spec, options.simulate or "", options.deadline, pool.python
    )
    with ending_by_signals(), keeping_surface(path, what, options.command_line, elsewhere=True) as kept:
        if options.retry:
            kept.forget_failed()
        with on_disk(kept), open_pool(pool, path, say=screen.say) as nodes:
            _spread(kept, cells, FollowedPool(nodes, Journal(path)), means, quiet=options.quiet)
    return kept


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
