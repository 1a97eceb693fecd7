"""Say that a test is expected to be another from a commit on: its step raises no alert."""

from __future__ import annotations

import argparse

from etude.cli.store import add_place


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude history mark`."""
    add = parser.add_argument
    add("test", metavar="TEST", help="its name in the store")
    add("commit", metavar="COMMIT", help="the first one with the change, or its beginning")
    add("--why", required=True, metavar="TEXT", help="what whoever meets the step should know")
    add("--metric", metavar="NAME", help="this metric only (default: all)")
    add_place(parser)


def run(options: argparse.Namespace) -> int:
    """Store the mark, and say so."""
    from etude.errors import InputError
    from etude.store.database import open_store

    with open_store(options.store) as store:
        metrics = store.metrics(options.test)
        if not metrics:
            raise InputError(f"{store.where}: has no test {options.test!r}; etude store tests names them")
        if options.metric is not None and options.metric not in metrics:
            raise InputError(f"{options.test}: has no metric {options.metric!r}; it has {', '.join(metrics)}")
        mark = store.mark(options.test, options.metric, options.commit, options.why)
    what = mark.metric or "all its metrics"
    print(f"Marked: {mark.test} ({what}) is expected to change with commit {mark.commit}: {mark.why}")
    return 0
