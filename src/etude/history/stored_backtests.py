"""Backtests in the store: which of them still speak of a history that has grown since."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from etude.errors import EDITED
from etude.history.backtest import Backtest, Rate, digest_of
from etude.history.metric_history import Course
from etude.history.rules import Rule

GROWTH = 1.5
"""A history so many times as long as it was needs another backtest."""


class Notes(Protocol):
    """What of a store is needed."""

    def remember(self, name: str, text: str) -> None: ...
    def remembered(self, name: str) -> str | None: ...


@dataclass(frozen=True)
class StoredBacktest:
    """What a backtest found, as it was stored."""

    results: int
    """Of the history then."""
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
    text = notes.remembered(_name(rule, course))
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
