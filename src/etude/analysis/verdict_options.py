"""Options of a verdict beyond the experiment's own request: thresholds of warnings, and the metrics that are shown."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import Field, dataclass, field, fields
from typing import Any

from etude.analysis.subject import Subject
from etude.errors import UsageError
from etude.results.model import is_printed
from etude.units.parsing import share, size

BY = ("theil-sen", "least-squares")


def _fraction(text: str) -> float:
    return _in_range(share(text), lambda v: v > 0)


def _level(text: str) -> float:
    return _in_range(_fraction(text), lambda v: v < 1)


def _count(text: str) -> float:
    return _in_range(float(text), lambda v: v > 0)


def _whole(text: str) -> int:
    return int(_in_range(int(text), lambda v: v >= 0))


def _size(text: str) -> float:
    return float(size(text, least=0))


def _choice(text: str) -> str:
    if text not in BY:
        raise ValueError
    return text


def _in_range(value: float, good: Callable[[float], bool]) -> float:
    if not (math.isfinite(value) and good(value)):
        raise ValueError
    return value


_EXPECTED: dict[Callable[[str], Any], str] = {
    _fraction: "a fraction above 0 such as 0.05 or 5%",
    _level: "a level between 0 and 1 such as 0.01 or 1%",
    _count: "a number above 0",
    _whole: "a whole number of 0 or more",
    _size: "a size such as 1MiB",
    _choice: " or ".join(BY),
}


def _threshold(default: Any, read: Callable[[str], Any], meaning: str) -> Any:
    return field(default=default, metadata={"read": read, "meaning": meaning})


@dataclass(frozen=True)
class Thresholds:
    """Thresholds of warnings. Shares and levels are fractions, sizes bytes."""

    trend: float = _threshold(0.01, _level, "p of Kendall's test below which there is a trend")
    """Threshold of drift, leak and never-steady."""
    drift: float = _threshold(0.02, _fraction, "change over the series, of its median, from which it drifts")
    drift_by: str = _threshold("theil-sen", _choice, "how drift is looked for: theil-sen or least-squares")
    leak: float = _threshold(
        float(1 << 20), _size, "loss of free memory over the series that is not reported"
    )
    others: float = _threshold(
        0.01,
        _fraction,
        "CPU time of other processes, of the elapsed time, that is reported (probe others)",
    )
    warm_up: float = _threshold(
        0.01, _fraction, "shift, as a share of the median, from which trials form a level shift"
    )
    warm_up_level: float = _threshold(
        0.03, _level, "chance that a clean series splits as clearly (below 30 trials)"
    )
    warm_up_penalty: float = _threshold(15.0, _count, "cost of a level shift, in log n (from 30 trials on)")
    few: int = _threshold(10, _whole, "minimum of included trials")
    outlier_distance: float = _threshold(
        0.01, _fraction, "distance from the median, of it, below which a value is no outlier"
    )
    outlier_share: float = _threshold(
        0.1, _fraction, "share of the trials above which far values are a distribution, no outliers"
    )
    outliers: float = _threshold(0.05, _level, "level of the generalised ESD test")
    bimodal: float = _threshold(
        0.01, _fraction, "distance of two groups, as a share of the median, that is reported"
    )
    autocorrelation: float = _threshold(
        0.01, _level, "one-sided level at which consecutive trials are autocorrelated"
    )
    worth: float = _threshold(
        0.7, _level, "... and share of the trials that they are worth, below which it matters"
    )
    ticks: float = _threshold(100.0, _count, "ticks of the clock that a trial must last")
    normality: float = _threshold(
        0.01, _level, "p of Shapiro's and Wilk's test below which values are not normal"
    )
    skewness: float = _threshold(
        25.0, _count, "... if there are no more than this times the squared skewness of them"
    )
    memory_low: float = _threshold(0.5, _fraction, "data from this share of the memory on ...")
    memory_high: float = _threshold(1.5, _fraction, "... up to this share are neither cached nor uncached")

    @classmethod
    def parse(cls, items: Iterable[str]) -> Thresholds:
        """Thresholds from items such as `["drift=5%", "leak=4MiB"]`; the last item of a name counts.

        Raises:
            UsageError: an unknown name, or an invalid value.
        """
        known = {_name(f): f for f in fields(cls)}
        given: dict[str, Any] = {}
        for item in items:
            name, equals, text = (part.strip() for part in item.partition("="))
            if name not in known or not equals:
                raise UsageError(f"threshold {item!r}: give NAME=VALUE; the names are {', '.join(known)}")
            read = known[name].metadata["read"]
            try:
                given[known[name].name] = read(text)
            except (ValueError, OverflowError):
                raise UsageError(f"threshold {item!r}: the value must be {_EXPECTED[read]}") from None
        return cls(**given)

    @classmethod
    def described(cls) -> list[tuple[str, str, str]]:
        """Name, default and meaning of each, as on a command line."""
        return [(_name(f), _shown(f.default), f.metadata["meaning"]) for f in fields(cls)]


def _name(threshold: Field[Any]) -> str:
    return threshold.name.replace("_", "-")


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "1MiB" if value == 1 << 20 else f"{value:g}"


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
