"""A history as one self-contained page: a section a machine, with its figure, its steps and its results."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from etude.figures.history import history
from etude.history.metric_history import Course
from etude.present.history_text import heading, limits_text, lines, named, p_text
from etude.present.page.html import to_page
from etude.present.page.section import Paragraphs, Picture, Section
from etude.present.page.tables import Table, number_cell, text_cell
from etude.store.entry import SHORT
from etude.units.formatting import quantity
from etude.version import __version__

SIZE = (9.0, 4.0)
"""Of a figure, inches."""


def history_page(found: Sequence[Course], now: datetime | None = None) -> str:
    """The page of one or more courses of a test. `now`: when it was made; the present unless given.

    Raises:
        MachineRefuses: Jinja2 is not installed.
    """
    made = (now or datetime.now(UTC)).strftime("%Y-%m-%d %H:%M UTC")
    title = f"{found[0].test}: {found[0].metric} over time"
    parts = [_part(course, place) for place, course in enumerate(found)]
    return to_page("history.html.j2", title=title, made=made, version=__version__, parts=parts)


def _part(course: Course, place: int) -> Section:
    said = Paragraphs("What is seen", (f"{heading(course)}.", *lines(course)))
    picture = Picture(
        f"Each point is a result, the line is the level between steps, on {course.machine.name}",
        history([course]),
        SIZE,
    )
    tables = tuple(t for t in (_steps(course, place), _results(course, place)) if t.rows)
    return Section(f"machine-{place}", course.machine.name, (said,), (picture,), tables)


def _steps(course: Course, place: int) -> Table:
    rows = []
    for c in course.changes:
        cause = f"{c.cause}: {named(c.differences)}" if c.differences else c.cause
        ends = limits_text(course, c.low, c.high)
        rows.append(
            (
                text_cell(str(c.first)),
                text_cell(str(c.last)),
                text_cell(cause),
                text_cell(c.expected or ""),
                number_cell(course.size_text(c.size), c.size),
                number_cell(ends, c.low),
                number_cell(p_text(c.step.p), c.step.p),
            )
        )
    headings = ("first result", "last before", "what changed", "expected", "size", "95 % interval", "p")
    return Table(f"steps-{place}", "Steps", headings, tuple(rows), 4)


def _results(course: Course, place: int) -> Table:
    rows = []
    for entry, level in zip(course.entries, course.levels, strict=True):
        value = course.value(float(level))
        rows.append(
            (
                text_cell(entry.day),
                text_cell((entry.commit or "")[:SHORT]),
                text_cell(", ".join(entry.tags)),
                number_cell(str(entry.result), entry.result),
                number_cell(str(len(entry.values)), len(entry.values)),
                number_cell(quantity(value, course.unit), value),
            )
        )
    headings = ("date", "commit", "tags", "result", "trials", course.metric)
    return Table(f"results-{place}", "Results, in order", headings, tuple(rows), 3)
