"""`etude history`: steps in a test's stored results, and alerts."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from etude.cli.over_time.history_alerts import alerts
from etude.errors import InputError, UsageError
from etude.figures.history import history
from etude.figures.save import check_format, save
from etude.figures.style import Style
from etude.history.metric_history import Course, courses
from etude.present.history_text import heading, lines, to_document
from etude.present.page.history import history_page
from etude.present.page.write import write
from etude.present.sparkline import sparkline
from etude.present.terminal import Terminal
from etude.store.database import open_store

STEP = "▲"


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
        print(json.dumps([to_document(course) for course in found], ensure_ascii=False, indent=1))
    else:
        show(found)
    draw(found, options)
    return 0


def show(found: Sequence[Course]) -> None:
    """Each course: its heading, a sparkline with its steps marked, and its lines."""
    screen = Terminal()
    for course in found:
        screen.say(heading(course))
        if len(course.entries) > 1:
            for line in spark(course, min((screen.width or 101) - 1, 100)):
                screen.say(line)
        for line in lines(course):
            screen.say(line)
        screen.say()
    if len(found) > 1:
        screen.say(
            f"{len(found)} machines: each has its own history, since levels of different machines do not mix."
        )


def spark(course: Course, width: int) -> list[str]:
    """Its levels as bars, and below them where steps begin."""
    values = [course.value(float(level)) for level in course.levels]
    bars, _, each = sparkline(values, frozenset(), width)
    marks = [" "] * len(bars)
    for change in course.changes:
        marks[change.step.at // each] = STEP
    below = "".join(marks).rstrip()
    return [bars, below] if below else [bars]


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
