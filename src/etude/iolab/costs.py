"""Costs of the curve of a sweep over buffers: calls, bytes and fresh pages, and the sizes where these do not explain
it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from etude.iolab.landmarks import Landmark, landmarks
from etude.iolab.points import Points, Swept
from etude.iolab.sweeps import KNOWN
from etude.results.results import machine_member
from etude.results.series import Floats
from etude.stats.cost_curve import Bend, CostCurve, fit
from etude.stats.intervals import Interval, t_quantile
from etude.units.parsing import quantity

QUARTILES_OF_NORMAL, MEDIAN_OF_NORMAL = 1.349, 1.2533
"""Distance of the quartiles in deviations; standard error of a median, in those of a mean."""
LEAST_CALL_S = 1e-10
"""No call of any machine costs less: what is found to has been lost in the copying."""
MOST_OF_TIME = 1.06
"""A cost that would by itself, by the lower end of its interval, take so many times the time at a size is none."""
LEAST_ERROR = 0.005
"""Relative; a median is not known better."""
MOST_OF_SAVED = 2.0
"""Fresh pages cost at most so many times the time that a touched buffer saves."""


@dataclass(frozen=True)
class Cost:
    """One cost, with its 95 % interval."""

    value: float
    interval: Interval


@dataclass(frozen=True)
class Costs:
    """One curve: time = calls · call + bytes / rate + fresh pages · page."""

    curve: str
    call_s: Cost | None
    """None where it cannot be told from 0."""
    rate: Cost | None
    """Rate of copying alone, B/s."""
    page_s: Cost | None
    """The cost of a fresh page of the buffer; None where there are none, or where it cannot be told from 0. It is what
    the calls of a touched buffer save, where there is one; else that of the fit, which holds whatever slows large
    buffers."""
    page_bytes: int | None
    page_share: float | None
    """Share of fresh pages in the time at the largest buffer."""
    bends: tuple[Bend, ...]
    """Bends of the curve, at sizes in bytes."""
    named: tuple[tuple[Landmark, ...], ...]
    """For each bend the sizes of this machine in its interval; none where the curve becomes quicker."""


def costs_of(curve: Points, swept: Swept) -> Costs | None:
    """Costs of one curve; None where it has too few sizes."""
    page, total = fresh_page(curve, swept), total_of(swept)
    x = np.log2(curve.sizes)
    columns = [1.0 / curve.sizes, np.ones_like(curve.sizes)]
    pages = np.ceil(curve.sizes / page) if page else columns[1]
    if np.ptp(pages) > 0.0:
        columns.append(pages / (total or float(curve.sizes[-1])))
    if curve.sizes.size < len(columns) + 3:
        return None
    found = fit(x, 1.0 / curve.medians, np.array(columns).T, errors=_errors(curve))
    if len(columns) > 2 and (_too_much(found, 2, columns, curve) or _not_saved(found, columns, curve, swept)):
        columns.pop()
        found = fit(x, 1.0 / curve.medians, np.array(columns).T, errors=_errors(curve))
    bends = tuple(_in_bytes(bend) for bend in found.bends)
    known = landmarks(swept.experiment)
    call, page_s, touched = _cost(found, 0), None, swept.curve("touched")
    if total and page and touched is not None:
        page_s = _saved(curve, touched, page, total)
    elif total and len(columns) > 2:
        page_s = _cost(found, 2)
    return Costs(
        curve.name,
        None if call is None or call.value <= LEAST_CALL_S or _too_much(found, 0, columns, curve) else call,
        _rate(found),
        page_s,
        page if page_s else None,
        page_s.value * float(pages[-1] * curve.medians[-1]) / total if page_s and total else None,
        bends,
        tuple(_within(bend, known) for bend in bends),
    )


def _too_much(found: CostCurve, column: int, columns: Sequence[Floats], curve: Points) -> bool:
    """True if one of the costs would by itself take more than all of the time, at any size."""
    interval = found.intervals[column]
    return interval is not None and bool(
        np.any(interval.low * columns[column] * curve.medians > MOST_OF_TIME)
    )


def _not_saved(found: CostCurve, columns: Sequence[Floats], curve: Points, swept: Swept) -> bool:
    """True if fresh pages cannot be the cause of what was fitted to their number, at the largest size: they would take
    more than all of the time, or much more than a touched buffer, which has its pages already, saves."""
    share, size = found.factors[2] * float(columns[2][-1] * curve.medians[-1]), float(curve.sizes[-1])
    touched = swept.curve("touched")
    if touched is None or size not in touched.sizes:
        return share > 1.0
    saved = 1.0 - float(curve.medians[-1] / np.median(touched.at(size)))
    return share > min(1.0, MOST_OF_SAVED * saved)


def _saved(curve: Points, touched: Points, page: int, total: float) -> Cost | None:
    """A fresh page's cost: what calls take longer at each size than those whose buffer has its pages, over the pages.

    A line through 0 by weighted least squares, its interval by Student's t; None of fewer than three sizes, and where
    it cannot be told from 0.
    """
    common = np.isin(curve.sizes, touched.sizes)
    if np.count_nonzero(common) < 3:
        return None
    there = np.isin(touched.sizes, curve.sizes)
    times, beside = 1.0 / curve.medians[common], 1.0 / touched.medians[there]
    pages = np.ceil(curve.sizes[common] / page) / total
    own, its = _errors(curve), _errors(touched)
    weights = np.ones(times.size)
    if own is not None and its is not None:
        squares = (own[common] * times) ** 2 + (its[there] * beside) ** 2
        weights = 1.0 / np.maximum(squares, (LEAST_ERROR * times) ** 2)
    weight = float(weights @ pages**2)
    value = float(weights @ (pages * (times - beside))) / weight
    off = times - beside - value * pages
    half = t_quantile(0.95, times.size - 1) * math.sqrt(float(weights @ off**2) / (times.size - 1) / weight)
    return Cost(value, Interval(value - half, value + half)) if value > half else None


def fresh_page(curve: Points, swept: Swept) -> int | None:
    """The size of pages that the timed calls make; None where the buffer has its pages already."""
    words = next(
        (
            [str(word) for word in test.get("command") or ()]
            for test in (swept.experiment.get("plan") or {}).get("tests") or ()
            if (test.get("parameters") or {}).get("curve") == curve.name
        ),
        list(KNOWN[curve.name].options) if curve.name in KNOWN else [],
    )
    if "--touch" in words:
        return None
    if " --huge on " in f" {' '.join(words)} ":
        return int(machine_member(swept.experiment, "memory", "huge_page_bytes") or 2 << 20)
    return int(machine_member(swept.experiment, "memory", "page_bytes") or 4096)


def total_of(swept: Swept) -> float | None:
    """Bytes that each run transfers; None where the results do not have them."""
    for test in (swept.experiment.get("plan") or {}).get("tests") or ():
        words = list(test.get("command") or ())
        if "-t" in words[:-1] and (found := quantity(str(words[words.index("-t") + 1]))):
            return float(found[0])
    return None


def _errors(curve: Points) -> Floats | None:
    """Relative standard errors of the medians; None where there are too few trials."""
    counts = np.array([values.size for values in curve.samples])
    if counts.min() < 4:
        return None
    low, high = curve.quartiles
    found: Floats = (high - low) / curve.medians / QUARTILES_OF_NORMAL * MEDIAN_OF_NORMAL / np.sqrt(counts)
    return found


def _cost(found: CostCurve, column: int) -> Cost | None:
    interval = found.intervals[column]
    return Cost(found.factors[column], interval) if interval and interval.low > 0.0 else None


def _rate(found: CostCurve) -> Cost | None:
    each = _cost(found, 1)
    if each is None:
        return None
    return Cost(1.0 / each.value, Interval(1.0 / each.interval.high, 1.0 / each.interval.low))


def _in_bytes(bend: Bend) -> Bend:
    interval = Interval(float(np.exp2(bend.interval.low)), float(np.exp2(bend.interval.high)))
    end = float(np.exp2(bend.end))
    return Bend(float(np.exp2(bend.at)), interval, end, bend.power, bend.before, bend.after, bend.p)


def _within(bend: Bend, known: tuple[Landmark, ...]) -> tuple[Landmark, ...]:
    """Sizes of this machine in a bend's interval, if it is dearer beyond the bend: an outgrown cache or TLB costs
    time."""
    if bend.power <= 0.0:
        return ()
    low, high = bend.interval.low, bend.interval.high
    return tuple(mark for mark in known if low <= 1.001 * mark.bytes and mark.bytes <= 1.001 * high)


def document(costs: Costs) -> dict[str, Any]:
    """The costs as plain data, in bytes, seconds and B/s."""

    def value(cost: Cost | None) -> Mapping[str, Any] | None:
        if cost is None:
            return None
        return {"value": cost.value, "low": cost.interval.low, "high": cost.interval.high}

    return {
        "curve": costs.curve,
        "call_s": value(costs.call_s),
        "rate": value(costs.rate),
        "page_s": value(costs.page_s),
        "page_bytes": costs.page_bytes,
        "page_share": costs.page_share,
        "bends": [
            {
                "at": bend.at,
                "low": bend.interval.low,
                "high": bend.interval.high,
                "end": bend.end,
                "rate_before": 1.0 / bend.before,
                "rate_after": 1.0 / bend.after,
                "p": bend.p,
                "sizes": [{"name": mark.name, "bytes": mark.bytes} for mark in named],
            }
            for bend, named in zip(costs.bends, costs.named, strict=True)
        ],
    }
