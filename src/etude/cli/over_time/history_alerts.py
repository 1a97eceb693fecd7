"""`etude history --rules`: alerts; how often the rules are wrong; and the gate, which asks for that first."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from etude.analysis.verdict import verdict
from etude.errors import InputError, UsageError
from etude.experiment.plan_defaults import make_plan
from etude.experiment.run import run
from etude.experiment.test import make_test
from etude.history.backtest import LEAST, Backtest, Rate, backtest, borne_out, is_current, keep
from etude.history.metric_history import Course
from etude.history.rules import Alert, Rule, alerts_of, read_rules
from etude.present.history_text import change_line
from etude.present.live_display import Display
from etude.present.terminal import Terminal
from etude.stats.compare import Ratio
from etude.store.database import Store
from etude.units.formatting import percent


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
        screen.say(_alert_line(alert))
    if not raised:
        screen.say(f"No alert by {', '.join(dict.fromkeys(rule.name for rule, _ in about))}.")
    return 1 if options.gate and raised else 0


def _alert_line(alert: Alert) -> str:
    return f"ALERT by {alert.rule.name}, on {alert.course.machine.name}: {change_line(alert.course, alert.change)}"


def _backtest(about: Sequence[tuple[Rule, Course]], store: Store, screen: Terminal) -> None:
    done = 0
    for rule, course in about:
        if len(course.entries) < LEAST:
            screen.say(_too_short(rule, course))
            continue
        found = backtest(rule, course)
        for line in _backtest_lines(found, course):
            screen.say(line)
        keep(store, found, course)
        done += 1
    if not done:
        raise InputError(f"no machine has the {LEAST} results that a backtest needs")


def _backtest_lines(found: Backtest, course: Course) -> list[str]:
    rule = found.rule
    lines = [
        f"{rule.name}, on {course.machine.name}, {found.results} results:",
        f"  False alarms: in {_rate(found.false)} flat histories as long as this one (its rests around its levels, "
        "in blocks in random order), replayed result by result.",
        f"  Misses: {_rate(found.missed)} injected steps of {course.size_text(rule.sees)} were not seen within "
        f"{rule.within} results.",
    ]
    instead = " (which show a drift)" if course.drift is not None else ""
    for each in found.alerts:
        stays = "" if each.stays else f"; no longer found with the results since{instead}"
        lines.append(
            f"  As it grew: alert after {each.after} results of the step of "
            f"{course.size_text(each.change.size)} at {each.change.first}{stays}."
        )
    if found.unseen:
        lines.append(f"  {found.unseen} of its steps raised none while it grew.")
    return lines


def _rate(rate: Rate) -> str:
    """`4 of 100 (4.0 %, 95 %: 1.1 % to 9.9 %)`."""
    ends = rate.interval
    return f"{rate.count} of {rate.of} ({percent(rate.share)}, 95 %: {percent(ends.low)} to {percent(ends.high)})"


def _too_short(rule: Rule, course: Course) -> str:
    return (
        f"{rule.name}, on {course.machine.name}: {len(course.entries)} results are too few for a backtest; "
        f"it needs {LEAST}."
    )


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
        screen.say(
            f"{rule.name}, on {course.machine.name}: false alarms in {_rate(known.false)} flat histories, misses "
            f"{_rate(known.missed)} steps of {course.size_text(rule.sees)} within {rule.within} results, by its "
            f"backtest on {known.results} results."
        )


def _confirmed(raised: Sequence[Alert], commands: Sequence[str], screen: Terminal) -> list[Alert]:
    """Compare afresh; alerts of the newest step stand unless that refutes them. Older ones are left alone."""
    newest = max(raised, key=lambda a: a.change.first.committed or a.change.first.measured).change.first
    ratio = _compare_afresh(commands, newest.metric)
    afresh = f"HEAD/BASE is {ratio.ratio:.4g} ({ratio.low:.4g} to {ratio.high:.4g})"
    heads = {
        "confirmed": "Confirmed afresh",
        "refuted": "Not confirmed",
        "open": "Cannot be told afresh, and stands",
    }
    stand = []
    for alert in raised:
        same = (alert.change.first.commit, alert.change.first.test) == (newest.commit, newest.test)
        word = borne_out(alert.change, ratio, alert.rule) if same else None
        if word is not None:
            screen.say(f"{heads[word]}: {_alert_line(alert)} Afresh, {afresh}.")
        if word != "refuted":
            stand.append(alert)
    return stand


def _compare_afresh(commands: Sequence[str], metric: str) -> Ratio:
    """`etude bench` of both, on this machine; its progress goes to standard error."""
    display = Display(sys.stderr)
    try:
        tests = [
            make_test(command, name=name) for command, name in zip(commands, ("BASE", "HEAD"), strict=True)
        ]
        outcome = run(make_plan(tests), None, observe=display.observe, verb="bench")
    finally:
        display.close()
    found = verdict(outcome.results)
    comparison = found.comparisons[0]
    known = {found.primary: comparison.ratio} | {s.metric: s.ratio for s in comparison.secondary}
    if metric not in known:
        raise UsageError(f"--confirm cannot measure {metric}; it measures {', '.join(known)}")
    return known[metric]
