"""Which metrics are shown unless others, or all, are asked for."""

from __future__ import annotations

from collections.abc import Collection

from etude.analysis.subject import Subject
from etude.results.model import is_printed

ALWAYS = ("elapsed", "user", "system", "peak_memory")
MOST = 12
"""Metrics that are shown unasked."""


def usual_metrics(subject: Subject) -> list[str]:
    """The primary metric, time, peak memory, and what the program itself reported; not counters and probes."""
    found = dict.fromkeys(metric for series in subject.tests for metric in series.columns)
    return usual_names(subject.asked.primary, found)


def usual_names(primary: str, found: Collection[str]) -> list[str]:
    """Those of these metrics that are shown unasked; the primary one in any case."""
    wanted = dict.fromkeys((primary, *ALWAYS, *filter(is_printed, found)))
    return [metric for metric in wanted if metric in found or metric == primary][:MOST]


def is_shown(metric: str) -> bool:
    """Whether it is no counter and no probe's: those are shown only where they are asked for."""
    return metric in ALWAYS or is_printed(metric)
