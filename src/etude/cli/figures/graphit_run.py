"""Graphit's graphs: what its options ask for, drawn and written."""

from __future__ import annotations

import argparse
import glob
import os
from collections.abc import Sequence
from pathlib import Path

from etude.errors import InputError, UsageError
from etude.figures.axes import by_names
from etude.figures.bars import bars_of
from etude.figures.lines import lines_of
from etude.figures.plot_options import PlotOptions
from etude.figures.save import check_format, export, save
from etude.figures.sources import Sample, read_samples
from etude.figures.style import Style


def run(options: argparse.Namespace) -> int:
    for name in ("mode", "components", "graphfile"):
        if not getattr(options, name):
            raise UsageError(f"--{name} is needed; see graphit --help")
    check_format(options.graphfile)
    series = series_of(options.words)
    wish = _wish(options)
    read = {name: _read(name, paths, wish) for name, paths in series}
    if len(read) < len(series):
        raise UsageError("two series have one name; name each only once")
    if options.mode == "line":
        placed = {
            name: by_names(samples, [_varying(s, samples) for s in samples]) for name, samples in read.items()
        }
        figure = lines_of(placed, wish)
    else:
        figure = bars_of([(name, _one(name, samples)) for name, samples in read.items()], wish)
    target = Path(options.graphfile)
    said = save(figure, options.graphfile, Style(options.size[0], options.size[1], options.fontsize))
    export(figure, str(target.parent), target.stem)
    for note in (*figure.notes, *said):
        print(note)
    return 0


def _wish(options: argparse.Namespace) -> PlotOptions:
    components = tuple(name.strip() for name in options.components.split(",") if name.strip())
    if not components:
        raise UsageError("--components names none")
    return PlotOptions(
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
    """True if a word that is a file belongs to the series before it: the word after it is no file."""
    return place + 1 == len(words) or os.path.exists(words[place + 1]) or not _there(words[place + 1])


def _there(word: str) -> bool:
    return os.path.exists(word) or bool(glob.glob(word))


def _files(word: str) -> list[str]:
    if os.path.exists(word):
        return [word]
    found = sorted(glob.glob(word))
    if not found:
        raise InputError(f"{word}: no such file, and no file fits it as a pattern")
    return found


def _read(name: str, paths: Sequence[str], wish: PlotOptions) -> list[Sample]:
    """The tests of a series; of a file with several the one of the series' name, if there is one."""
    found = read_samples(paths, wish)
    same = [sample for sample in found if sample.name.casefold() == name.casefold()]
    return same if len(same) == 1 else found


def _varying(sample: Sample, samples: Sequence[Sample]) -> str:
    """The text that x is taken from: the name of the file, or of the test where one file holds several."""
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
