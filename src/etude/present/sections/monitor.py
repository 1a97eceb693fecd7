"""Part of a report on the monitor: a sentence for each outlier, and figures of its time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from etude.analysis.interference import load_monitors
from etude.analysis.verdict import Verdict
from etude.analysis.warnings import DataWarning
from etude.errors import InputError
from etude.figures.data import Figure
from etude.figures.monitor import WIDTH_IN, height_of, monitor_figure
from etude.present.page.gather import Gathered
from etude.present.section import Paragraphs, Picture, Section
from etude.present.sentences.phrases import every
from etude.present.sentences.warnings import found_text
from etude.results.monitor import Monitor
from etude.units.formatting import counted, percent

MOST_CLOSE = 3
"""Outliers of a result that have a picture of their own."""
MOST_SITTINGS = 3
"""Sessions of a result that are drawn."""
SHORT = 60
"""Number of readings up to which the whole session is shown unchanged."""
KEY = "monitor"


def monitor_sections(found: Gathered) -> tuple[Section, ...]:
    """A section for each monitored result."""
    several = len(found.verdicts) > 1
    parts = (_part(verdict, number, several) for number, verdict in enumerate(found.verdicts))
    return tuple(part for part in parts if part is not None)


def _part(verdict: Verdict, number: int, several: bool) -> Section | None:
    subject = verdict.subject
    try:
        monitors = load_monitors(subject.directory, subject.experiment)
    except InputError as error:
        return _made(number, several, verdict, [Paragraphs("What was read", (f"Nothing: {error}.",))], ())
    if not monitors:
        return None
    told = [each for each in verdict.every if each.kind == "outlier-explained"]
    outliers = any(each.kind in ("outliers", "heavy-tail") for each in verdict.every)
    nothing = (
        "They are not explained here: etude stats -v explains each."
        if outliers
        else "No trial is an outlier."
    )
    lines = tuple(f"{each.test}: {found_text(each)}." for each in told) or (nothing,)
    paragraphs = [
        Paragraphs("Outliers, and what was unusual during them", lines),
        Paragraphs("What was read", tuple(_how(monitors))),
    ]
    return _made(number, several, verdict, paragraphs, tuple(_pictures(verdict, monitors, told)))


def _made(
    number: int,
    several: bool,
    verdict: Verdict,
    paragraphs: Sequence[Paragraphs],
    pictures: tuple[Picture, ...],
) -> Section:
    heading = "Processes beside the trials" + (f" of {verdict.subject.label}" if several else "")
    return Section(f"{KEY}-{number}", heading, (*paragraphs, *pictures))


def _how(monitors: Mapping[int, Monitor]) -> Iterator[str]:
    for sitting, monitor in monitors.items():
        cost = monitor.cost or {}
        share = cost.get("share_of_a_core")
        took = f"; it took {percent(share)} of a CPU itself" if isinstance(share, int | float) else ""
        where = f"Session {sitting}: " if len(monitors) > 1 else ""
        yield f"{where}{counted(monitor.samples, 'reading')}, one every {every(monitor.every_s)}{took}."
        if monitor.absent:
            lacking = ", ".join(f"{name} ({why})" for name, why in list(monitor.absent.items())[:6])
            yield f"{where}This machine does not report: {lacking}."


def _pictures(
    verdict: Verdict, monitors: Mapping[int, Monitor], told: Sequence[DataWarning]
) -> Iterator[Picture]:
    subject = verdict.subject
    for sitting, monitor in list(monitors.items())[:MOST_SITTINGS]:
        which = f" of session {sitting}" if len(monitors) > 1 else ""
        caption = f"The trials{which}, and below them what the machine did in the same seconds."
        yield _picture(caption, monitor_figure(subject, monitor, sitting, verdict.every))
    for each in [each for each in told if len(each.trials) == 1][:MOST_CLOSE]:
        series = subject.test(each.test)
        place = series.trials.tolist().index(each.trials[0])
        sitting = 1 if series.sittings is None else int(series.sittings[place])
        if sitting not in monitors or monitors[sitting].samples <= SHORT:
            continue
        try:
            close = monitor_figure(
                subject, monitors[sitting], sitting, verdict.every, close=(each.test, each.trials[0])
            )
        except InputError:
            continue  # it was made when nothing was read
        yield _picture(f"The seconds around trial {each.trials[0]} of {each.test}.", close)


def _picture(caption: str, figure: Figure) -> Picture:
    return Picture(caption, figure, (WIDTH_IN, height_of(figure)))
