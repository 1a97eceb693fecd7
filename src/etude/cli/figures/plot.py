"""`etude plot`: figures of results, for papers."""

from __future__ import annotations

import argparse
import glob
import os
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from etude.errors import UsageError
from etude.figures.export import export
from etude.figures.plot import make, usual_kind
from etude.figures.plot_options import PlotOptions, Threshold, threshold
from etude.figures.save import check_format, save
from etude.figures.sources import Sample, read_samples
from etude.figures.style import Style


def run(options: argparse.Namespace) -> int:
    """Draw, write, and say what was drawn; returns the exit code."""
    if options.output is not None:
        check_format(options.output)
    if options.monitor:
        from etude.cli.figures.plot_monitor import plot_monitor

        return plot_monitor(options)
    if options.trial is not None:
        raise UsageError("--trial is for --monitor")
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
        written += export(figure, options.data, Path(target).stem)
    print(f"{kind}: {' '.join(written)}")
    for note in (*figure.notes, *said):
        print(f"  {note}")
    return 0


def _paths(words: Sequence[str]) -> list[str]:
    """Files as they are named, and those that a pattern fits."""
    found: list[str] = []
    for word in words:
        fitting = [] if os.path.exists(word) else sorted(glob.glob(word))
        found += fitting or [word]
    return list(dict.fromkeys(found))


def _chosen(samples: list[Sample], names: Sequence[str]) -> list[Sample]:
    """The tests that were asked for. Raises UsageError for a name that none has."""
    if not names:
        return samples
    for name in names:
        if not any(name == s.name or fnmatchcase(s.name, name) for s in samples):
            known = ", ".join(s.name for s in samples[:10])
            raise UsageError(f"--test {name}: no such test; there are {known}")
    return [s for s in samples if any(name == s.name or fnmatchcase(s.name, name) for name in names)]


def _wish(options: argparse.Namespace) -> PlotOptions:
    return PlotOptions(
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
    return tuple(threshold(text) for text in texts)
