"""Options of a figure, for the command line and the Python API."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from etude import codec
from etude.errors import UsageError
from etude.stats.describe import Bar
from etude.units.parsing import quantity

Bars = Bar | Literal["none"]
MOST_FIRST = 10**6
KEY_PLACES = ("top", "bottom", "center", "left", "right")


@dataclass(frozen=True)
class Threshold:
    """A value worth a line, in its base unit, and what it is called."""

    value: float
    unit: str | None
    """Base unit of what was written; None where a plain number was."""
    label: str


@dataclass(frozen=True)
class PlotOptions:
    """Options of all kinds of figures; `make` refuses those of content that a kind has no use for."""

    metrics: tuple[str, ...] = ()
    """Empty: the primary one."""
    bars: Bars | None = None
    """Meaning of error bars; None: as suits the kind."""
    confidence: codec.Share = 0.95
    log: Literal["", "x", "y", "xy", "none"] = ""
    """Logarithmic axes: letters of `x` and `y`; empty: as the values suggest; `none`: no axis."""
    parameter: str | None = None
    """Parameter on the x axis; None: the one that varies."""
    reference: str | None = None
    thresholds: tuple[Threshold, ...] = ()
    marks: tuple[Threshold, ...] = ()
    """Thresholds on the x axis, such as a cache's size."""
    first: tuple[int, ...] = ()
    """p-values of so many first trials only, beside those of all."""
    pooled: bool = True
    """Student's test with one pooled deviation; else Welch's."""
    ranks: bool = False
    """p-values of the Mann-Whitney test of all trials, too."""
    stack: bool = True
    """User stands on System."""
    bar_width: codec.Finite = 1.0
    bar_gap: codec.Finite = 0.0
    group_gap: codec.Finite = 1.0
    """Gaps as multiples of a bar's width."""
    title: str = ""
    x_label: str | None = None
    y_label: str | None = None
    rotate: codec.Finite | None = None
    key: str = "best"
    plain_units: bool = False
    """Seconds stay seconds."""
    plain_names: bool = False
    """Metrics are called as Getstats calls them: Elapsed, System, User."""
    plain_intervals: bool = False
    """Student's intervals of the mean, as Getstats' LOW and HIGH."""

    def __post_init__(self) -> None:
        for name, value, lowest in (
            ("bar width", self.bar_width, 0.01),
            ("bar gap", self.bar_gap, 0.0),
            ("group gap", self.group_gap, 0.0),
        ):
            if not (math.isfinite(value) and lowest <= value <= 100.0):
                raise UsageError(f"the {name} must be from {lowest:g} to 100, not {value:g}")
        if self.rotate is not None and not (math.isfinite(self.rotate) and abs(self.rotate) <= 90):
            raise UsageError(f"labels are rotated by -90 to 90 degrees, not {self.rotate:g}")
        if not 0 < self.confidence < 1:
            raise UsageError(
                f"confidence {self.confidence}: expected a fraction between 0 and 1, such as 0.95"
            )
        for count in self.first:
            if not 2 <= count <= MOST_FIRST:
                raise UsageError(f"--first {count}: expected a number of trials from 2 to {MOST_FIRST}")
        object.__setattr__(self, "key", key_place(self.key))
        for line in (*self.thresholds, *self.marks):
            if not isinstance(line, Threshold) or not math.isfinite(line.value):
                raise UsageError(f"thresholds and marks: expected finite `threshold(TEXT)`, not {line!r:.80}")


def key_place(text: str) -> str:
    """`top right`, `right top`, `outside`, `off` …, as Gnuplot's key is placed. Raises UsageError for no such place."""
    words = ["center" if word == "centre" else word for word in text.lower().split()]
    if words in (["best"], ["off"], ["outside"], ["above"], ["below"]):
        return words[0]
    if not 1 <= len(words) <= 2 or not set(words) <= set(KEY_PLACES):
        raise UsageError(
            f"{text!r:.80} is no place of a key; expected such as 'top right', 'bottom left', outside or off"
        )
    vertical = next((word for word in words if word in ("top", "bottom")), "center")
    horizontal = next((word for word in words if word in ("left", "right")), None)
    if horizontal is None:
        horizontal = "center" if words.count("center") else "right"
    return f"{vertical} {horizontal}"


def threshold(text: str) -> Threshold:
    """`5ms` or `5ms=what it is`. Raises UsageError for what has no number in front."""
    value, _, label = text.partition("=")
    found = quantity(value)
    if found is None:
        raise UsageError(f"threshold {text!r}: expected a number with a unit, such as 5ms or 32KiB=L1")
    return Threshold(*found, label or value.strip())
