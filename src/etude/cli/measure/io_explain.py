"""`etude io explain`: explain a stored I/O sweep again."""

from __future__ import annotations

import argparse
from pathlib import Path

from etude.cli.measure.io_sweep import show_sweeps
from etude.errors import UsageError
from etude.iolab.lab import csv_text, study, write_text
from etude.results.reader import load_results


def run(options: argparse.Namespace) -> int:
    """Read, draw, show."""
    if options.figures and len(options.results) > 1:
        raise UsageError("--figures takes one sweep: those of several would have the same names")
    found = [study(load_results(path), options.figures, options.format) for path in options.results]
    if options.csv:
        write_text(Path(options.csv), csv_text([each.swept for each in found]))
    show_sweeps(found, as_json=options.json)
    return 0
