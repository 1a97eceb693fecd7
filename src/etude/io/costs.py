"""What the curve of a sweep over buffers costs: calls, bytes and fresh pages, and where that does not explain it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from etude.io.curves import KNOWN
from etude.io.landmarks import Landmark, landmarks
from etude.io.points import Points, Swept
from etude.quantities import quantity
from etude.results.series import Floats
from etude.stats.cost_curve import Bend, CostCurve, fit
from etude.stats.intervals import Interval

QUARTILES_OF_NORMAL, MEDIAN_OF_NORMAL = 1.349, 1.2533
"""Distance of the quartiles in deviations; standard error of a median, in those of a mean."""
LEAST_CALL_S = 1e-10
"""No call of any machine costs less: what is found to has been lost in the copying."""


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
    """Of copying alone, B/s."""
    page_s: Cost | None
    """Of a fresh page of the buffer; None where there are none, or where it cannot be told from 0."""
    page_bytes: int | None
    page_share: float | None
    """Of the time at the largest buffer, at most 1."""
    bends: tuple[Bend, ...]
    """At sizes in bytes."""
    named: tuple[tuple[Landmark, ...], ...]
    """Of each bend, the sizes of this machine in its interval; none where the curve becomes quicker."""


def costs_of(curve: Points, swept: Swept) -> Costs | None:
    """Of one curve; None where it has too few sizes."""
    page, total = fresh_page(curve, swept), total_of(swept)
    x = np.log2(curve.sizes)
    columns = [1.0 / curve.sizes, np.ones_like(curve.sizes)]
    pages = np.ceil(curve.sizes / page) if page else columns[1]
    if np.ptp(pages) > 0.0:
        columns.append(pages / (total or float(curve.sizes[-1])))
    if curve.sizes.size < len(columns) + 3:
        return None
    errors = _errors(curve)
    found = fit(x, 1.0 / curve.medians, np.array(columns).T, errors=errors)
    page_s = _cost(found, 2) if len(columns) > 2 else None
    least_share = page_s.interval.low * float(np.max(columns[2] * curve.medians)) if page_s else 0.0
    if least_share > 1.0:  # no part of the time is longer than all of it: bends took the rest away again
        found, page_s = fit(x, 1.0 / curve.medians, np.array(columns[:2]).T, errors=errors), None
    if not total:
        page_s = None
    bends = tuple(_in_bytes(bend) for bend in found.bends)
    known = landmarks(swept.experiment)
    return Costs(
        curve.name,
        call if (call := _cost(found, 0)) and call.value > LEAST_CALL_S else None,
        _rate(found),
        page_s,
        page if page_s else None,
        min(1.0, page_s.value * float(columns[2][-1] * curve.medians[-1])) if page_s else None,
        bends,
        tuple(_within(bend, known) for bend in bends),
    )


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
    memory = ((swept.experiment.get("machine") or {}).get("before") or {}).get("memory") or {}
    if " --huge on " in f" {' '.join(words)} ":
        return int(memory.get("huge_page_bytes") or 2 << 20)
    return int(memory.get("page_bytes") or 4096)


def total_of(swept: Swept) -> float | None:
    """How many bytes each run transfers; None where the results do not say."""
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
    """Of a bend behind which it is dearer: a cache or a TLB that is outgrown costs time and saves none."""
    if bend.power <= 0.0:
        return ()
    low, high = bend.interval.low, bend.interval.high
    return tuple(mark for mark in known if low <= 1.001 * mark.bytes and mark.bytes <= 1.001 * high)


def document(costs: Costs) -> dict[str, Any]:
    """As plain data, in bytes, seconds and B/s."""

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
