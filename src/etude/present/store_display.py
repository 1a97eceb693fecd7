"""Stored results on the screen: their list, and the tests that they have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import orjson

from etude.escaping import escaped
from etude.present.table_layout import Column
from etude.present.terminal import Terminal
from etude.store.entry import Result

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
"""Of the list of results; where it is too wide, those of the highest rank are left out first."""


def show_results(where: str, results: Sequence[Result], as_json: bool) -> None:
    """Print the list of a store's results. `where`: the store's address."""
    if as_json:
        document = {"format": "etude-store-list", "version": 1, "results": results}
        print(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
        return
    if not results:
        say_line(f"{where}: no results")
        return
    rows = [tuple(_cells(result)) for result in results]
    columns = [
        Column(head, [row[place] for row in rows], rank) for place, (head, rank) in enumerate(COLUMNS.items())
    ]
    Terminal().table(Column("result", [str(result.number) for result in results]), columns)


def show_tests(metrics: Mapping[str, Sequence[str]], as_json: bool) -> None:
    """Print each test with its metrics."""
    if as_json:
        print(orjson.dumps({"format": "etude-store-tests", "version": 1, "tests": metrics}).decode())
        return
    for test, names in metrics.items():
        say_line(f"{test}: {', '.join(names)}")


def say_line(text: str) -> None:
    """On one line, whatever it names: paths can be copied, and programs read lines."""
    print(escaped(text, lines=False))


def _cells(result: Result) -> Iterator[str]:
    yield (result.commit or "–")[:12]
    yield f"{result.committed:%Y-%m-%d %H:%M}" if result.committed else "–"
    yield result.branch or "–"
    yield " ".join(result.tags) or "–"
    yield " ".join(result.machines)
    yield f"{result.measured:%Y-%m-%d %H:%M}"
    yield str(result.trials)
    yield result.source
