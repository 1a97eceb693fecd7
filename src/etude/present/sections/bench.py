"""The verdict of `etude bench` and `etude run`: its status, the table, the comparisons, few notes, and its place."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from etude.analysis.subject import limited_in
from etude.analysis.verdict import Verdict
from etude.analysis.warnings import DataWarning
from etude.analysis.warnings.warning import FOLDED_ABOVE, KINDS
from etude.present.long_names import shortened
from etude.present.section import Block, Column, Command, FilePath, Sentence, Table, note
from etude.present.sentences import comparison as text
from etude.present.sentences.notes import MOST, note_line, notes_of, some_names
from etude.present.sentences.verdict import answer_lines, joined_lines, status_line
from etude.present.sentences.warnings import warning_text
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
"""Columns of the table; where it is too wide, those of the highest rank are left out first."""
BESIDE = ("user", "system", "peak_memory")
"""Metrics that the table shows besides the judged one."""


OF_THE_TEST = ("trials", *(metric.replace("_", " ") for metric in BESIDE))
"""Columns that do not depend on the metric that is judged."""


def verdict_blocks(
    verdict: Verdict,
    across: Sequence[CrossSession] = (),
    without: Sequence[str] = (),
    machines: Sequence[str] = (),
) -> Iterator[Block]:
    """A verdict and its comparisons with a stored baseline, or why there are none; last where the results are."""
    if status := status_line(verdict, across, without):
        yield Sentence(status, "warning")
    for metric in verdict.judged:
        if metric != verdict.primary:
            yield Sentence()
        yield verdict_table(verdict, metric)
    yield from _answers(verdict)
    if across:
        from etude.present.sentences.details import across_lines, overall_lines

        yield from map(Sentence, (*across_lines(across), *overall_lines(across)))
    yield from map(Sentence, without)
    limited = limited_in(verdict.subject.experiment or {})
    yield from notes_blocks([verdict], first=[*machines, *_of_the_table(verdict, limited)], marked=limited)
    yield FilePath("Results", str(verdict.directory), "aside")


def _answers(verdict: Verdict) -> Iterator[Block]:
    for line in answer_lines(verdict):
        what, _, command = line.partition(": ")
        yield Command(what, command) if what in (text.GOES_ON, text.MEASURES_ANEW) else Sentence(line)


def notes_blocks(
    verdicts: Sequence[Verdict],
    *,
    every: bool = False,
    first: Sequence[str] = (),
    marked: Collection[str] = (),
) -> Iterator[Block]:
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
        lines += [(each.rank, f"{where}{note_line(each, len(verdict.tests))}") for each in notes[:MOST]]
        rest += len(found) - sum(each.stands_for for each in notes[:MOST])
    lines.sort(key=lambda line: line[0])
    most = len(lines) if every else MOST
    names = [test.test for verdict in verdicts for test in verdict.tests]
    yield from map(note, shortened([line for _, line in lines[:most]], names))
    if rest := rest + len(lines[most:]):
        files = dict.fromkeys(verdict.subject.file or verdict.subject.label for verdict in verdicts)
        words = ["etude", "stats", "-v", *files]
        yield Command(counted(rest, "more note"), shlex.join(words))


def _is_answered(verdict: Verdict, warning: DataWarning, marked: Collection[str]) -> bool:
    """True if a line of the verdict itself has the same statement."""
    if warning.kind != "not-converged":
        return False
    if warning.test in marked and not warning.metric:
        return True
    tests = (test for test in verdict.tests if test.test == warning.test)
    return any(text.precision_line(test, verdict.asked) for test in tests)


def _of_the_table(verdict: Verdict, limited: Mapping[str, str]) -> Iterator[str]:
    by_reason: dict[str, list[str]] = {}
    for name, why in limited.items():
        by_reason.setdefault(why, []).append(name)
    if len(by_reason) > FOLDED_ABOVE:
        yield f"{LIMITED} {some_names(list(limited))}: ended by a limit, not by the precision"
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
    by_reason: dict[str, list[str]] = {}
    for test in verdict.tests:
        found = test.metric(verdict.primary)
        if found is not None and (reason := text.interval_reason(found)):
            by_reason.setdefault(reason, []).append(test.test)
    for reason, names in by_reason.items():
        yield f"{some_names(names)}: the mean has no interval: {reason}"


def verdict_table(verdict: Verdict, metric: str) -> Table:
    """The tests by one metric; a further metric has only the tests with it, without columns of the first table."""
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
    limited = limited_in(verdict.subject.experiment or {})
    names = [f"{test.test} {LIMITED}" if test.test in limited else test.test for test in tests]
    return Table((Column(metric, names), *columns))


def _parameters(verdict: Verdict) -> list[Column]:
    """A column for each parameter that differs between tests, if several do; one is clear from the names."""
    names = dict.fromkeys(name for test in verdict.tests for name in test.parameters)
    values = {name: [test.parameters.get(name, "–") for test in verdict.tests] for name in names}
    differing = {name: cells for name, cells in values.items() if len(set(cells)) > 1}
    return [Column(name, cells, 1) for name, cells in differing.items()] if len(differing) > 1 else []


def _cells(test: Any, primary: str) -> dict[str, str]:
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
