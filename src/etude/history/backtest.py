"""Rules of alerts, and their rate of false alarms: it is replayed over a history as it grew, and over ones resampled
from it.

Flat histories are made of the rests around the levels and the drift, in blocks in random order, so that their
distribution, the dependence of neighbours and what a day's results have in common stay; into others of these a step of
the size that the rule claims to see is put.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from etude.errors import EDITED, InputError
from etude.history.metric_history import Change, Course, Floats, course_of, days_of, is_worse
from etude.stats.changes import FEWEST, Step, fit_steps
from etude.stats.intervals import Interval
from etude.stats.ratio import Ratio
from etude.stats.samples import exponential
from etude.store.entry import Entry
from etude.toml_config import Section, document

Direction = Literal["worse", "better", "either"]
KEYS = ("test", "metric", "direction", "at_least", "p", "persist", "sees", "within")


@dataclass(frozen=True)
class Rule:
    """One rule. A step that begins where the machine changes, and one that is marked, raises no alert."""

    name: str
    test: str = "*"
    """Tests that the rule is for; * and ? are wildcards."""
    metric: str = "elapsed"
    direction: Direction = "worse"
    at_least: float = 0.02
    """Relative size of a step (in the unit of metrics that reach zero)."""
    p: float = 0.01
    """The step's p-value is at most this."""
    persist: int = 4
    """Number of results that must have the new level."""
    sees: float = 0.05
    """The size that the rule claims to see: its backtest injects steps of it."""
    within: int = 20
    """A step that is not seen among so many results of the new level counts as missed."""

    @property
    def digest(self) -> str:
        """Digest of all settings that decide."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:16]

    def is_about(self, course: Course) -> bool:
        """True if the rule is for this test and metric."""
        return self.metric == course.metric and fnmatchcase(course.test, self.test)

    def fires(self, change: Change, results: int) -> bool:
        """True if a step in a history of `results` results is an alert; marks and machines are not considered."""
        return self.objects_to(change.step, change.size, change.worse, results)

    def objects_to(self, step: Step, size: float, worse: bool | None, results: int) -> bool:
        """The same of a step whose size was made relative: one that is shown, large, sure and lasting enough."""
        right = self.direction == "either" or worse is None or worse == (self.direction == "worse")
        sure = step.shown and step.p <= self.p
        return right and sure and abs(size) >= self.at_least and results - step.at >= self.persist


@dataclass(frozen=True)
class Alert:
    """A step that a rule objects to."""

    rule: Rule
    course: Course
    change: Change


def read_rules(path: Path) -> tuple[Rule, ...]:
    """The tables `[rule.NAME]` of a TOML file. Raises InputError, with its line, for what is no rule."""
    whole = document(path)
    whole.only(("rule",))
    rules = whole.section("rule")
    found = tuple(_rule(rules.section(name), name) for name in rules.values)
    if not found:
        raise InputError(f"{path}: has no rule; write one as [rule.NAME] (docs/howto/history.md)")
    return found


def alerts_of(rules: Sequence[Rule], course: Course) -> tuple[Alert, ...]:
    """Alerts of the rules in a course: unexpected steps of the code, or of unknown cause."""
    return tuple(
        Alert(rule, course, change)
        for rule in rules
        if rule.is_about(course)
        for change in course.changes
        if change.cause != "machine" and change.expected is None and rule.fires(change, len(course.entries))
    )


def _rule(section: Section, name: str) -> Rule:
    section.only(KEYS)
    usual = Rule(name)
    directions = ("worse", "better", "either")
    direction: Direction = section.one_of("direction", directions, usual.direction)  # type: ignore[assignment]
    at_least = section.share("at_least", usual.at_least) or usual.at_least
    sees = section.share("sees", max(usual.sees, 2 * at_least))
    if sees is None or sees <= at_least:
        section.fail(
            "sees", f"[{section.name}] sees: expected more than at_least, or half of such steps are missed"
        )
    return Rule(
        name,
        section.text_at("test", usual.test),
        section.text_at("metric", usual.metric),
        direction,
        at_least,
        section.share("p", usual.p) or usual.p,
        _count(section, "persist", usual.persist),
        sees,
        _count(section, "within", usual.within),
    )


def _count(section: Section, key: str, usual: int) -> int:
    value = section.values.get(key, usual)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 1000:
        section.fail(key, f"[{section.name}] {key} is {value!r}: expected a whole number from 1 to 1000")
    return value


Days = NDArray[np.intp]

HISTORIES = 100
"""Flat ones that are made, and as many with a step."""

LEAST = 20
"""Results of a history that can be replayed; fewer say nothing of how they vary."""

SEED = 14

SLACK = 3
"""Results by which the place of one step is seen differently while it is fresh."""


@dataclass(frozen=True)
class Rate:
    """A proportion: `count` of `of`."""

    count: int
    of: int

    @property
    def share(self) -> float:
        """The proportion as a fraction."""
        return self.count / self.of if self.of else math.nan

    @property
    def interval(self) -> Interval:
        """Confidence interval at 95 %. Source: Clopper and Pearson (1934), exact."""
        from scipy.special import betaincinv

        k, n = self.count, self.of
        low = float(betaincinv(k, n - k + 1, 0.025)) if k else 0.0
        high = float(betaincinv(k + 1, n - k, 0.975)) if k < n else 1.0
        return Interval(low, high)


@dataclass(frozen=True)
class Replayed:
    """One alert as it would have come."""

    change: Change
    after: int
    """Results of the new level that there were when it came."""
    stays: bool
    """True if the whole history has a step there too."""


@dataclass(frozen=True)
class Backtest:
    """The rates of a rule on one course."""

    rule: Rule
    results: int
    false: Rate
    """Flat histories, as long as this one, in which it raised an alert at any time."""
    missed: Rate
    """Steps of the size it claims to see that it did not see in time."""
    alerts: tuple[Replayed, ...]
    """Alerts of the history itself, as it grew; expected ones and the machine's are not among them."""
    unseen: int
    """Steps of the whole history that the rule is about and that raised none while it grew."""


