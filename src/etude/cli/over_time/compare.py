"""`etude compare`: compare two commits, tags, dates or machines."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from etude.errors import InputError
from etude.experiment.session import holds_results
from etude.history.comparison import compare_sides, select_results
from etude.present.sections.history import comparison_blocks, comparison_document
from etude.present.terminal import show
from etude.present.to_json import print_json
from etude.store.database import open_store
from etude.store.entry import Selector
from etude.store.queries import unknown_test


def run(options: argparse.Namespace) -> int:
    """Choose, compare, show."""
    try:
        return _compare(options)
    except InputError as error:
        if all(map(holds_results, map(Path, (options.base, options.other)))):
            command = shlex.join(["etude", "stats", options.base, options.other])
            error.args = (f"{error}; directories are compared by {command}",)
        raise


def _compare(options: argparse.Namespace) -> int:
    metric = None if options.metric == "all" else options.metric
    with open_store(options.store) as store:
        stored = store.entries(Selector(test=options.test, metric=metric))
        if not stored and options.test is not None and options.test not in (tests := store.tests()):
            raise unknown_test(store.where, options.test, tests)
        if not stored:
            what = f" test {options.test!r} with" if options.test else ""
            raise InputError(f"{store.where}: has no{what} {options.metric}; name another metric, or all")
    base, other = select_results(options.base, stored), select_results(options.other, stored)
    found = compare_sides(base, other, stored)
    if not found:
        raise InputError(
            f"{options.base} and {options.other} have no test in common with values that have a ratio"
        )
    if options.json:
        print_json([comparison_document(each) for each in found])
    else:
        show(comparison_blocks(options.base, options.other, found))
    return 0
