"""The program `graphit`: Auto-pilot's line and bar graphs, with the options that its paper shows."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

from etude.cli.entry import complain, run_program
from etude.cli.help import fitted, help_width
from etude.errors import EtudeError, UsageError
from etude.version import __version__

USAGE = """\
usage: graphit --mode=bar|line --components=A[,B …] --graphfile=FILE [OPTION …] SERIES FILE [SERIES FILE …]

Draws results as Auto-pilot's Graphit did: line graphs over what varies in the names of files, and bar graphs with a
group of bars for each series. FILE is anything that `etude stats` reads, or a pattern between quotes ('ext4:*.res').
Long options may begin with one dash or two. Beside FILE.pdf stand its data (.dat), and a Gnuplot and a Python script
(.gnuplot, .py) that draw it again.

  --mode MODE          line: a curve for each series and component; bar: a group for each series
  --components A,B     quantities, as getstats calls them: Elapsed, System, User, Wait, CPU%; or any metric
  --graphfile FILE     what is written: .eps, .pdf, .svg or .png
  -k, --key PLACE      where the key stands: 'top right', 'bottom left', outside, off … (default: where there is room)
  -f, --fontsize N     size of text in points, of a figure 5 inches wide (14)
  --title TEXT, --xlabel TEXT, --ylabel TEXT
  --rotate DEG         rotates the labels of the x axis
  --logx, --logy       logarithmic axes (line graphs)
  --errorbars KIND     interval (of the mean: LOW and HIGH of getstats; the default), minmax, deviation, quartiles, none
  --confidence N       of the intervals, in percent (95)
  --barwidth N         of each bar (1)
  --bargap N           between the bars of a group, in widths of a bar (0)
  --groupgap N         between groups, in widths of a bar (1)
  --nostack            System and User stand beside each other, not on each other
  --size WxH           inches (5x3.5)
  --help, --version
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see graphit --help")


def entry() -> None:
    """The program itself."""
    run_program("graphit", main)


def main(argv: Sequence[str] | None = None) -> int:
    """Run `graphit` with these words; returns its exit code (docs/reference/exit-codes.md)."""
    try:
        options = _parser().parse_intermixed_args(sys.argv[1:] if argv is None else list(argv))
        if options.help or options.version:
            said = fitted(USAGE, help_width()) if options.help else f"graphit (Étude) {__version__}\n"
            print(said, end="")
            return 0
        from etude.cli.figures.graphit_run import run

        return run(options)
    except EtudeError as error:
        return complain("graphit", str(error), error.exit_code)


def _parser() -> argparse.ArgumentParser:
    from etude.cli.shared_options import font_size, key_place, number, picture_size

    parser = _Parser(prog="graphit", add_help=False, allow_abbrev=False)

    def add(*names: str, **more: object) -> None:
        both = [form for name in names for form in ((name,) if len(name) == 1 else (name, f"-{name}"))]
        parser.add_argument(*(f"-{form}" for form in both), **more)  # type: ignore[arg-type]

    add("mode", choices=("bar", "line"))
    add("components")
    add("graphfile")
    add("k", "key", type=key_place, default="best")
    add("f", "fontsize", type=font_size, default=14.0)
    for name in ("title", "xlabel", "ylabel"):
        add(name)
    add("rotate", type=number)
    add("logx", action="store_true")
    add("logy", action="store_true")
    add("errorbars", choices=("interval", "minmax", "deviation", "quartiles", "none"), default="interval")
    from etude.cli.parser import percent_between

    add("confidence", type=percent_between, default=0.95)
    add("barwidth", type=number, default=1.0)
    add("bargap", type=number, default=0.0)
    add("groupgap", type=number, default=1.0)
    add("nostack", action="store_true")
    add("size", type=picture_size, default=(5.0, 3.5))
    add("help", action="store_true")
    add("version", action="store_true")
    parser.add_argument("words", nargs="*")
    return parser


if __name__ == "__main__":
    entry()