def backtest(rule: Rule, course: Course, *, histories: int = HISTORIES) -> Backtest:
    """Replay the rule. Raises ValueError for a course of fewer than `LEAST` results."""
    if len(course.entries) < LEAST:
        raise ValueError(f"a backtest needs {LEAST} results or more, not {len(course.entries)}")
    random = np.random.default_rng(SEED)
    rest, days = course.levels - course.found.fitted, np.array(days_of(course.entries))
    flat = [_shuffled(rest, days, course.found.noise.dependence, random) for _ in range(2 * histories)]
    false = sum(_alarms(rule, course, *made) for made in flat[:histories])
    missed = sum(not _sees(rule, course, *made, random) for made in flat[histories:])
    alerts, unseen = _replayed(rule, course)
    return Backtest(
        rule, len(course.entries), Rate(false, histories), Rate(missed, histories), alerts, unseen
    )


def digest_of(entries: Sequence[Entry]) -> str:
    """Digest of results and their values, which identifies the history of a backtest."""
    found = hashlib.sha256()
    for entry in entries:
        found.update(repr((entry.test, entry.metric, entry.machine.name, entry.values)).encode())
    return found.hexdigest()[:16]


def _shuffled(
    rest: Floats, days: Days, dependence: float, random: np.random.Generator
) -> tuple[Floats, Days]:
    """Blocks of the series, closed to a ring, from random places, and the days that they make of it.

    Whole days where results share one. Source: Politis and Romano (1992).
    """
    n = rest.size
    edges = np.flatnonzero(np.diff(days)) + 1
    length = 1 if dependence < 0.1 else min(n, max(2, round(n ** (1 / 3) / (1.0 - dependence))))
    if 0 < edges.size < n - 1:
        begins = np.concatenate(([0], edges))
        sizes = np.diff(np.concatenate((begins, [n])))
        chosen = random.integers(0, begins.size, n)
        parts = [np.arange(begins[day], begins[day] + sizes[day]) for day in chosen]
        places = np.concatenate(parts)[:n]
        drawn = np.repeat(np.arange(n), sizes[chosen])[:n]
        return rest[places], drawn
    starts = random.integers(0, n, -(-n // length))
    places = (starts[:, None] + np.arange(length)[None, :]).ravel()[:n] % n
    return rest[places], days


def _alarms(rule: Rule, course: Course, levels: Floats, days: Days) -> bool:
    """True if the rule raises an alert at any time while a flat history grows."""
    return any(_fires(rule, course, levels[:n], days[:n]) for n in range(FEWEST, levels.size + 1))


def _sees(rule: Rule, course: Course, levels: Floats, days: Days, random: np.random.Generator) -> bool:
    """True if the rule detects in time a step that begins at a random place of the later half."""
    n = levels.size
    at = int(random.integers(n // 2, max(n // 2 + 1, n - rule.within + 1)))
    stepping = levels.copy()
    stepping[at:] += _size(rule, course)
    ends = range(at + rule.persist, min(n, at + rule.within) + 1)
    return any(_fires(rule, course, stepping[:end], days[:end]) for end in ends)


def _size(rule: Rule, course: Course) -> float:
    """Size of the injected step, on the course's levels, in the direction of the rule."""
    kind = course.entries[0].kind
    up = is_worse(kind, 1.0) is not False
    sign = 1.0 if up == (rule.direction != "better") else -1.0
    return math.log1p(sign * rule.sees) if course.relative else sign * rule.sees


def _fires(rule: Rule, course: Course, levels: Floats, days: Days) -> bool:
    """`Rule.fires` of levels alone, without the words around a change: this is asked ten thousand times."""
    kind = course.entries[0].kind
    for step in fit_steps(levels, blocks=days).steps:
        size = exponential(step.size) - 1.0 if course.relative else step.size
        if rule.objects_to(step, size, is_worse(kind, size), levels.size):
            return True
    return False


def _replayed(rule: Rule, course: Course) -> tuple[tuple[Replayed, ...], int]:
    """The alerts of the history itself, each once, and how many of its steps raised none."""
    there = [c for c in course.changes if _counts(rule, c)]
    found: list[Replayed] = []
    days = np.array(days_of(course.entries))
    for n in range(FEWEST, len(course.entries) + 1):
        if not _fires(rule, course, course.levels[:n], days[:n]):
            continue
        grown = course_of(course.entries[:n])
        for change in grown.changes:
            if not rule.fires(change, n) or change.cause == "machine":
                continue
            if any(_same(change, known.change) for known in found):
                continue
            whole = [c for c in course.changes if _same(change, c)]
            if any(c.expected is not None or c.cause == "machine" for c in whole):
                continue
            found.append(Replayed(change, n - change.step.at, bool(whole)))
    unseen = sum(not any(_same(c, known.change) for known in found) for c in there)
    return tuple(found), unseen


def _counts(rule: Rule, change: Change) -> bool:
    return (
        change.cause != "machine"
        and change.expected is None
        and rule.fires(change, change.step.at + rule.persist)
    )


def _same(one: Change, other: Change) -> bool:
    """True if both are one step that was located differently as the history grew."""
    return one.step.earliest - SLACK <= other.step.at <= one.step.latest + SLACK and (one.size > 0.0) == (
        other.size > 0.0
    )


GROWTH = 1.5
"""A history so many times as long as it was needs another backtest."""


class Notes(Protocol):
    """The part of a store that is needed here."""

    def remember(self, name: str, text: str) -> None: ...
    def recall(self, name: str) -> str | None: ...


@dataclass(frozen=True)
class StoredBacktest:
    """A backtest's result as it was stored."""

    results: int
    """Number of results in the history at that time."""
    false: Rate
    missed: Rate


def keep(notes: Notes, found: Backtest, course: Course) -> None:
    """Store it, in place of an older one of the same rule and history."""
    document = {
        "results": found.results,
        "history": digest_of(course.entries[: found.results]),
        "false": [found.false.count, found.false.of],
        "missed": [found.missed.count, found.missed.of],
    }
    notes.remember(_name(found.rule, course), json.dumps(document))


def is_current(notes: Notes, rule: Rule, course: Course) -> StoredBacktest | str:
    """The backtest that holds for this rule and history; or why there is none, in words."""
    text = notes.recall(_name(rule, course))
    if text is None:
        return "has no backtest on this history, or was changed since"
    try:
        return _current(json.loads(text), course)
    except EDITED:
        return "has a backtest that cannot be read"


def _current(document: Mapping[str, Any], course: Course) -> StoredBacktest | str:
    count = int(document["results"])
    if digest_of(course.entries[:count]) != document["history"]:
        return f"was tested on other results than the first {count} that are stored now"
    if len(course.entries) > GROWTH * count:
        return f"was tested on {count} results; there are {len(course.entries)} now"
    return StoredBacktest(count, Rate(*document["false"]), Rate(*document["missed"]))


def _name(rule: Rule, course: Course) -> str:
    of = hashlib.sha256(repr((course.test, course.metric, course.unit, course.machine.name)).encode())
    return f"backtest {rule.digest} {of.hexdigest()[:32]}"


Word = Literal["confirmed", "refuted", "open"]


def borne_out(change: Change, ratio: Ratio, rule: Rule) -> Word:
    """*confirmed*: the ratio is surely on the step's side of 1, and may be as far from it as the rule asks. *refuted*:
    it is surely not so far on that side. *open*: its interval cannot tell, and what was seen before stands."""
    low, high = (ratio.low, ratio.high) if change.size > 0.0 else (2.0 - ratio.high, 2.0 - ratio.low)
    if high - 1.0 < rule.at_least:
        return "refuted"
    return "confirmed" if low > 1.0 else "open"
