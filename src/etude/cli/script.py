"""Print a trace of etude record as text: each call with the time since the one before, its arguments, result, duration.

A line is `INTERVAL CALL(ARGUMENTS) = RESULT <DURATION>`, times in seconds; where there are several threads, the numbers
of process and thread stand in front. More: docs/recording.md.
"""

from __future__ import annotations

import argparse
import os


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude script`."""
    parser.add_argument("--events", required=True, metavar="TRACE", help="print the calls of this trace")


def run(options: argparse.Namespace) -> int:
    """Become the engine's program, which prints them."""
    import sys

    from etude.program import engine_path

    sys.stdout.flush()
    os.execv(engine_path(), ["etude", "trace", "events", options.events])
