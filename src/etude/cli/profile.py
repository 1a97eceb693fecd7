"""What a trace of etude record amounts to: calls, bytes, errors, sizes, order and time, per file, over time.

Files are named by following descriptors through open, dup, fork, exec and close. Times are those of whole calls. More:
docs/profile.md.
"""

from __future__ import annotations

import argparse
from pathlib import Path

USUAL_TOP = 15


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude profile`."""
    add = parser.add_argument
    add("trace", metavar="TRACE", help="what etude record wrote")
    add(
        "--top",
        type=_many,
        metavar="N",
        help=f"so many files, calls and processes (default {USUAL_TOP}; JSON: all)",
    )
    add(
        "--figure",
        metavar="FILE",
        help="draw cumulative read and write time against run time into FILE.pdf, .eps, .svg or .png",
    )
    add("--partial", action="store_true", help="take what is there of a trace that is cut short or damaged")
    add("--json", action="store_true", help="print one JSON document on standard output (docs/formats.md)")


def _many(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number from 1 on")
    return int(text)


def run(options: argparse.Namespace) -> int:
    """Read, add up, show."""
    if options.figure is not None:
        from etude.figures.save import check_format

        check_format(options.figure)
    from etude.iotrace.profile import profile_of
    from etude.iotrace.read import read_trace

    profile = profile_of(read_trace(Path(options.trace), partial=options.partial))
    said: list[str] = []
    if options.figure is not None:
        from etude.figures.save import save
        from etude.figures.style import Style
        from etude.iotrace.picture import figure_of

        said = save(figure_of(profile), options.figure, Style())
    if options.json:
        from json import dumps

        from etude.iotrace.document import document

        print(dumps(document(profile, options.top), indent=1))
        return 0
    from etude.cli.profile_display import show

    show(profile, options.top or USUAL_TOP, figure=options.figure, said=said)
    return 0
