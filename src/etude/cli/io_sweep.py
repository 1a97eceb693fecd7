"""Run the I/O benchmark at one size after another, in random order; then say what the curve shows, and draw it.

Over buffer sizes (the default) the rate of the timed loop is judged, for a buffer that is untouched, touched before the
clock is read, and on huge pages. Over total sizes (--totals 1..128M) it is the time of the whole program, statically
and dynamically linked. The results are ordinary ones: etude stats, plot and report read them. The machine's caches are
drawn into the figure. More: docs/io.md; a tutorial: docs/tutorials/io-lab.md.
"""

from __future__ import annotations

import argparse
import sys

from etude.cli import parser as kinds
from etude.cli.io_options import add_figures, add_place, check_alone, size_list


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude io sweep`."""
    add = parser.add_argument
    add_place(parser)
    add(
        "--buffers",
        "-b",
        type=size_list,
        metavar="SIZES",
        help="buffer sizes: 16K, or 4K,64K, or 8..16M for powers of two (default 8..16M; over totals 2M)",
    )
    add("--totals", "-t", type=size_list, metavar="SIZES", help="how much is transferred (default 16M)")
    add(
        "--curve",
        action="append",
        default=[],
        metavar="NAME[=OPTIONS]",
        help="untouched, touched, huge, direct, pread, random, mmap, io_uring, static, dynamic; or a name of your own "
        "with options of etude io, such as 'hugetouched=--huge on --touch'; repeat for several",
    )
    add("--write", action="store_true", help="write, not read")
    add(
        "--program",
        choices=("io-static", "io-dynamic", "etude-engine"),
        default="io-static",
        help="which build of the benchmark runs (default io-static)",
    )
    add("--no-storage", action="store_true", help="do not measure the storage itself by O_DIRECT")
    add("--refine", type=int, default=0, metavar="N", help="up to N more sizes where a curve bends most")
    add(
        "-o",
        "--output",
        type=kinds.place,
        metavar="DIR",
        help="results directory (default etude-results/NAME-UTCTIME)",
    )
    add("--resume", metavar="DIR", help="go on with an interrupted sweep; takes only --format and --json")
    add_figures(parser)
    add("--json", action="store_true", help="print the reading as JSON on standard output (docs/formats.md)")


def run(options: argparse.Namespace) -> int:
    """Measure, then show what came out."""
    from etude.cli.sweep_display import SweepDisplay
    from etude.iolab.lab import study
    from etude.iolab.run_sweep import resume_sweep, sweep

    if options.resume is not None:
        check_alone(options, add_arguments, "resume", ("format", "json"))
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
    from etude.cli.io_show import show

    show([studied], json=options.json)
    return 0
