"""`etude store`: list, check and remove stored results."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from etude.errors import UsageError
from etude.present.store_display import say_line, show_results, show_tests
from etude.store.database import Store, open_store


def run(options: argparse.Namespace) -> int:
    """Do one of them; `check` ends with 1 where it finds something."""
    if options.results and options.what != "forget":
        raise UsageError(f"etude store {options.what} takes no RESULT")
    with open_store(options.store) as store:
        if options.what == "list":
            show_results(store.where, store.results(), options.json)
        elif options.what == "tests":
            show_tests({test: store.metrics(test) for test in store.tests()}, options.json)
        elif options.what == "forget":
            _forget(store, options.results)
        else:
            return _check(store)
    return 0


def _forget(store: Store, numbers: Sequence[str]) -> None:
    wrong = [number for number in numbers if not number.isdecimal()]
    if wrong or not numbers:
        what = repr(wrong[0]) if wrong else "nothing"
        raise UsageError(
            f"etude store forget: expected numbers of results, as etude store list shows them, not {what}"
        )
    for number in numbers:
        store.forget(int(number))
        say_line(f"result {number}: taken out of {store.where}")


def _check(store: Store) -> int:
    wrong = store.check()
    for line in wrong:
        say_line(line)
    if not wrong:
        count = len(store.results())
        say_line(f"{store.where}: {count} {'result' if count == 1 else 'results'}, nothing is wrong")
    return 1 if wrong else 0
