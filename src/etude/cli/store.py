"""`etude store`: list, check and remove stored results."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import orjson

from etude.errors import UsageError
from etude.escaping import escaped
from etude.present.table_layout import Column
from etude.present.terminal import Terminal
from etude.store.database import Store, open_store
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


def run(options: argparse.Namespace) -> int:
    """Do one of them; `check` ends with 1 where it finds something."""
    if options.results and options.what != "forget":
        raise UsageError(f"etude store {options.what} takes no RESULT")
    with open_store(options.store) as store:
        if options.what == "list":
            _list(store, options.json)
        elif options.what == "tests":
            _tests(store, options.json)
        elif options.what == "forget":
            _forget(store, options.results)
        else:
            return _check(store)
    return 0


def _list(store: Store, json: bool) -> None:
    results = store.results()
    if json:
        document = {"format": "etude-store-list", "version": 1, "results": results}
        print(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
        return
    if not results:
        _say(f"{store.where}: no results")
        return
    rows = [_row(result) for result in results]
    columns = [
        Column(head, [row[place] for row in rows], rank) for place, (head, rank) in enumerate(COLUMNS.items())
    ]
    screen = Terminal()
    screen.table(Column("result", [str(result.number) for result in results]), columns)


def _row(result: Result) -> Sequence[str]:
    return (
        (result.commit or "–")[:12],
        f"{result.committed:%Y-%m-%d %H:%M}" if result.committed else "–",
        result.branch or "–",
        " ".join(result.tags) or "–",
        " ".join(result.machines),
        f"{result.measured:%Y-%m-%d %H:%M}",
        str(result.trials),
        result.source,
    )


def _tests(store: Store, json: bool) -> None:
    found = {test: store.metrics(test) for test in store.tests()}
    if json:
        print(orjson.dumps({"format": "etude-store-tests", "version": 1, "tests": found}).decode())
        return
    for test, metrics in found.items():
        _say(f"{test}: {', '.join(metrics)}")


def _forget(store: Store, numbers: Sequence[str]) -> None:
    wrong = [number for number in numbers if not number.isdecimal()]
    if wrong or not numbers:
        what = repr(wrong[0]) if wrong else "nothing"
        raise UsageError(
            f"etude store forget: expected numbers of results, as etude store list shows them, not {what}"
        )
    for number in numbers:
        store.forget(int(number))
        _say(f"result {number}: taken out of {store.where}")


def _check(store: Store) -> int:
    wrong = store.check()
    for line in wrong:
        _say(line)
    if not wrong:
        count = len(store.results())
        _say(f"{store.where}: {count} {'result' if count == 1 else 'results'}, nothing is wrong")
    return 1 if wrong else 0


def _say(line: str) -> None:
    """On one line, whatever it names: paths can be copied, and programs read lines."""
    print(escaped(line, lines=False))
