"""All that a report says, as plain data: what the writers of HTML, Markdown and LaTeX set down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from etude.present.page.answers import Answer
from etude.present.page.expectations import Expectation
from etude.present.section import Section, Table


@dataclass(frozen=True)
class Warned:
    """A warning with where it leads."""

    anchor: str
    kind: str
    meaning: str
    """Meaning of the warning's kind."""
    test: str
    text: str
    advice: str
    chart: str
    """The anchor of the test that it speaks of; empty where it is about the whole."""
    trials: tuple[int, ...]
    """Trials that the warning names."""


@dataclass(frozen=True)
class TestSection:
    """One test with its charts, and what they show in words."""

    anchor: str
    test: str
    line: str
    warnings: tuple[Warned, ...]


@dataclass(frozen=True)
class Snapshot:
    """The machine of one result: members and values."""

    label: str
    members: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Source:
    """The measured program: a script's text, or a command line."""

    title: str
    text: str


@dataclass(frozen=True, eq=False)
class Content:
    """One report."""

    title: str
    made: str
    version: str
    labels: tuple[str, ...]
    headline: tuple[str, ...]
    answers: tuple[Answer, ...]
    expectations: tuple[Expectation, ...]
    comparisons: Table
    tests: Table
    metrics: Table
    summaries: tuple[Table, ...]
    warnings: tuple[Warned, ...]
    shown: tuple[TestSection, ...]
    snapshots: tuple[Snapshot, ...]
    differences: tuple[Table, ...]
    explained: tuple[tuple[str, str], ...]
    sources: tuple[Source, ...]
    data: Mapping[str, Any]
    details: tuple[str, ...]
    """Sentences on the details of each comparison."""
    parts: tuple[Section, ...] = ()
    """Sections of searches and surfaces."""
    beside: tuple[Section, ...] = ()
    """Sections on what the monitor saw beside the trials."""
