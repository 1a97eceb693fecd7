"""`etude plot`: figures of results, for papers; with --monitor what went on beside the trials, a figure a session."""

from __future__ import annotations

import argparse
import glob
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from etude.analysis.interference import load_monitors
from etude.analysis.load_subject import read_subject, relabelled
from etude.analysis.subject import Subject, was_simulated
from etude.analysis.verdict import verdict
from etude.bisect.result import stored_bisection
from etude.cli.shared_options import check_named_once
from etude.errors import InputError, UsageError
from etude.figures.data import Figure
from etude.figures.monitor import WIDTH_IN, height_of, monitor_figure
from etude.figures.plot import make, usual_kind
from etude.figures.plot_options import PlotOptions, Threshold, threshold
from etude.figures.save import check_format, export, save
from etude.figures.sources import Sample, read_samples
from etude.figures.style import COLUMN_IN, Style
from etude.figures.surface import figures_of
from etude.peak.task import CALIBRATION
from etude.present.sections.bisect import bisect_figure_of
from etude.present.sections.peak import readings_figure, stored_search
from etude.present.sentences.peak import of_map
from etude.results.bundle import bundles_opened
from etude.results.monitor import Monitor
from etude.results.reader import read_experiment
from etude.surface.map_store import MapStore, surface_result_of

_NOT_OF_OWN: dict[str, object] = {
    "log": "",
    "bars": None,
    "confidence": 0.95,
    "reference": None,
    "threshold": [],
    "mark": [],
    "first": [],
    "welch": False,
    "rotate": None,
    "bar_width": 1.0,
    "bar_gap": 0.0,
    "group_gap": 1.0,
    "no_stack": False,
}
"""Options that the own figures of searches and maps do not have, with their defaults."""


def run(options: argparse.Namespace) -> int:
    """Draw, write, and say what was drawn; returns the exit code."""
    if options.output is not None:
        check_format(options.output)
    with bundles_opened(_paths(options.files)) as labels:
        if options.monitor:
            return plot_monitor(options, labels)
        if options.trial is not None:
            raise UsageError("--trial is for --monitor")
        check_named_once(options.files)
        return _plot(options, labels)


def _plot(options: argparse.Namespace, labels: Mapping[str, str]) -> int:
    wish = _wish(options)
    if (own := _own_figure(options, list(labels))) is not None:
        _write(own.kind, own, options.output or f"{own.kind}.pdf", (COLUMN_IN, None), options)
        return 0
    samples = _chosen(read_samples(list(labels), wish, labels), options.test)
    kind = options.kind or usual_kind(samples, wish)
    figure = make(kind, samples, wish)
    _write(kind, figure, options.output or f"{kind}.pdf", (COLUMN_IN, None), options)
    return 0


def _own_figure(options: argparse.Namespace, paths: Sequence[str]) -> Figure | None:
    """The figure of a single search, map or bisection, of which no other is asked for; None of other results."""
    if len(paths) != 1 or options.kind or options.metric or options.x or options.test:
        return None
    path = Path(paths[0])
    if not (path / "experiment.json").is_file():
        return None
    experiment = read_experiment(path)
    kind = experiment["plan"].get("kind")
    if kind not in ("peak", "surface", "bisect"):
        return None
    notes = ("simulated: no machine served these loads",) if was_simulated(experiment) else ()
    if kind == "peak" and (search := stored_search(path)).policy != CALIBRATION and search.trials:
        figure = readings_figure(search.task, search.trials, search.answer)
        return _dressed(replace(figure, notes=(*figure.notes, *notes)), search.status, options)
    if kind == "surface" and (mapped := surface_result_of(kept := MapStore(path))).filled.known.any():
        found = sorted(figures_of(mapped).items(), key=lambda each: not each[0].startswith("map"))
        if len(found) > 1:
            notes = (*notes, f"1 of {len(found)} figures of this map; etude report has all")
        if found:
            figure = replace(found[0][1], notes=(*found[0][1].notes, *notes))
            return _dressed(figure, of_map(kept, mapped), options)
    if kind == "bisect":
        found_so_far = stored_bisection(path)
        status = () if found_so_far.answer.decided else ("undecided",)
        if (drawn := bisect_figure_of(found_so_far)) is not None:
            return _dressed(drawn, status, options)
    return None


