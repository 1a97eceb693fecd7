"""Map a response over configurations, at the least bench time: peak rates of a server, or a metric of a test.

SPEC.toml says what is measured, which factors are varied over which levels, and which cells are to be measured
(docs/surfaces.md). Each cell is on disk before the next begins: the same command with the same -o goes on where it was
ended, and nothing is measured twice. A results directory in place of SPEC.toml is shown again. The exit status is 0
where every cell that was tried has a value that meets its target, 1 where one has not.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from etude.cli import parser as kinds
from etude.cli.io_options import FORMATS
from etude.cli.one_thread import one_thread
from etude.cli.peak_options import add_budget, add_like, only_with_rehearse
from etude.cli.pool_options import add_pool
from etude.workbench.most import LONGEST_S

PLANS = ("full", "in-order", "one-at-a-time", "d-optimal", "adaptive")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude surface`."""
    add = parser.add_argument
    add("spec", nargs="?", metavar="SPEC", help="SPEC.toml, or results to show again")
    add(
        "--simulate",
        metavar="NAME[:SEED]",
        help="simulated servers in place of SPEC: DB_TP, Web, Mail, SPECsfs97, cached and others",
    )
    add(
        "-o",
        "--output",
        type=kinds.place,
        metavar="DIR",
        help="results directory; one that holds this map goes on",
    )
    _sampling(parser.add_argument_group("which cells are measured (in place of what SPEC says)"))
    add(
        "--target",
        type=kinds.number_above_0,
        metavar="R",
        help="say how much of each factor a response of R takes",
    )
    add("--figures", metavar="DIR", help="draw figures there: the surface, its map, the effects")
    add("--format", choices=FORMATS, default="pdf", help="of the figures (default pdf)")
    add_pool(parser)
    _rehearsal(parser.add_argument_group("before the bench is booked"))
    add("--json", action="store_true", help="print the surface as JSON on standard output (docs/formats.md)")
    add("-q", "--quiet", action="store_true", help="nothing of single cells, only the surface")


def _sampling(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--plan", choices=PLANS, help="full (default), in-order, one-at-a-time, d-optimal or adaptive")
    add("--count", type=kinds.count, metavar="N", help="cells that are measured at most")
    add(
        "--error",
        type=kinds.share,
        metavar="SHARE",
        help="of adaptive: predictions that are so near are enough",
    )
    add("--skip", action="store_true", help="leave out cells that are predicted well enough")
    add_budget(add)
    add("--deadline", type=kinds.deadline, metavar="TIME", help="such as 17:30; then the best so far")
    add("--retry", action="store_true", help="try cells again that failed in an earlier sitting")


def _rehearsal(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--rehearse",
        action="store_true",
        help="map simulated surfaces only: what it will cost, and how often cells are right",
    )
    add_like(group)
    add("--maps", type=kinds.count, metavar="N", help="of --rehearse (default 5)")
    add(
        "--fixed-cost",
        type=kinds.time_to(LONGEST_S, zero=True),
        metavar="TIME",
        help="of --rehearse: a trial's, besides its run (default: the harness's warm-up and 1 s)",
    )


def run(options: argparse.Namespace) -> int:
    """Map, or show a map again; returns the exit code."""
    from etude.errors import UsageError

    only_with_rehearse(options, "like", "maps", "fixed_cost")
    if options.simulate is not None and options.spec is not None:
        raise UsageError("--simulate takes the place of SPEC: leave out one of them")
    if options.simulate is None and options.spec is None:
        raise UsageError("expected SPEC.toml, a results directory to show again, or --simulate NAME")
    if options.spec is not None and (Path(options.spec) / "experiment.json").exists():
        from etude.cli.surface_run import show_stored

        return show_stored(options)
    one_thread()
    from etude.cli.peak_show import check_figures

    check_figures(options)
    if options.rehearse:
        from etude.cli.surface_rehearse import rehearse

        return rehearse(options)
    from etude.cli.surface_run import map_surface

    return map_surface(options)
