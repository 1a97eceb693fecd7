"""Figures of stored results, for papers: bars, lines, ratios, p-values, distributions, and trials over time.

FILE is whatever `etude stats` reads. The name of -o decides the format: .pdf, .eps, .svg or .png; it fits a column of a
paper (3.3 inches) unless --size says otherwise. Every kind of figure, with its picture: docs/figures.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from etude.cli import parser as kinds
from etude.cli.figure_options import font_size, key_place, number, picture_size
from etude.figures import KINDS

if TYPE_CHECKING:
    from etude.figures.sources import Sample
    from etude.figures.wish import Threshold, Wish


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude plot`."""
    add = parser.add_argument
    add("files", nargs="+", metavar="FILE", help="results, or a pattern between quotes")
    add(
        "--kind",
        "--mode",
        type=_kind,
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
        type=_trial,
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
    _content(parser.add_argument_group("what is shown"))
    _looks(parser.add_argument_group("how it looks"))


def _content(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--metric",
        "--components",
        action="append",
        default=[],
        metavar="A,B",
        help="these metrics (default: the primary one); wait and cpu are made of elapsed, user and system",
    )
    add(
        "--test",
        action="append",
        default=[],
        metavar="NAME",
        help="these tests only; * and ? stand for anything",
    )
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
    add(
        "--threshold",
        action="append",
        default=[],
        metavar="VALUE[=TEXT]",
        help="a line at 5ms, with that text",
    )
    add(
        "--mark",
        action="append",
        default=[],
        metavar="X[=TEXT]",
        help="a line at a value of x, such as 32KiB=L1",
    )
    add(
        "--first",
        action="append",
        type=_count,
        default=[],
        metavar="N",
        help="pvalues: also of the first N trials only",
    )
    add("--welch", action="store_true", help="pvalues: by Welch's test, not Student's")


def _looks(group: argparse._ArgumentGroup) -> None:
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


def _kind(text: str) -> str:
    name = {"bar": "bars", "line": "lines"}.get(text, text)
    if name not in KINDS:
        raise argparse.ArgumentTypeError(f"{text!r} is no kind of figure; there are {', '.join(KINDS)}")
    return name


def _count(text: str) -> int:
    if not text.isdecimal() or not 2 <= int(text) <= 10**6:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number of trials from 2")
    return int(text)


def _trial(text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"{text!r}: expected the number of a trial")
    return int(text)


def run(options: argparse.Namespace) -> int:
    """Draw, write, and say what was drawn; returns the exit code."""
    from etude.figures.save import check_format

    if options.output is not None:
        check_format(options.output)
    if options.monitor:
        from etude.cli.plot_monitor import plot_monitor

        return plot_monitor(options)
    if options.trial is not None:
        from etude.errors import UsageError

        raise UsageError("--trial is for --monitor")
    from etude.figures.export import export
    from etude.figures.kinds import make, usual_kind
    from etude.figures.save import save
    from etude.figures.sources import read_samples
    from etude.figures.style import Style

    wish = _wish(options)
    samples = _chosen(read_samples(_paths(options.files), wish), options.test)
    kind = options.kind or usual_kind(samples, wish)
    figure = make(kind, samples, wish)
    target = options.output or f"{kind}.pdf"
    style = (
        Style(options.size[0], options.size[1], options.font_size)
        if options.size
        else Style(font=options.font_size)
    )
    said = save(figure, target, style)
    written = [target]
    if options.data is not None:
        from pathlib import Path

        written += export(figure, options.data, Path(target).stem)
    print(f"{kind}: {' '.join(written)}")
    for note in (*figure.notes, *said):
        print(f"  {note}")
    return 0


def _paths(words: Sequence[str]) -> list[str]:
    """Files as they are named, and those that a pattern fits."""
    import glob
    import os

    found: list[str] = []
    for word in words:
        fitting = [] if os.path.exists(word) else sorted(glob.glob(word))
        found += fitting or [word]
    return list(dict.fromkeys(found))


def _chosen(samples: list[Sample], names: Sequence[str]) -> list[Sample]:
    """The tests that were asked for. Raises UsageError for a name that none has."""
    if not names:
        return samples
    from fnmatch import fnmatchcase

    from etude.errors import UsageError

    for name in names:
        if not any(name == s.name or fnmatchcase(s.name, name) for s in samples):
            known = ", ".join(s.name for s in samples[:10])
            raise UsageError(f"--test {name}: no such test; there are {known}")
    return [s for s in samples if any(name == s.name or fnmatchcase(s.name, name) for name in names)]


def _wish(options: argparse.Namespace) -> Wish:
    from etude.figures.wish import Wish

    return Wish(
        metrics=tuple(name.strip() for text in options.metric for name in text.split(",") if name.strip()),
        bars=options.bars,
        confidence=options.confidence,
        log=options.log,
        parameter=options.x,
        reference=options.reference,
        thresholds=_thresholds(options.threshold),
        marks=_thresholds(options.mark),
        first=tuple(options.first),
        pooled=not options.welch,
        stack=not options.no_stack,
        bar_width=options.bar_width,
        bar_gap=options.bar_gap,
        group_gap=options.group_gap,
        title=options.title,
        x_label=options.xlabel,
        y_label=options.ylabel,
        rotate=options.rotate,
        key=options.key,
    )


def _thresholds(texts: Sequence[str]) -> tuple[Threshold, ...]:
    from etude.figures.wish import threshold

    return tuple(threshold(text) for text in texts)
