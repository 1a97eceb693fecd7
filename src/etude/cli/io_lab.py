"""Do the whole I/O lab: throughput over buffer sizes, and static against dynamic linking over file sizes.

Three figures come out (PDF, unless --format says otherwise), as in the lab's notes: (1) throughput against buffer size
with this machine's caches, (2) whole-program time and its ratio, (3) means with deviations and p-values. What they show
is said in words. A few minutes; the results are kept, and etude io explain reads them again.
"""

from __future__ import annotations

import argparse
import sys

from etude.cli.io_options import add_figures, add_place
from etude.io.sweeps import TOTALS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude io lab`."""
    add_place(parser)
    parser.add_argument(
        "-o", "--output", metavar="DIR", help="where it all goes (default etude-results/io-lab-UTCTIME)"
    )
    add_figures(parser)


def run(options: argparse.Namespace) -> int:
    """Measure both, then show."""
    from functools import partial

    from etude.cli.io_show import show
    from etude.cli.sweep_display import SweepDisplay
    from etude.experiment.sitting import new_directory
    from etude.io.lab import lab
    from etude.io.sweeps import make_plan, make_sweep, sweep

    # What the second sweep lacks is said before the first.
    make_plan(make_sweep(options.where, totals=TOTALS))
    directory = new_directory(options.output, "io-lab")
    display = SweepDisplay(sys.stderr)
    common = partial(
        sweep,
        options.where,
        trials=options.trials,
        cpu=options.cpu,
        seed=options.seed,
        observe=display.observe,
        command_line=options.command_line,
    )
    try:
        studied = lab(common, directory, options.format)
    finally:
        display.close()
    show(studied)
    return 0