def _dressed(figure: Figure, status: Sequence[str], options: argparse.Namespace) -> Figure:
    """The figure with the words of its result in its title, and with the labels that are asked for.

    Raises:
        UsageError: an option is not for such a figure.
    """
    for name, usual in _NOT_OF_OWN.items():
        if getattr(options, name) != usual:
            option = f"--{name.replace('_', '-')}"
            raise UsageError(
                f"{option} is not for the own figure of these results: leave it out, or choose a --kind"
            )
    words = "; ".join(status)
    asked = options.title or figure.title
    title = f"{asked} ({words})" if asked and words else asked or words.capitalize()
    first, *others = figure.panels
    y = first.y if options.ylabel is None else replace(first.y, label=options.ylabel)
    x = figure.x if options.xlabel is None else replace(figure.x, label=options.xlabel)
    key = figure.key if options.key == "best" else options.key
    return replace(figure, title=title, x=x, panels=(replace(first, y=y), *others), key=key)


def _write(
    kind: str, figure: Figure, target: str, usual: tuple[float, float | None], options: argparse.Namespace
) -> None:
    """Write a figure, of the usual size in inches unless the options say another, and its data; print the names."""
    width, height = options.size or usual
    said = save(figure, target, Style(width, height, options.font_size))
    written = [target]
    if options.data is not None:
        written += export(figure, options.data, Path(target).stem)
    print(f"{kind}: {' '.join(written)}")
    for note in (*figure.notes, *said):
        print(f"  {note}")


def _paths(words: Sequence[str]) -> list[str]:
    """Files as they are named, and those that a pattern fits."""
    found: list[str] = []
    for word in words:
        fitting = [] if os.path.exists(word) else sorted(glob.glob(word))
        found += fitting or [word]
    return list(dict.fromkeys(found))


def _chosen(samples: list[Sample], names: Sequence[str]) -> list[Sample]:
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


def plot_monitor(options: argparse.Namespace, labels: Mapping[str, str]) -> int:
    """Draw, write, and say what was drawn; returns the exit code."""
    subject = _subject(options, labels)
    monitors = load_monitors(subject.directory, subject.experiment)
    if not monitors:
        raise InputError(f"{subject.label}: nothing was monitored: there is no reading beside its trials")
    for name in options.test:
        if name not in (known := [series.test for series in subject.tests]):
            raise UsageError(f"--test {name}: no such test; there are {', '.join(known[:10])}")
    close, sittings = _close(options, subject, monitors)
    judged = verdict(subject).every
    for sitting in sittings:
        figure = monitor_figure(subject, monitors[sitting], sitting, judged, close=close, title=options.title)
        target = Path(options.output or "monitor.pdf")
        if len(sittings) > 1:
            target = target.with_stem(f"{target.stem}-{sitting}")
        _write("monitor", figure, str(target), (WIDTH_IN, height_of(figure)), options)
    return 0


def _subject(options: argparse.Namespace, labels: Mapping[str, str]) -> Subject:
    if len(options.files) != 1 or len(labels) != 1 or options.kind is not None:
        raise UsageError("--monitor draws one results directory: name one, and leave out --kind")
    ((path, label),) = labels.items()
    found = relabelled(read_subject(path), label)
    if not isinstance(found, Subject) or found.directory is None or not found.directory.is_dir():
        raise UsageError(f"{label}: --monitor draws a results directory of etude bench or etude run")
    return found


def _close(
    options: argparse.Namespace, subject: Subject, monitors: dict[int, Monitor]
) -> tuple[tuple[str, int] | None, list[int]]:
    """The trial that is looked at closely, if one is, and the sessions to draw."""
    if options.trial is None:
        return None, list(monitors)
    names = options.test or [series.test for series in subject.tests]
    if len(names) != 1:
        raise UsageError(f"--trial {options.trial}: of which test? Name it with --test")
    series = subject.test(names[0])
    places = [place for place, number in enumerate(series.trials.tolist()) if number == options.trial]
    if not places:
        raise UsageError(f"--trial {options.trial}: test {names[0]!r} has no such trial")
    sitting = 1 if series.sittings is None else int(series.sittings[places[0]])
    if sitting not in monitors:
        raise UsageError(f"--trial {options.trial}: nothing was monitored in its session, {sitting}")
    return (names[0], options.trial), [sitting]
