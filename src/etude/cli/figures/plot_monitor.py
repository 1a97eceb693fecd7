"""`etude plot --monitor RESULT`: what went on beside the trials, a figure a session."""

from __future__ import annotations

import argparse
from pathlib import Path

from etude.analysis.interference import load_monitors
from etude.analysis.load_subject import read_subject
from etude.analysis.subject import Subject
from etude.analysis.verdict import verdict
from etude.errors import InputError, UsageError
from etude.figures.export import export
from etude.figures.monitor import WIDTH_IN, height_of, monitor_figure
from etude.figures.save import save
from etude.figures.style import Style
from etude.results.monitor import Monitor


def plot_monitor(options: argparse.Namespace) -> int:
    """Draw, write, and say what was drawn; returns the exit code."""
    subject = _subject(options)
    monitors = load_monitors(subject.directory, subject.experiment)
    if not monitors:
        raise InputError(f"{subject.label}: nothing was monitored: there is no reading beside its trials")
    close, sittings = _close(options, subject, monitors)
    judged = verdict(subject).every
    for sitting in sittings:
        figure = monitor_figure(subject, monitors[sitting], sitting, judged, close=close, title=options.title)
        target = Path(options.output or "monitor.pdf")
        if len(sittings) > 1:
            target = target.with_stem(f"{target.stem}-{sitting}")
        said = save(figure, str(target), _style(options, height_of(figure)))
        written = [str(target)]
        if options.data is not None:
            written += export(figure, options.data, target.stem)
        print(f"monitor: {' '.join(written)}")
        for note in (*figure.notes, *said):
            print(f"  {note}")
    return 0


def _subject(options: argparse.Namespace) -> Subject:
    if len(options.files) != 1 or options.kind is not None:
        raise UsageError("--monitor draws one results directory: name one, and leave out --kind")
    found = read_subject(options.files[0])
    if not isinstance(found, Subject) or found.directory is None or not found.directory.is_dir():
        raise UsageError(
            f"{options.files[0]}: --monitor draws a results directory of etude bench or etude run"
        )
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


def _style(options: argparse.Namespace, height: float) -> Style:
    width, height = options.size or (WIDTH_IN, height)
    return Style(width, height, options.font_size)
