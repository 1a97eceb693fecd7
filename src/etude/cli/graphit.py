"""The program `graphit`: Auto-pilot's line and bar graphs, with the options that its paper shows."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from etude.cli.entry import complain, run_program
from etude.cli.help import fitted, help_width
from etude.errors import EtudeError, InputError, UsageError
from etude.version import __version__

if TYPE_CHECKING:
    from etude.figures.sources import Sample
    from etude.figures.wish import Wish

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
    """Run `graphit` with these words; returns its exit code (docs/exit-codes.md)."""
    try:
        options = _parser().parse_intermixed_args(sys.argv[1:] if argv is None else list(argv))
        if options.help or options.version:
            said = fitted(USAGE, help_width()) if options.help else f"graphit (Étude) {__version__}\n"
            print(said, end="")
            return 0
        return _run(options)
    except EtudeError as error:
        return complain("graphit", str(error), error.exit_code)


def _parser() -> argparse.ArgumentParser:
    from etude.cli.options.shared import font_size, key_place, number, picture_size

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


def _run(options: argparse.Namespace) -> int:
    for name in ("mode", "components", "graphfile"):
        if not getattr(options, name):
            raise UsageError(f"--{name} is needed; see graphit --help")
    from etude.figures.save import check_format

    check_format(options.graphfile)
    series = series_of(options.words)
    wish = _wish(options)
    from etude.figures.export import export
    from etude.figures.save import save
    from etude.figures.style import Style

    read = {name: _read(name, paths, wish) for name, paths in series}
    if len(read) < len(series):
        raise UsageError("two series have one name; name each only once")
    if options.mode == "line":
        from etude.figures.lines import lines_of
        from etude.figures.placing import by_names

        placed = {
            name: by_names(samples, [_varying(s, samples) for s in samples]) for name, samples in read.items()
        }
        figure = lines_of(placed, wish)
    else:
        from etude.figures.bars import bars_of

        figure = bars_of([(name, _one(name, samples)) for name, samples in read.items()], wish)
    target = Path(options.graphfile)
    said = save(figure, options.graphfile, Style(options.size[0], options.size[1], options.fontsize))
    export(figure, str(target.parent), target.stem)
    for note in (*figure.notes, *said):
        print(note)
    return 0


def _wish(options: argparse.Namespace) -> Wish:
    from etude.figures.wish import Wish

    components = tuple(name.strip() for name in options.components.split(",") if name.strip())
    if not components:
        raise UsageError("--components names none")
    return Wish(
        metrics=components,
        bars="min-max" if options.errorbars == "minmax" else options.errorbars,
        confidence=options.confidence,
        log="x" * options.logx + "y" * options.logy,
        stack=not options.nostack,
        bar_width=options.barwidth,
        bar_gap=options.bargap,
        group_gap=options.groupgap,
        title=options.title or "",
        x_label=options.xlabel,
        y_label=options.ylabel,
        rotate=options.rotate,
        key=options.key,
        plain_units=True,
        plain_names=True,
        plain_intervals=True,
    )


def series_of(words: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Names and the files of each: a name, then a file or a pattern; or several files, where a shell saw the pattern.

    Raises:
        UsageError: there is no pair; InputError: nothing has that name, or fits that pattern.
    """
    if len(words) < 2:
        raise UsageError("name a series and its file, as Ext4 'ext4:*.res'; see graphit --help")
    found: list[tuple[str, list[str]]] = []
    place = 0
    while place < len(words):
        name, place = words[place], place + 1
        if place == len(words):
            raise UsageError(f"{name}: is the name of a series without a file, or a file that is not there")
        files = _files(words[place])
        place += 1
        while place < len(words) and os.path.exists(words[place]) and _more_of_a_pattern(words, place):
            files.append(words[place])
            place += 1
        found.append((name, files))
    return found


def _more_of_a_pattern(words: Sequence[str], place: int) -> bool:
    """Whether a word that is a file belongs to the series before it: what comes next is no file of its own."""
    return place + 1 == len(words) or os.path.exists(words[place + 1]) or not _there(words[place + 1])


def _there(word: str) -> bool:
    import glob

    return os.path.exists(word) or bool(glob.glob(word))


def _files(word: str) -> list[str]:
    import glob

    if os.path.exists(word):
        return [word]
    found = sorted(glob.glob(word))
    if not found:
        raise InputError(f"{word}: no such file, and no file fits it as a pattern")
    return found


def _read(name: str, paths: Sequence[str], wish: Wish) -> list[Sample]:
    """The tests of a series; of a file with several the one of the series' name, if there is one."""
    from etude.figures.sources import read_samples

    found = read_samples(paths, wish)
    same = [sample for sample in found if sample.name.casefold() == name.casefold()]
    return same if len(same) == 1 else found


def _varying(sample: Sample, samples: Sequence[Sample]) -> str:
    """What x is taken from: the name of the file, or of the test where one file holds several."""
    if len({s.file for s in samples}) < len(samples):
        return sample.name
    return Path(sample.file).stem or sample.file


def _one(name: str, samples: list[Sample]) -> list[Sample]:
    if len(samples) > 1:
        known = ", ".join(sample.name for sample in samples[:8])
        raise UsageError(
            f"{name}: a bar is one test, but there are {len(samples)}: {known}; name one file, or its test"
        )
    return samples


if __name__ == "__main__":
    entry()
