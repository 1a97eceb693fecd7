"""How a verdict is to be passed, beyond what the experiment itself was asked for; which metrics are shown."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from etude.analysis.subject import Subject
from etude.analysis.warnings import Thresholds
from etude.results.model import is_printed


@dataclass(frozen=True)
class VerdictOptions:
    """The choices of whoever asks for a verdict; the defaults are those at the end of `etude bench`."""

    confidence: float = 0.95
    """Of all intervals."""
    thresholds: Thresholds = field(default_factory=Thresholds)
    silent: Collection[str] = ()
    """Kinds of warnings that are not wanted."""
    watched: tuple[str, ...] = ()
    """Metrics that are looked at for a trend beside the primary one; those that a script's WATCH names are, too."""
    reference: str | None = None
    """Test that all others are compared with; None: as the experiment was made."""
    same_within: float | None = None
    """Relative margin within which tests count as the same; None: not asked."""
    secondary: tuple[str, ...] | None = None
    """Other metrics that are compared too, with `full`; None: all."""
    every_outlier: bool = False
    """Also the outliers that the monitor does not explain, or whose trials are shorter than its interval."""
    full: bool = False
    """Also what takes some time: secondary metrics."""


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
