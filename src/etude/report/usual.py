"""Which metrics are shown unless others, or all, are asked for."""

from __future__ import annotations

from collections.abc import Collection

from etude.report.subject import Subject
from etude.results.model import METRICS

ALWAYS = ("elapsed", "user", "system", "peak_memory")
OF_PROBES = (
    "disk_",
    "memory_",
    "network_",
    "pressure_",
    "interrupts_",
    "energy_",
    "others_",
    "loopback_",
    "machine_",
)
"""What the names of our probes' metrics begin with."""

MOST = 12
"""Metrics that are shown unasked."""


def usual_metrics(subject: Subject) -> list[str]:
    """The primary metric, time, peak memory, and what the program itself reported; not counters and probes."""
    found = dict.fromkeys(metric for series in subject.tests for metric in series.columns)
    return usual_names(subject.asked.primary, found)


def usual_names(primary: str, found: Collection[str]) -> list[str]:
    """Those of these metrics that are shown unasked; the primary one in any case."""
    own = [metric for metric in found if metric not in METRICS and not metric.startswith(OF_PROBES)]
    wanted = dict.fromkeys((primary, *ALWAYS, *own))
    return [metric for metric in wanted if metric in found or metric == primary][:MOST]
