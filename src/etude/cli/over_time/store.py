"""`etude store` and `etude store add`: add, list, check and remove stored results."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from etude.analysis.subject import SIMULATED, was_simulated
from etude.errors import UsageError
from etude.escaping import escaped
from etude.present.sections.history import results_table
from etude.present.terminal import show
from etude.present.to_json import print_json
from etude.results.reader import read_experiment
from etude.store.content import read_content
from etude.store.database import Store, open_store
from etude.store.entry import AddOutcome
from etude.store.insert import Origin
from etude.store.repository import commit_of


def run(options: argparse.Namespace) -> int:
    """Do one of them; `check` ends with 1 where it finds something."""
    if options.results and options.what != "forget":
        raise UsageError(f"etude store {options.what} takes no RESULT")
    with open_store(options.store) as store:
        if options.what == "list":
            _list(store, options.json)
        elif options.what == "tests":
            _tests({test: store.metrics(test) for test in store.tests()}, options.json)
        elif options.what == "forget":
            _forget(store, options.results)
        else:
            return _check(store)
    return 0


def _list(store: Store, as_json: bool) -> None:
    results = store.results()
    if as_json:
        print_json({"format": "etude-store-list", "version": 1, "results": results})
    elif results:
        show([results_table(results)])
    else:
        _print(f"{store.where}: no results")


def _tests(metrics: Mapping[str, Sequence[str]], as_json: bool) -> None:
    if as_json:
        print_json({"format": "etude-store-tests", "version": 1, "tests": metrics})
        return
    for test, names in metrics.items():
        _print(f"{test}: {', '.join(names)}")


def _print(text: str) -> None:
    """The text on one line, whatever it names: paths can be copied, and programs read lines."""
    print(escaped(text, lines=False))


def _forget(store: Store, numbers: Sequence[str]) -> None:
    wrong = [number for number in numbers if not (number.isascii() and number.isdecimal())]
    if wrong or not numbers:
        what = repr(wrong[0]) if wrong else "nothing"
        raise UsageError(
            f"etude store forget: expected numbers of results, as etude store list shows them, not {what}"
        )
    for number in numbers:
        store.forget(int(number))
        _print(f"result {number}: taken out of {store.where}")


def _check(store: Store) -> int:
    wrong = store.check()
    for line in wrong:
        _print(line)
    if not wrong:
        count = len(store.results())
        _print(f"{store.where}: {count} {'result' if count == 1 else 'results'}, nothing is wrong")
    return 1 if wrong else 0


def run_add(options: argparse.Namespace) -> int:
    """Add each, and say what became of it."""
    origin = _origin(options)
    with open_store(options.store) as store:
        for directory in options.directories:
            content = read_content(directory, options.machine)
            simulated = _is_simulated(Path(directory))
            tags = tuple(dict.fromkeys((*origin.tags, SIMULATED))) if simulated else origin.tags
            added = store.put(content, replace(origin, tags=tags))
            tests = len({point.test for point in content.points})
            machines = ", ".join(sorted({point.machine.name for point in content.points}))
            of = f" of commit {origin.commit[:12]}" if origin.commit else ""
            became = f"{_became(added)}{of} ({tests} {'test' if tests == 1 else 'tests'}, on {machines})"
            print(escaped(f"{directory}: {became}", lines=False))
            if simulated:
                print(f"  simulated: no machine served these loads; its tag is {SIMULATED!r}")
    return 0


def _is_simulated(place: Path) -> bool:
    return (place / "experiment.json").is_file() and was_simulated(read_experiment(place))


def _origin(options: argparse.Namespace):  # type: ignore[no-untyped-def]  # its module loads SQLAlchemy
    if options.repository is None:
        if options.dirty:
            raise UsageError("--dirty is about a repository; name it by --repository DIR")
        return Origin(options.commit, options.committed, options.branch, tuple(options.tag))
    if options.committed is not None:
        raise UsageError("--committed: git knows that in a repository; leave it out")
    found = commit_of(options.repository, options.commit, dirty=options.dirty)
    tags = (*options.tag, *found.tags)
    return Origin(found.commit, found.committed, options.branch or found.branch, tags)


def _became(added: AddOutcome) -> str:
    return {
        "added": f"added as result {added.result}",
        "already": f"was there already, as result {added.result}",
        "replaced": f"has grown since, and replaced result {added.result}",
        "older": f"is older than result {added.result}, in which there is more of it: nothing was added",
    }[added.how]
