"""Rules that turn steps into alerts: how large, how sure, how lasting, of which tests."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

from etude.errors import InputError
from etude.history.metric_history import Change, Course
from etude.stats.changes import Step
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
        raise InputError(f"{path}: has no rule; write one as [rule.NAME] (docs/history.md)")
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
