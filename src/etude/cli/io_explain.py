"""Say again what a sweep of `etude io sweep` shows, and draw its figures anew."""

from __future__ import annotations

import argparse

from etude.cli.io_options import add_figures
from etude.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude io explain`."""
    add = parser.add_argument
    add("results", nargs="+", metavar="DIR", help="results directory of a sweep")
    add("--figures", metavar="DIR", help="draw into this directory (default: that of the results)")
    add("--csv", metavar="FILE", help="write each kept trial as a row, of all sweeps together")
    add_figures(parser)
    add("--json", action="store_true", help="print the reading as JSON on standard output (docs/formats.md)")


def run(options: argparse.Namespace) -> int:
    """Read, draw, show."""
    from pathlib import Path

    from etude.cli.io_show import show
    from etude.iolab.lab import study
    from etude.iolab.trial_rows import csv_text
    from etude.results.reader import load_results

    if options.figures and len(options.results) > 1:
        raise UsageError("--figures takes one sweep: those of several would have the same names")
    found = [study(load_results(path), options.figures, options.format) for path in options.results]
    if options.csv:
        Path(options.csv).write_text(csv_text([each.swept for each in found]), encoding="utf-8", newline="")
    show(found, json=options.json)
    return 0
