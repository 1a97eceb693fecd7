"""A history: a section a machine, with its figure, its steps and its results; on a screen and as a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from etude.figures.history import history
from etude.history.metric_history import Course
from etude.present.section import (
    Block,
    Paragraphs,
    Picture,
    Section,
    Sentence,
    Table,
    number,
    page_table,
)
from etude.present.sentences.history import heading, limits_text, lines, named, p_text
from etude.present.sparkline import sparkline
from etude.present.to_html import to_page
from etude.store.entry import SHORT
from etude.units.formatting import quantity
from etude.version import __version__

STEP = "▲"
"""Marks where a step begins, below the bars."""
SIZE = (9.0, 4.0)
"""Size of a figure, inches."""


def history_page(found: Sequence[Course], now: datetime | None = None) -> str:
    """The page of one or more courses of a test. `now`: when it was made; the present unless given.

    Raises:
        MachineRefuses: Jinja2 is not installed.
    """
    made = (now or datetime.now(UTC)).strftime("%Y-%m-%d %H:%M UTC")
    title = f"{found[0].test}: {found[0].metric} over time"
    parts = [history_section(course, place) for place, course in enumerate(found)]
    return to_page("history.html.j2", title=title, made=made, version=__version__, parts=parts)


def history_section(course: Course, place: int = 0, width: int = 100, *, drawn: bool = True) -> Section:
    """The section of one course: its results as bars, its steps, drift and noise. `width`: of the bars, in characters;
    `drawn`: with its figure."""
    told = tuple(lines(course))
    bars = spark(course, width) if len(course.entries) > 1 else []
    caption = f"Each point is a result, the line is the level between steps, on {course.machine.name}"
    blocks: tuple[Block, ...] = (
        *map(Sentence, (heading(course), *bars, *told, "")),
        Paragraphs("What is seen", (f"{heading(course)}.", *told), room="page"),
        *([Picture(caption, history([course]), SIZE)] if drawn else ()),
        *(table for table in (_steps(course, place), _results(course, place)) if table.rows),
    )
    return Section(f"machine-{place}", course.machine.name, blocks)


def history_blocks(found: Sequence[Course], width: int | None) -> Iterator[Block]:
    """All courses of a test, for a screen of that width; None: it has none."""
    for course in found:
        yield from history_section(course, width=min((width or 101) - 1, 100), drawn=False).blocks
    if len(found) > 1:
        yield Sentence(
            f"{len(found)} machines: each has its own history, since levels of different machines do not mix."
        )


def spark(course: Course, width: int) -> list[str]:
    """Its levels as bars, and below them where steps begin."""
    values = [course.value(float(level)) for level in course.levels]
    bars, _, each = sparkline(values, frozenset(), width)
    marks = [" "] * len(bars)
    for change in course.changes:
        marks[change.step.at // each] = STEP
    below = "".join(marks).rstrip()
    return [bars, below] if below else [bars]


def _steps(course: Course, place: int) -> Table:
    rows = []
    for c in course.changes:
        cause = f"{c.cause}: {named(c.differences)}" if c.differences else c.cause
        ends = limits_text(course, c.low, c.high)
        rows.append(
            (
                str(c.first),
                str(c.last),
                cause,
                (c.expected or ""),
                number(course.size_text(c.size), c.size),
                number(ends, c.low),
                number(p_text(c.step.p), c.step.p),
            )
        )
    headings = ("first result", "last before", "what changed", "expected", "size", "95 % interval", "p")
    return page_table(f"steps-{place}", "Steps", headings, tuple(rows), 4)


def _results(course: Course, place: int) -> Table:
    rows = []
    for entry, level in zip(course.entries, course.levels, strict=True):
        value = course.value(float(level))
        rows.append(
            (
                entry.day,
                ((entry.commit or "")[:SHORT]),
                ", ".join(entry.tags),
                number(str(entry.result), entry.result),
                number(str(len(entry.values)), len(entry.values)),
                number(quantity(value, course.unit), value),
            )
        )
    headings = ("date", "commit", "tags", "result", "trials", course.metric)
    return page_table(f"results-{place}", "Results, in order", headings, tuple(rows), 3)
