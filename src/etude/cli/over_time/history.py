"""`etude history` and `etude history mark`: steps in a test's stored results, alerts, and steps that are expected."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from etude.analysis.verdict import verdict
from etude.errors import InputError, UsageError
from etude.experiment.plan import make_plan
from etude.experiment.run import run as run_plan
from etude.experiment.test import make_test
from etude.figures.history import history
from etude.figures.save import check_format, save
from etude.figures.style import Style
from etude.history.backtest import (
    LEAST,
    Alert,
    Rule,
    alerts_of,
    backtest,
    borne_out,
    is_current,
    keep,
    read_rules,
)
from etude.history.metric_history import Course, stored_courses
from etude.present.page.content import write
from etude.present.progress.bench import Display
from etude.present.sections.history import history_blocks, history_page
from etude.present.sentences.history import (
    alert_line,
    backtest_lines,
    known_line,
    to_document,
    too_short_line,
)
from etude.present.terminal import Terminal, show
from etude.present.to_json import print_json
from etude.stats.ratio import Ratio
from etude.store.database import Store, open_store
from etude.store.queries import unknown_test


def run(options: argparse.Namespace) -> int:
    """Read the store, find the steps, show them."""
    _check(options)
    with open_store(options.store) as store:
        found = stored_courses(
            store, options.test, options.metric, machine=options.machine, branch=options.branch
        )
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


def run_mark(options: argparse.Namespace) -> int:
    """Store the mark, and say so."""
    with open_store(options.store) as store:
        metrics = store.metrics(options.test)
        if not metrics:
            raise unknown_test(store.where, options.test, store.tests())
        if options.metric is not None and options.metric not in metrics:
            raise InputError(f"{options.test}: has no metric {options.metric!r}; it has {', '.join(metrics)}")
        mark = store.mark(options.test, options.metric, options.commit, options.why)
    what = mark.metric or "all its metrics"
    print(f"Marked: {mark.test} ({what}) is expected to change with commit {mark.commit}: {mark.why}")
    return 0


def alerts(found: Sequence[Course], store: Store, options: argparse.Namespace) -> int:
    """Show what the rules say of these courses; 1 where --gate is given and an alert stands."""
    rules = read_rules(Path(options.rules))
    about = [(rule, course) for course in found for rule in rules if rule.is_about(course)]
    if not about:
        raise InputError(f"{options.rules}: no rule is about {found[0].test}, {found[0].metric}")
    screen = Terminal()
    if options.backtest:
        _backtest(about, store, screen)
        return 0
    if options.gate:
        _check_backtests(about, store, screen, options)
    raised = [alert for course in found for alert in alerts_of(rules, course)]
    if options.confirm and raised:
        raised = _confirmed(raised, options.confirm, screen)
    for alert in raised:
        screen.say(alert_line(alert))
    if not raised:
        screen.say(f"No alert by {', '.join(dict.fromkeys(rule.name for rule, _ in about))}.")
    return 1 if options.gate and raised else 0


def _backtest(about: Sequence[tuple[Rule, Course]], store: Store, screen: Terminal) -> None:
    done = 0
    for rule, course in about:
        if len(course.entries) < LEAST:
            screen.say(too_short_line(rule, course))
            continue
        found = backtest(rule, course)
        for line in backtest_lines(found, course):
            screen.say(line)
        keep(store, found, course)
        done += 1
    if not done:
        raise InputError(f"no machine has the {LEAST} results that a backtest needs")


def _check_backtests(
    about: Sequence[tuple[Rule, Course]], store: Store, screen: Terminal, options: argparse.Namespace
) -> None:
    """Refuse a rule of which nobody knows how often it is wrong here; say how often the others are."""
    for rule, course in about:
        known = is_current(store, rule, course)
        if isinstance(known, str):
            raise UsageError(
                f"rule {rule.name} may not gate {course.test} on {course.machine.name}: it {known}; "
                f"run etude history {course.test} --rules {options.rules} --backtest and look at its rates"
            )
        screen.say(known_line(rule, known, course))


def _confirmed(raised: Sequence[Alert], commands: Sequence[str], screen: Terminal) -> list[Alert]:
    """Compare afresh; alerts of the newest step stand unless that refutes them. Older ones are left alone."""
    newest = max(raised, key=lambda a: a.change.first.committed or a.change.first.measured).change.first
    ratio = _compare_afresh(commands, newest.metric)
    afresh = f"HEAD/BASE is {ratio.ratio:.4g} ({ratio.low:.4g} to {ratio.high:.4g})"
    heads = {
        "confirmed": "Confirmed by a new comparison",
        "refuted": "Not confirmed",
        "open": "Undecided by the new comparison, and kept",
    }
    stand = []
    for alert in raised:
        same = (alert.change.first.commit, alert.change.first.test) == (newest.commit, newest.test)
        word = borne_out(alert.change, ratio, alert.rule) if same else None
        if word is not None:
            screen.say(f"{heads[word]}: {alert_line(alert)} Afresh, {afresh}.")
        if word != "refuted":
            stand.append(alert)
    return stand


def _compare_afresh(commands: Sequence[str], metric: str) -> Ratio:
    """`etude bench` of both, on this machine; its progress goes to standard error."""
    tests = [make_test(command, name=name) for command, name in zip(commands, ("BASE", "HEAD"), strict=True)]
    with closing(Display(sys.stderr)) as display:
        outcome = run_plan(make_plan(tests), None, observe=display.observe, verb="bench")
    found = verdict(outcome.results)
    comparison = found.comparisons[0]
    known = {found.primary: comparison.ratio} | {s.metric: s.ratio for s in comparison.secondary}
    if metric not in known:
        raise UsageError(f"--confirm cannot measure {metric}; it measures {', '.join(known)}")
    return known[metric]
