"""Do the whole I/O lab: throughput over buffer sizes, and static against dynamic linking over file sizes.

Three figures come out (PDF, unless --format says otherwise), as in the lab's notes: (1) throughput against buffer size
with this machine's caches, (2) whole-program time and its ratio, (3) means with deviations and p-values. What they show
is said in words. A few minutes; the results are kept, and etude io explain reads them again. Each trial stands in
buffers.csv and linking.csv, too.
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
    parser.add_argument(
        "--resume", metavar="DIR", help="resume an interrupted lab in this directory; takes only --format"
    )
    add_figures(parser)


def run(options: argparse.Namespace) -> int:
    """Measure both, then show."""
    import os
    from functools import partial
    from pathlib import Path

    from etude.cli.io_options import check_resume
    from etude.cli.io_show import show
    from etude.cli.sweep_display import SweepDisplay
    from etude.experiment.sitting import new_directory
    from etude.io.lab import Lab, begin, begun, run_lab
    from etude.io.sweeps import make_plan, make_sweep, resume_sweep, sweep

    if options.resume is not None:
        check_resume(options, add_arguments, ("resume", "format"))
        directory = Path(options.resume)
        lab = begun(directory)
    else:
        lab = Lab(os.path.abspath(options.where), options.trials, options.cpu, options.seed)
        # What the second sweep lacks is said before the first.
        make_plan(make_sweep(lab.where, totals=TOTALS, trials=lab.trials, cpu=lab.cpu))
        directory = new_directory(options.output, "io-lab")
        begin(directory, lab)
    display = SweepDisplay(sys.stderr)
    observed = partial(sweep, observe=display.observe, command_line=options.command_line)
    try:
        studied = run_lab(
            lab, directory, observed, partial(resume_sweep, observe=display.observe), options.format
        )
    finally:
        display.close()
    show(studied)
    return 0
