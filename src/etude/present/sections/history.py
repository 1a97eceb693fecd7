"""Stored results: a history on a screen and as a page, comparisons of two sides, and a list."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from math import log
from typing import Any

from etude.figures.history import history
from etude.history.comparison import Compared
from etude.history.metric_history import Course
from etude.present.section import (
    Block,
    Column,
    Paragraphs,
    Picture,
    Section,
    Sentence,
    Table,
    note,
    number,
    page_table,
)
from etude.present.sentences.comparison import takes_text
from etude.present.sentences.history import (
    heading,
    limits_text,
    lines,
    named,
    p_text,
    simulated_lines,
    verdict_line,
)
from etude.present.sentences.notes import MOST as MOST_NOTES
from etude.present.table_layout import sparkline
from etude.present.to_html import to_page
from etude.stats.cross_session import NotSupported, overall_ratio
from etude.store.entry import SHORT, Result
from etude.units.formatting import counted, quantity, span
from etude.version import __version__

STEP = "▲"
"""Marks where a step begins, below the bars."""
SIZE = (9.0, 4.0)
"""Size of a figure, inches."""


MOST = 3
"""Differences that the first line names."""
RATIO = ("ratio", "low", "high", "p", "adjusted_p", "together")
"""Members of a ratio in its document."""
COLUMNS = {
    "commit": 0,
    "committed": 2,
    "branch": 4,
    "tags": 3,
    "machine": 0,
    "measured": 1,
    "trials": 5,
    "source": 6,
}
"""Columns of the list of results; where it is too wide, those of the highest rank are left out first."""


def history_page(found: Sequence[Course], now: datetime | None = None) -> str:
    """The page of one or more courses of a test. `now`: when it was made; the present unless given.

    Raises:
        MachineRefuses: Jinja2 is not installed.
    """
    made = (now or datetime.now(UTC)).strftime("%Y-%m-%d %H:%M UTC")
    title = f"{found[0].test}: {found[0].metric} over time"
    parts = [history_section(course, place) for place, course in enumerate(found)]
    verdict = list(map(verdict_line, found))
    return to_page(
        "history.html.j2", title=title, made=made, version=__version__, verdict=verdict, parts=parts
    )


def history_section(course: Course, place: int = 0, width: int = 100, *, drawn: bool = True) -> Section:
    """The section of one course: its results as bars, its steps, drift and noise. `width`: of the bars, in characters;
    `drawn`: with its figure."""
    told = tuple(lines(course))
    bars = spark(course, width) if len(course.entries) > 1 else []
    caption = (
        f"Each point is a result on {course.machine.name}, its bar the 95 % interval of its own trials; the line is "
        "the level between steps, a grey band the range in which a step may begin."
    )
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


def comparison_blocks(base: str, other: str, found: Sequence[Compared]) -> Iterator[Block]:
    """The answer, a table of all comparisons, and notes. `base`, `other`: the selectors that were given."""
    tests = [each.test if each.metric == "elapsed" else f"{each.test} {each.metric}" for each in found]
    names = [
        test if tests.count(test) == 1 else f"{test} on {_machine(each)}"
        for test, each in zip(tests, found, strict=True)
    ]
    apart = dict.fromkeys(each.differences for each in found if not each.same_machine)
    yield Sentence(("Machines differ. " if apart else "") + _answer(base, other, found, names), "strong")
    columns = (
        Column("test", tests),
        Column(f"{other}/{base}", [_ratio(each) for each in found], 0),
        Column("95 % interval", [_interval(each) for each in found], 1),
        Column("p, adjusted" if len(found) > 1 else "p", [_p(each) for each in found], 2),
        Column("machine", [_machine(each) for each in found], 3),
        Column("results of", [_days(each) for each in found], 4),
    )
    yield Table(columns)
    for metric in dict.fromkeys(each.metric for each in found):
        together = overall_ratio(
            [e.found for e in found if e.metric == metric and not isinstance(e.found, NotSupported)]
        )
        if together is not None:
            limits = span(together.low, together.high)
            yield Sentence(
                f"The {together.tests} ratios of {metric} in one: {together.ratio:.4g} × (geometric mean; "
                f"by itself 95 %: {limits})."
            )
    notes = [
        *simulated_lines([entry for each in found for entry in (*each.base, *each.other)]),
        *(
            f"machines differ: {named(differences)}: the ratios do not show the code only"
            for differences in apart
        ),
        *(
            f"{name}: {each.command}: the ratio does not show the code only"
            for each, name in zip(found, names, strict=True)
            if each.command
        ),
        *(
            f"{name}: not compared: {each.found.reason}; {each.found.remedy}"
            for each, name in zip(found, names, strict=True)
            if isinstance(each.found, NotSupported)
        ),
    ]
    yield from map(note, notes[:MOST_NOTES])
    if more := len(notes[MOST_NOTES:]):
        yield Sentence(f"{counted(more, 'more note')}: --json", "aside")


def _answer(base: str, other: str, found: Sequence[Compared], names: Sequence[str]) -> str:
    judged = [
        (name, each.metric, each.found)
        for name, each in zip(names, found, strict=True)
        if not isinstance(each.found, NotSupported)
    ]
    refused = len(found) - len(judged)
    if not judged:
        return f"Not compared: {counted(refused, 'comparison')} refused."
    if len(found) == 1:
        name, metric, ratio = judged[0]
        interval = f"95 %: {_interval(found[0])}; of different sessions, not side by side"
        if ratio.low <= 1.0 <= ratio.high:
            sides = f"between {other} and {base}"
            return f"{name}: no significant difference {sides}: ratio {_ratio(found[0])} ({interval})."
        return f"{name}: {takes_text(metric, other, _ratio(found[0]), base)} ({interval})."
    differ = [(name, ratio) for name, _, ratio in judged if not ratio.low <= 1.0 <= ratio.high]
    most = sorted(differ, key=lambda each: -abs(log(each[1].ratio)))[:MOST]
    are = "is" if len(differ) == 1 else "are"
    line = f"{len(differ)} of {counted(len(judged), 'comparison')} {are} shown to differ"
    all_of_them = f"95 % for all {len(judged)} together; " if len(judged) > 1 else ""
    line += f" ({all_of_them}of different sessions, not side by side)"
    if most:
        line += ": " + ", ".join(f"{name} × {ratio.ratio:.4g}" for name, ratio in most)
    if len(differ) > len(most):
        line += f" and {len(differ) - len(most)} more"
    return line + (f"; {refused} not compared." if refused else ".")


def _ratio(each: Compared) -> str:
    return "refused" if isinstance(each.found, NotSupported) else f"{each.found.ratio:.4g}"


def _interval(each: Compared) -> str:
    return "–" if isinstance(each.found, NotSupported) else span(each.found.low, each.found.high)


def _p(each: Compared) -> str:
    if isinstance(each.found, NotSupported) or (p := each.found.adjusted_p) is None:
        return "–"
    return p_text(p).removeprefix("p = ").removeprefix("p ")


def _machine(each: Compared) -> str:
    names = dict.fromkeys((each.base[0].machine.name, each.other[-1].machine.name))
    return " → ".join(names)


def _days(each: Compared) -> str:
    """`2026-01-10 → 2026-02-20`; of several results a side how many there are."""
    return " → ".join(
        side[0].day if len(side) == 1 else f"{len(side)} results" for side in (each.base, each.other)
    )


def comparison_document(each: Compared) -> dict[str, Any]:
    """One comparison as JSON-able data (docs/howto/history.md)."""
    found = each.found
    if isinstance(found, NotSupported):
        told: dict[str, Any] = dict.fromkeys(RATIO) | {"refused": found.reason}
    else:
        told = {name: getattr(found, name) for name in RATIO} | {"refused": None}
    return {
        "test": each.test,
        "metric": each.metric,
        "unit": each.unit,
        **told,
        "machines": [each.base[0].machine.name, each.other[-1].machine.name],
        "differences": [*each.differences, *filter(None, [each.command])],
        "base": [e.result for e in each.base],
        "other": [e.result for e in each.other],
    }


def results_table(results: Sequence[Result]) -> Table:
    """A row a stored result."""
    rows = zip(*map(_result_cells, results), strict=True)
    columns = (Column(head, cells, rank) for (head, rank), cells in zip(COLUMNS.items(), rows, strict=True))
    return Table((Column("result", [str(result.number) for result in results]), *columns))


def _result_cells(result: Result) -> Iterator[str]:
    yield (result.commit or "–")[:12]
    yield f"{result.committed:%Y-%m-%d %H:%M}" if result.committed else "–"
    yield result.branch or "–"
    yield " ".join(result.tags) or "–"
    yield " ".join(result.machines)
    yield f"{result.measured:%Y-%m-%d %H:%M}"
    yield str(result.trials)
    yield result.source
