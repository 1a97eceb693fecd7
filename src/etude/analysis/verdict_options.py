"""Options of a verdict beyond the experiment's own request; and the metrics that are shown."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from etude.analysis.subject import Subject
from etude.analysis.warnings import Thresholds
from etude.results.model import is_printed


@dataclass(frozen=True)
class VerdictOptions:
    """Options of a verdict; the defaults are those at the end of `etude bench`."""

    confidence: float = 0.95
    """Confidence of all intervals."""
    thresholds: Thresholds = field(default_factory=Thresholds)
    silent: Collection[str] = ()
    """Kinds of warnings to leave out."""
    watched: tuple[str, ...] = ()
    """Further metrics to check for a trend, besides the primary one and those of a script's WATCH."""
    reference: str | None = None
    """Baseline of all comparisons; None: as the experiment defines."""
    same_within: float | None = None
    """Relative margin within which tests count as the same; None: no equivalence test."""
    secondary: tuple[str, ...] | None = None
    """Other metrics that are compared too, with `full`; None: all."""
    every_outlier: bool = False
    """True: also report outliers that the monitor does not explain or is too coarse for."""
    full: bool = False
    """True: also compute what takes some time, such as secondary metrics."""


ALWAYS = ("elapsed", "user", "system", "peak_memory")
MOST = 12
"""Maximum number of metrics that are shown by default."""


def usual_metrics(subject: Subject) -> list[str]:
    """The primary metric, time, peak memory, and what the program itself reported; not counters and probes."""
    found = dict.fromkeys(metric for series in subject.tests for metric in series.columns)
    return usual_names(subject.asked.primary, found)


def usual_names(primary: str, found: Collection[str]) -> list[str]:
    """Those of these metrics that are shown by default, with the primary one in any case."""
    wanted = dict.fromkeys((primary, *ALWAYS, *filter(is_printed, found)))
    return [metric for metric in wanted if metric in found or metric == primary][:MOST]


def is_shown(metric: str) -> bool:
    """True unless the metric is a counter or a probe's, which are shown only on request."""
    return metric in ALWAYS or is_printed(metric)
