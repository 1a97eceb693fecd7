"""Options of the verbs that draw: plot and profile."""

from __future__ import annotations

import argparse
from functools import partial

from etude.cli import parser as kinds
from etude.cli.shared_options import font_size, key_place, number, picture_size
from etude.figures import KINDS
from etude.units.parsing import whole_in

PLOT = """\
Figures of stored results, for papers: bars, lines, ratios, p-values, distributions, and trials over time.

FILE is anything that `etude stats` reads. The name of -o decides the format: .pdf, .eps, .svg or .png; it fits a
column of a paper (3.3 inches) unless --size is given. Every kind of figure, with its picture: docs/howto/figures.md.
"""


def plot_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude plot`."""
    add = parser.add_argument
    add("files", nargs="+", metavar="FILE", help="results, or a quoted pattern")
    add(
        "--kind",
        "--mode",
        type=_plot_kind,
        metavar="KIND",
        help=f"{', '.join(KINDS)} (default: lines where a number varies over the tests, else bars)",
    )
    add(
        "--monitor",
        action="store_true",
        help="the monitor's readings during the trials of one results directory, over time (docs/howto/monitor.md)",
    )
    add(
        "--trial",
        type=_plot_trial,
        metavar="N",
        help="with --monitor: only the time around this trial (of --test)",
    )
    add(
        "-o",
        "--output",
        "--graphfile",
        type=kinds.place,
        metavar="FILE",
        help="output file (default KIND.pdf or monitor.pdf)",
    )
    add(
        "--data",
        metavar="DIR",
        help="also write the data, and a Gnuplot and a Python script that draw it again",
    )
    _plot_content(parser.add_argument_group("data"))
    _plot_looks(parser.add_argument_group("appearance"))


def _plot_content(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    repeated = partial(add, action="append", default=[])
    repeated(
        "--metric",
        "--components",
        metavar="A,B",
        help="metrics to show (default: the primary one); wait and cpu are computed from elapsed, user and system",
    )
    repeated("--test", metavar="NAME", help="only these tests; * and ? are wildcards")
    add(
        "--x",
        metavar="PARAMETER",
        help="the quantity on the x axis (default: the parameter, or the number in names, that varies)",
    )
    add(
        "--log", choices=("x", "y", "xy", "none"), default="", help="logarithmic axes (as the values suggest)"
    )
    add(
        "--bars",
        choices=("interval", "quartiles", "min-max", "deviation", "none"),
        help="meaning of error bars "
        "(default: the interval of the mean; quartiles in ratio, standard deviation in pvalues)",
    )
    add(
        "--confidence",
        type=kinds.percent_between,
        default=0.95,
        metavar="PERCENT",
        help="confidence level of intervals (default 95)",
    )
    add(
        "--reference",
        metavar="SERIES",
        help="baseline series of ratio and pvalues (default: the first)",
    )
    repeated("--threshold", metavar="VALUE[=TEXT]", help="draw a line at 5ms, with that label")
    repeated("--mark", metavar="X[=TEXT]", help="draw a line at a value of x, such as 32KiB=L1")
    repeated("--first", type=_plot_count, metavar="N", help="pvalues: also show the first N trials alone")
    add("--welch", action="store_true", help="pvalues: use Welch's test instead of Student's")


def _plot_looks(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--title", default="", metavar="TEXT", help="title of the figure")
    add("--xlabel", metavar="TEXT", help="label of the x axis")
    add("--ylabel", metavar="TEXT", help="label of the y axis")
    add("-k", "--key", type=key_place, default="best", metavar="PLACE", help="'top right', outside, off …")
    add(
        "-f",
        "--font-size",
        type=font_size,
        default=8.0,
        metavar="POINTS",
        help="font size in points (default 8)",
    )
    add(
        "--size",
        type=picture_size,
        metavar="WxH",
        help="size in inches (default: 3.3 wide, as high as needed)",
    )
    add("--rotate", type=number, metavar="DEGREES", help="rotate the labels of the x axis")
    add("--bar-width", type=number, default=1.0, metavar="N", help="width of each bar (default 1)")
    add(
        "--bar-gap",
        type=number,
        default=0.0,
        metavar="N",
        help="space between bars, in bar widths (default 0)",
    )
    add(
        "--group-gap",
        type=number,
        default=1.0,
        metavar="N",
        help="space between groups, in bar widths (default 1)",
    )
    add("--no-stack", action="store_true", help="draw user time beside system time, not stacked")


def _plot_kind(text: str) -> str:
    name = {"bar": "bars", "line": "lines"}.get(text, text)
    if name not in KINDS:
        raise argparse.ArgumentTypeError(f"{text!r} is no kind of figure; there are {', '.join(KINDS)}")
    return name


def _plot_count(text: str) -> int:
    found = whole_in(text)
    if found is None or not 2 <= found <= 10**6:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number of trials from 2")
    return found


def _plot_trial(text: str) -> int:
    found = whole_in(text)
    if found is None or not 0 <= found < 10**9:
        raise argparse.ArgumentTypeError(f"{text!r}: expected the number of a trial")
    return found


PROFILE = """\
Summarise a trace of etude record: calls, bytes, errors, sizes, order and time, per file, over time.

Two traces, such as of a program and of its replay, are shown side by side. Files are
named by following descriptors through open, dup, fork, exec and close. Times are those of whole calls. More:
docs/howto/profile.md.
"""


PROFILE_USUAL_TOP = 15


def profile_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude profile`."""
    add = parser.add_argument
    add("trace", metavar="TRACE", help="a recording of etude record")
    add(
        "other",
        nargs="?",
        metavar="OTHER",
        help="a second recording: show both side by side, with ratios to the first",
    )
    add(
        "--top",
        type=_profile_many,
        metavar="N",
        help=f"maximum number of files, calls and processes listed (default {PROFILE_USUAL_TOP}; JSON: all)",
    )
    add(
        "--figure",
        metavar="FILE",
        help="draw cumulative read and write time against run time into FILE.pdf, .eps, .svg or .png",
    )
    add("--partial", action="store_true", help="read what is left of a truncated or damaged trace")
    add(
        "--script",
        metavar="FILE",
        help="with two traces: the script made from the first one; its size is shown",
    )
    add("--roll", metavar="FILE", help="with two traces: the roll made from the first one; its size is shown")
    add(
        "--json",
        action="store_true",
        help="print one JSON document on standard output (docs/reference/formats.md)",
    )


def _profile_many(text: str) -> int:
    found = whole_in(text)
    if found is None or found < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number from 1 on")
    return found
