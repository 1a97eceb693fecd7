"""`etude io sweep`: the I/O benchmark over buffer or file sizes."""

from __future__ import annotations

import argparse
import sys

from etude.cli.shared_options import check_alone
from etude.iolab.lab import study
from etude.iolab.run_sweep import resume_sweep, sweep
from etude.present.io_display import show
from etude.present.sweep_display import SweepDisplay


def run(options: argparse.Namespace) -> int:
    """Measure, then show what came out."""
    if options.resume is not None:
        check_alone(options, "resume", ("format", "json"))
    display = SweepDisplay(sys.stderr)
    try:
        if options.resume is not None:
            results = resume_sweep(options.resume, observe=display.observe)
        else:
            results = sweep(
                options.where,
                buffers=options.buffers,
                totals=options.totals,
                curves=options.curve or None,
                trials=options.trials,
                refine=options.refine,
                seed=options.seed,
                directory=options.output,
                observe=display.observe,
                command_line=options.command_line,
                operation="write" if options.write else "read",
                cpu=options.cpu,
                program=options.program,
                storage=not options.no_storage,
            )
        display.figures()
        studied = study(results, suffix=options.format)
    finally:
        display.close()
    show([studied], json=options.json)
    return 0
