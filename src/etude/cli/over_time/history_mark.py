"""`etude history mark`: mark a step as expected."""

from __future__ import annotations

import argparse

from etude.errors import InputError
from etude.store.database import open_store


def run(options: argparse.Namespace) -> int:
    """Store the mark, and say so."""
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
