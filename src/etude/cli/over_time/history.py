"""`etude history`: steps in a test's stored results, and alerts."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from etude.cli.over_time.history_alerts import alerts
from etude.errors import InputError, UsageError
from etude.figures.history import history
from etude.figures.save import check_format, save
from etude.figures.style import Style
from etude.history.metric_history import Course, courses
from etude.present.page.content import write
from etude.present.sections.history import history_blocks, history_page
from etude.present.sentences.history import to_document
from etude.present.terminal import Terminal
from etude.present.to_json import print_json
from etude.present.to_terminal import show
from etude.store.database import open_store


def run(options: argparse.Namespace) -> int:
    """Read the store, find the steps, show them."""
    _check(options)
    with open_store(options.store) as store:
        entries = store.history(options.test, options.metric, machine=options.machine, branch=options.branch)
        found = courses(entries, store.marks())
        _check_found(found, options)
        if options.rules is not None:
            return alerts(found, store, options)
    if options.json:
        print_json([to_document(course) for course in found])
    else:
        screen = Terminal()
        show(history_blocks(found, screen.width), screen)
    draw(found, options)
    return 0


def draw(found: Sequence[Course], options: argparse.Namespace) -> None:
    """The figure and the page, where they are asked for."""
    if options.figure:
        save(history(found), options.figure, Style(width=6.5))
    if options.page:
        write(Path(options.page), history_page(found))


def _check(options: argparse.Namespace) -> None:
    if options.figure:
        check_format(options.figure)
    if options.rules is None and (options.backtest or options.gate or options.confirm):
        raise UsageError("--backtest, --gate and --confirm are about rules: name their file with --rules")
    if options.backtest and (options.gate or options.confirm):
        raise UsageError("--backtest is run by itself; then --gate")


def _check_found(found: Sequence[Course], options: argparse.Namespace) -> None:
    if not found:
        chosen = [f"{n} {v}" for n in ("machine", "branch") if (v := getattr(options, n)) is not None]
        where = f" for {' and '.join(chosen)}" if chosen else ""
        raise InputError(
            f"{options.test}: the store has no result with values{where}; etude store list names all"
        )
