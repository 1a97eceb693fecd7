"""The measurements of a sweep by curve: a sample at each size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from etude.analysis.subject import Subject
from etude.errors import InputError
from etude.iolab.sweeps import BANDWIDTH, STORAGE
from etude.results.readers.source import text_of
from etude.results.series import Floats, Series
from etude.units.parsing import quantity

Over = Literal["buffer", "total"]


@dataclass(frozen=True, eq=False)
class Points:
    """One curve. `samples[n]` are the kept trials at `sizes[n]`, in order."""

    name: str
    sizes: Floats
    """Bytes, rising, shape (sizes,)."""
    samples: tuple[Floats, ...]
    """Bandwidth in B/s, or elapsed in s."""

    @property
    def medians(self) -> Floats:
        """Shape (sizes,)."""
        return np.array([float(np.median(values)) for values in self.samples])

    @property
    def quartiles(self) -> tuple[Floats, Floats]:
        """The lower and the upper ones, each of shape (sizes,)."""
        low, high = np.array([np.quantile(values, (0.25, 0.75)) for values in self.samples]).T
        return low, high

    def at(self, size: float) -> Floats:
        """The sample at a size that is there."""
        return self.samples[int(np.flatnonzero(self.sizes == size)[0])]


@dataclass(frozen=True, eq=False)
class Swept:
    """A whole sweep."""

    over: Over
    metric: str
    curves: tuple[Points, ...]
    storage: Floats | None
    """Bandwidth around the page cache, B/s."""
    experiment: Mapping[str, Any]

    @property
    def writes(self) -> bool:
        """True if files were written, so that buffers were only read."""
        tests = (self.experiment.get("plan") or {}).get("tests") or ()
        return any("write" in test["command"] for test in tests)

    def curve(self, name: str) -> Points | None:
        """The curve of that name, if there is one."""
        return next((each for each in self.curves if each.name == name), None)


def swept_of(subject: Subject) -> Swept:
    """The curves of a sweep's results.

    Raises:
        InputError: they are not those of a sweep.
    """
    over = over_of([series.parameters for series in subject.tests])
    if over is None:
        raise InputError(
            f"{subject.label}: is no sweep: its tests lack the parameters that etude io sweep gives them"
        )
    metric = BANDWIDTH.name if over == "buffer" else "elapsed"
    found: dict[str, dict[float, Floats]] = {}
    for series in subject.tests:
        values = values_of(series, metric)
        if values.size:
            size, curve = _place(subject.label, series, over), text_of(series.parameters["curve"])
            if values.min() <= 0:
                raise InputError(
                    f"{subject.label}: {metric} of {series.test!r} is {values.min():g} in a trial; expected more than 0"
                )
            if size in found.setdefault(curve, {}):
                raise InputError(f"{subject.label}: two tests of curve {curve} have {over} {size:g} B")
            found[curve][size] = values
    storage = found.pop(STORAGE, None)
    curves = tuple(
        Points(name, np.array(sorted(points)), tuple(points[size] for size in sorted(points)))
        for name, points in found.items()
    )
    if not curves:
        raise InputError(f"{subject.label}: no trial of this sweep has a value of {metric}")
    around = None if storage is None else next(iter(storage.values()))
    return Swept(over, metric, curves, around, subject.experiment or {})


def _place(label: str, series: Series, over: Over) -> float:
    text = text_of(series.parameters[over])
    size, base = quantity(text) or (0.0, "")
    if base != "B" or size <= 0:
        raise InputError(
            f"{label}: {over} of {series.test!r} is {text!r}; expected a size above 0, such as 64KiB"
        )
    return size


def values_of(series: Series, metric: str) -> Floats:
    """The kept trials; empty where there are none yet."""
    return series.sample(metric) if metric in series.columns else np.empty(0)


def over_of(tests: Sequence[Mapping[str, Any]]) -> Over | None:
    """The quantity that a sweep is over, by the parameters of its tests; None where they are not those of a sweep."""
    for over in ("buffer", "total"):
        if tests and all({over, "curve"} <= set(parameters) for parameters in tests):
            return over
    return None


@dataclass(frozen=True)
class Gaps:
    """Parts that a sweep did not measure."""

    tests: tuple[str, ...]
    """Tests without an included trial."""
    storage: bool
    """True if a sweep over buffers has no rate around the page cache."""
    cold: bool
    """True if every reading trial had its file in the page cache, or could have."""


def gaps_of(subject: Subject, swept: Swept) -> Gaps:
    """The gaps of a sweep, the storage's own test aside."""
    names = tuple(
        series.test
        for series in subject.tests
        if text_of(series.parameters["curve"]) != STORAGE and not values_of(series, swept.metric).size
    )
    return Gaps(names, swept.over == "buffer" and swept.storage is None, not swept.writes)
