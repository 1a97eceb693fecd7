"""The verdict on the screen: its status, the table, the comparisons, few notes, and where the results are."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from etude.analysis.subject import limited_in
from etude.analysis.verdict import Verdict
from etude.analysis.warnings import DataWarning
from etude.analysis.warnings.warning import FOLDED_ABOVE, KINDS
from etude.present import export, text, verdict_text
from etude.present.join_text import joined_lines
from etude.present.note_text import MOST, note_line, notes_of, some_names
from etude.present.sentences.warnings import warning_text
from etude.present.status_line import status_line
from etude.present.table_layout import Column
from etude.present.terminal import Terminal
from etude.units.formatting import counted, quantity

if TYPE_CHECKING:
    from etude.analysis.cross_session import CrossSession

LIMITED = "*"
"""Marks a test that a limit ended (`limited_in`)."""
OF_THE_TABLE = KINDS["caches"].rank
"""The rank of notes on the table: behind those on other work, on failures and on METRICs without a value."""
COLUMNS = (
    ("mean", 0),
    ("± 95 %", 0),
    ("median", 2),
    ("min … max", 3),
    ("trials", 1),
    ("user", 4),
    ("system", 4),
    ("peak memory", 4),
)
"""Of the table; where it is too wide, those of the highest rank are left out first."""
BESIDE = ("user", "system", "peak_memory")
"""Metrics that the table shows beside the one that is judged."""


OF_THE_TEST = ("trials", *(metric.replace("_", " ") for metric in BESIDE))
"""Columns that do not depend on the metric that is judged."""


def show(
    verdict: Verdict,
    *,
    json: bool = False,
    across: Sequence[CrossSession] = (),
    without: Sequence[str] = (),
    machines: Sequence[str] = (),
) -> None:
    """Print a verdict and its comparisons with a stored baseline, or why there are none; say where the results are."""
    if json:
        print(export.to_json(verdict, across, machines))
        return
    screen = Terminal()
    if status := status_line(verdict, across, without):
        screen.say(status, "yellow")
    for metric in verdict.judged:
        _table(verdict, screen, metric)
    say_answers(screen, verdict)
    if across:
        from etude.present.details import across_lines, overall_lines

        for line in (*across_lines(across), *overall_lines(across)):
            screen.say(line)
    for line in without:
        screen.say(line)
    limited = limited_in(verdict.subject.experiment or {})
    say_notes(screen, [verdict], first=[*machines, *_of_the_table(verdict, limited)], marked=limited)
    screen.say_path("Results", str(verdict.directory), "dim")


def say_answers(screen: Terminal, verdict: Verdict) -> None:
    """The comparisons, and targets that were missed with the command that goes on."""
    for line in verdict_text.answer_lines(verdict):
        what, _, command = line.partition(": ")
        if what in (text.GOES_ON, text.MEASURES_ANEW):
            screen.say_command(what, command)
        else:
            screen.say(line)


def say_notes(
    screen: Terminal,
    verdicts: Sequence[Verdict],
    *,
    every: bool = False,
    first: Sequence[str] = (),
    marked: Collection[str] = (),
) -> None:
    """The most important notes on all verdicts, a line each, and how to see the rest; or every one in full.

    first: notes on the table and the machines. marked: tests of which these say that a limit ended them.
    """
    lines: list[tuple[int, str]] = [(OF_THE_TABLE, line) for line in first]
    rest = 0
    for verdict in verdicts:
        where = f"{verdict.subject.label}: " if len(verdicts) > 1 else ""
        found = [each for each in verdict.every if not _is_answered(verdict, each, marked)]
        if every:
            lines += [(each.rank, where + warning_text(each)) for each in found]
            continue
        notes = notes_of(found)
        lines += [(note.rank, f"{where}{note_line(note, len(verdict.tests))}") for note in notes[:MOST]]
        rest += len(found) - sum(note.stands_for for note in notes[:MOST])
    lines.sort(key=lambda line: line[0])
    most = len(lines) if every else MOST
    for _, line in lines[:most]:
        say_note(screen, line)
    if rest := rest + len(lines[most:]):
        words = ["etude", "stats", "-v", *(verdict.subject.label for verdict in verdicts)]
        screen.say_command(counted(rest, "more note"), shlex.join(words))


def say_note(screen: Terminal, line: str) -> None:
    """One note."""
    screen.say(f"Note: {line}", "yellow")


def _is_answered(verdict: Verdict, warning: DataWarning, marked: Collection[str]) -> bool:
    """Whether a line of the verdict itself says as much."""
    if warning.kind != "not-converged":
        return False
    if warning.test in marked and not warning.metric:
        return True
    tests = (test for test in verdict.tests if test.test == warning.test)
    return any(text.precision_line(test, verdict.asked) for test in tests)


def _of_the_table(verdict: Verdict, limited: Mapping[str, str]) -> Iterator[str]:
    """What figures of the table mean."""
    by_reason: dict[str, list[str]] = {}
    for name, why in limited.items():
        by_reason.setdefault(why, []).append(name)
    if len(by_reason) > FOLDED_ABOVE:
        yield f"{LIMITED} {some_names(list(limited))}: a limit ended them, not the rest of their stop rules"
    else:
        for why, names in by_reason.items():
            yield f"{LIMITED} {some_names(names)}: {why}"
    for test in verdict.tests:
        if test.inner > 1:
            yield f"{test.test}: {test.inner} launches in each trial; figures are per launch"
    yield from _without_interval(verdict)
    yield from joined_lines(verdict.tests, (*verdict.judged, *BESIDE))
    if widened := text.widened_line(verdict.asked):
        yield widened


def _without_interval(verdict: Verdict) -> Iterator[str]:
    """Why the mean of a test has no margin of error."""
    by_reason: dict[str, list[str]] = {}
    for test in verdict.tests:
        found = test.metric(verdict.primary)
        if found is not None and (reason := text.interval_reason(found)):
            by_reason.setdefault(reason, []).append(test.test)
    for reason, names in by_reason.items():
        yield f"{some_names(names)}: the mean has no interval: {reason}"


def _table(verdict: Verdict, screen: Terminal, metric: str) -> None:
    """The tests by one metric; by a further one only those that have it, without what the first table has said."""
    first = metric == verdict.primary
    tests = [test for test in verdict.tests if first or test.metric(metric)]
    rows = [_cells(test, metric) for test in tests]
    columns = [
        Column(heading, [row.get(heading, "–") for row in rows], rank)
        for heading, rank in COLUMNS
        if first or heading not in OF_THE_TEST
    ]
    ratios = {c.other: text.ratio_text(c.ratio) for c in verdict.comparisons if c.metric == metric}
    if ratios:
        ratios |= {c.base: "1" for c in verdict.comparisons if c.metric == metric and c.base not in ratios}
        columns.append(Column("ratio", [ratios.get(test.test, "–") for test in tests]))
    if first:
        columns[:0] = _parameters(verdict)
    else:
        screen.say()
    limited = limited_in(verdict.subject.experiment or {})
    names = [f"{test.test} {LIMITED}" if test.test in limited else test.test for test in tests]
    screen.table(Column(metric, names), columns)


def _parameters(verdict: Verdict) -> list[Column]:
    """A column for each parameter that differs between tests, where several do: one is plain from the names."""
    names = dict.fromkeys(name for test in verdict.tests for name in test.parameters)
    values = {name: [test.parameters.get(name, "–") for test in verdict.tests] for name in names}
    differing = {name: cells for name, cells in values.items() if len(set(cells)) > 1}
    return [Column(name, cells, 1) for name, cells in differing.items()] if len(differing) > 1 else []


def _cells(test: Any, primary: str) -> dict[str, str]:
    """One test's row, by column."""
    cells = {"trials": str(test.kept)}
    cells |= {metric.replace("_", " "): _mean(test, metric) for metric in BESIDE}
    found = test.metric(primary)
    if found is None or found.summary is None:
        return cells
    s, like = found.summary, found.summary.mean
    if margin := text.margin(s, found.unit):
        cells["± 95 %"] = margin.removeprefix(" ± ").strip(" ()")
    mean, median, low, high = (
        quantity(value, found.unit, like) for value in (s.mean, s.median, s.minimum, s.maximum)
    )
    return cells | {"mean": mean, "median": median, "min … max": f"{low} … {high}"}


def _mean(test: Any, metric: str) -> str:
    found = test.metric(metric)
    return "–" if found is None or found.summary is None else quantity(found.summary.mean, found.unit)
