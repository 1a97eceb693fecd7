"""Options of the verbs that draw: plot and profile."""

from __future__ import annotations

import argparse
from functools import partial

from etude.cli import parser as kinds
from etude.cli.shared_options import font_size, key_place, number, picture_size
from etude.figures import KINDS

PLOT = """\
Figures of stored results, for papers: bars, lines, ratios, p-values, distributions, and trials over time.

FILE is whatever `etude stats` reads. The name of -o decides the format: .pdf, .eps, .svg or .png; it fits a column of a
paper (3.3 inches) unless --size says otherwise. Every kind of figure, with its picture: docs/figures.md.
"""


def plot_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude plot`."""
    add = parser.add_argument
    add("files", nargs="+", metavar="FILE", help="results, or a pattern between quotes")
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
        help="what the monitor read beside the trials of one results directory, over time (docs/monitor.md)",
    )
    add(
        "--trial",
        type=_plot_trial,
        metavar="N",
        help="with --monitor: the time around this trial only (of --test)",
    )
    add(
        "-o",
        "--output",
        "--graphfile",
        type=kinds.place,
        metavar="FILE",
        help="what is written (default KIND.pdf or monitor.pdf)",
    )
    add(
        "--data",
        metavar="DIR",
        help="also write the data, and a Gnuplot and a Python script that draw it again",
    )
    _plot_content(parser.add_argument_group("what is shown"))
    _plot_looks(parser.add_argument_group("how it looks"))


def _plot_content(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    repeated = partial(add, action="append", default=[])
    repeated(
        "--metric",
        "--components",
        metavar="A,B",
        help="these metrics (default: the primary one); wait and cpu are made of elapsed, user and system",
    )
    repeated("--test", metavar="NAME", help="these tests only; * and ? stand for anything")
    add(
        "--x",
        metavar="PARAMETER",
        help="what x is (default: the parameter, or the number in names, that varies)",
    )
    add("--log", choices=("x", "y", "xy"), default="", help="logarithmic axes")
    add(
        "--bars",
        choices=("interval", "quartiles", "min-max", "deviation", "none"),
        help="what error bars are "
        "(default: the interval of the mean; quartiles in ratio, deviation in pvalues)",
    )
    add(
        "--confidence",
        type=kinds.percent_between,
        default=0.95,
        metavar="PERCENT",
        help="of intervals (default 95)",
    )
    add(
        "--reference",
        metavar="SERIES",
        help="which series ratio and pvalues compare with (default: the first)",
    )
    repeated("--threshold", metavar="VALUE[=TEXT]", help="a line at 5ms, with that text")
    repeated("--mark", metavar="X[=TEXT]", help="a line at a value of x, such as 32KiB=L1")
    repeated("--first", type=_plot_count, metavar="N", help="pvalues: also of the first N trials only")
    add("--welch", action="store_true", help="pvalues: by Welch's test, not Student's")


def _plot_looks(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--title", default="", metavar="TEXT", help="above the figure")
    add("--xlabel", metavar="TEXT", help="of the x axis")
    add("--ylabel", metavar="TEXT", help="of the y axis")
    add("-k", "--key", type=key_place, default="best", metavar="PLACE", help="'top right', outside, off …")
    add("-f", "--font-size", type=font_size, default=8.0, metavar="POINTS", help="of all text (default 8)")
    add("--size", type=picture_size, metavar="WxH", help="inches (default: 3.3 wide, as high as it needs)")
    add("--rotate", type=number, metavar="DEGREES", help="rotate the labels of the x axis")
    add("--bar-width", type=number, default=1.0, metavar="N", help="of each bar (default 1)")
    add(
        "--bar-gap",
        type=number,
        default=0.0,
        metavar="N",
        help="between bars, in widths of a bar (default 0)",
    )
    add(
        "--group-gap",
        type=number,
        default=1.0,
        metavar="N",
        help="between groups, in widths of a bar (default 1)",
    )
    add("--no-stack", action="store_true", help="user time beside system time, not on it")


def _plot_kind(text: str) -> str:
    name = {"bar": "bars", "line": "lines"}.get(text, text)
    if name not in KINDS:
        raise argparse.ArgumentTypeError(f"{text!r} is no kind of figure; there are {', '.join(KINDS)}")
    return name


def _plot_count(text: str) -> int:
    if not text.isdecimal() or not 2 <= int(text) <= 10**6:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number of trials from 2")
    return int(text)


def _plot_trial(text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"{text!r}: expected the number of a trial")
    return int(text)


PROFILE = """\
What a trace of etude record amounts to: calls, bytes, errors, sizes, order and time, per file, over time.

Of two traces, such as that of a program and that of its replay, times, sizes and calls beside each other. Files are
named by following descriptors through open, dup, fork, exec and close. Times are those of whole calls. More:
docs/profile.md.
"""


PROFILE_USUAL_TOP = 15


def profile_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude profile`."""
    add = parser.add_argument
    add("trace", metavar="TRACE", help="what etude record wrote")
    add(
        "other",
        nargs="?",
        metavar="OTHER",
        help="a second one: both beside each other, and ratios of it to the first",
    )
    add(
        "--top",
        type=_profile_many,
        metavar="N",
        help=f"so many files, calls and processes (default {PROFILE_USUAL_TOP}; JSON: all)",
    )
    add(
        "--figure",
        metavar="FILE",
        help="draw cumulative read and write time against run time into FILE.pdf, .eps, .svg or .png",
    )
    add("--partial", action="store_true", help="take what is there of a trace that is cut short or damaged")
    add(
        "--script",
        metavar="FILE",
        help="with two traces: the script made of the first one; its size is shown",
    )
    add("--roll", metavar="FILE", help="with two traces: the roll made of the first one; its size is shown")
    add("--json", action="store_true", help="print one JSON document on standard output (docs/formats.md)")


def _profile_many(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number from 1 on")
    return int(text)
