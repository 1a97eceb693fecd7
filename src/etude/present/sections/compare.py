"""Stored results as a table, and their comparisons as blocks and documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log
from typing import Any

from etude.history.comparison import Compared
from etude.present.section import Block, Column, Sentence, Table, note
from etude.present.sentences.comparison import takes_text
from etude.present.sentences.history import named, p_text
from etude.present.sentences.notes import MOST as MOST_NOTES
from etude.stats.cross_session import NotSupported, overall_ratio
from etude.store.entry import Result
from etude.units.formatting import counted, span

MOST = 3
"""Differences that the first line names."""


RATIO = ("ratio", "low", "high", "p", "adjusted_p", "together")
"""Members of a ratio in its document."""


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
        f"machines differ: {named(differences)}: the ratios do not show the code only"
        for differences in apart
    ] + [
        f"{name}: not compared: {each.found.reason}; {each.found.remedy}"
        for each, name in zip(found, names, strict=True)
        if isinstance(each.found, NotSupported)
    ]
    yield from map(note, notes[:MOST_NOTES])
    if more := len(notes[MOST_NOTES:]):
        yield Sentence(f"{counted(more, 'more note')}: --json", "aside")


def _answer(base: str, other: str, found: Sequence[Compared], names: Sequence[str]) -> str:
    """The result of all comparisons, in one line."""
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
    """One comparison as JSON-able data (docs/history.md)."""
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
        "differences": list(each.differences),
        "base": [e.result for e in each.base],
        "other": [e.result for e in each.other],
    }


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
