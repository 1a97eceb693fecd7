"""`etude io sweep`: the I/O benchmark over buffer or file sizes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from etude.cli.shared_options import check_alone
from etude.iolab.lab import Studied, study
from etude.iolab.run_sweep import resume_sweep, sweep
from etude.present.progress.script import SweepDisplay
from etude.present.sections.io_sweep import sweep_blocks, sweeps_document
from etude.present.to_json import print_json
from etude.present.to_terminal import show


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
    show_sweeps([studied], as_json=options.json)
    return 0


def show_sweeps(studied: Sequence[Studied], *, as_json: bool = False) -> None:
    """Print each sweep, as tables and sentences or as one JSON document.

    Raises:
        MachineRefuses: figures could not be drawn; all that is known has been printed.
    """
    if as_json:
        print_json(sweeps_document(studied))
    else:
        show(block for each in studied for block in sweep_blocks(each))
    for each in studied:
        if each.undrawn is not None:
            raise each.undrawn
