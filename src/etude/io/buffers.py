"""The reading of a sweep over buffer sizes (L41 Lab 1 notes, "I/O buffer size")."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from etude.io.costs import Cost, Costs
from etude.io.landmarks import size_text
from etude.io.points import Points, Swept
from etude.report.text import percent, quantity
from etude.stats import crossings, segmented

NEAR_PEAK = 0.95
PARTED = 1.05
SAME = 1.05
"""A piece over which the rate changes by less against its costs is level."""
MOST_NAMED = 3

OF_PAGES_READ = (
    "Pages of an untouched buffer that are only read, as when a file is written, are all one page of zeroes, which "
    "stays in the nearest cache; a touched buffer has pages of its own."
)

CAVEATS = (
    "each value is a mean over all calls of one run: its spread says little of single calls (means of means)",
    "bars are quartiles: samples of this kind have a long tail, for which a deviation would mislead",
    "a size of this machine in a bend's interval is a candidate, no proof: caches are not fully associative, the data "
    "pass through them twice (from the page cache, into the buffer), and other sizes may lie there, too",
    "a logarithmic axis makes steps of equal factors equal: read rates off the axis, not off the slope",
)


def findings(swept: Swept, costs: Mapping[str, Costs]) -> Iterator[str]:
    """Sentences, the most important first; `costs` by curve, of those that have enough sizes."""
    for curve in swept.curves:
        if curve.sizes.size > 1:
            yield _shape(curve)
            if curve.name in costs:
                yield from _costs(costs[curve.name], curve)
                yield from _bends(costs[curve.name])
            yield from _jumps(curve)
    yield from _parting(swept)
    yield from _storage(swept)


def _shape(curve: Points) -> str:
    """The peak and the plateau around it."""
    medians, sizes = curve.medians, curve.sizes
    best = int(medians.argmax())
    near = np.flatnonzero(medians >= NEAR_PEAK * medians[best])
    low, high = _plateau(near, best)
    over = f"from {size_text(sizes[low])} to {size_text(sizes[high])}" if low < high else "there alone"
    return (
        f"{curve.name}: fastest at {size_text(sizes[best])}, {quantity(medians[best], 'B/s')}; "
        f"within 5 % of that {over}."
    )


def _costs(costs: Costs, curve: Points) -> Iterator[str]:
    """What a call and a fresh page cost."""
    if costs.call_s is not None:
        half = _reaches(curve, float(curve.medians.max()) / 2)
        text = f"{costs.curve}: a call costs {_seconds(costs.call_s)} whatever it transfers"
        yield text + (f"; half of the best rate is reached at {size_text(half)}." if half else ".")
    if costs.page_s is not None and costs.page_bytes and costs.page_share is not None:
        yield (
            f"{costs.curve}: a fresh page of {size_text(costs.page_bytes)} of the buffer costs "
            f"{_seconds(costs.page_s)}, once, which all calls share: {percent(costs.page_share)} of the time at "
            f"{size_text(curve.sizes[-1])}."
        )


def _seconds(cost: Cost) -> str:
    low, high = (quantity(end, "s") for end in (cost.interval.low, cost.interval.high))
    return f"{quantity(cost.value, 's')} (95 %: {low} to {high})"


def _plateau(near: np.ndarray, best: int) -> tuple[int, int]:
    """The stretch of neighbouring points around the best."""
    low = high = best
    while low - 1 in near:
        low -= 1
    while high + 1 in near:
        high += 1
    return low, high


def _reaches(curve: Points, rate: float) -> float | None:
    """Where the curve first reaches a rate, between its points by logarithms; None where it begins above."""
    medians = curve.medians
    above = int((medians >= rate).argmax())
    if above == 0:
        return None
    x, y = np.log2(curve.sizes), np.log2(medians)
    part = (np.log2(rate) - y[above - 1]) / (y[above] - y[above - 1])
    return float(np.exp2(x[above - 1] + part * (x[above] - x[above - 1])))


def _bends(costs: Costs) -> Iterator[str]:
    """Where calls, bytes and fresh pages do not explain the curve. A level piece behind a change only ends it."""
    for bend, named in zip(costs.bends, costs.named, strict=True):
        if bend.before != 1.0 and 1 / SAME < bend.after / bend.before < SAME:
            continue
        low, high = size_text(bend.interval.low), size_text(bend.interval.high)
        within = f" (95 %: {low} to {high})" if low != high else ""
        sizes = (
            f"; {_listed([str(mark) for mark in named])} {'lies' if len(named) == 1 else 'lie'} there"
            if named
            else ""
        )
        yield (
            f"{costs.curve}: bends at {size_text(bend.at)}{within}{sizes}: from there to {size_text(bend.end)} the "
            f"rate goes from {1 / bend.before:.2f} to {1 / bend.after:.2f} times what these costs allow."
        )


def _jumps(curve: Points) -> Iterator[str]:
    low, high = curve.quartiles
    found = segmented.steps(np.log2(curve.sizes), curve.medians, low, high)
    steep = [
        f"{size_text(curve.sizes[n])} to {size_text(curve.sizes[n + 1])} "
        f"({curve.medians[n + 1] / curve.medians[n]:.2f} times)"
        for n in found.steep
    ]
    if steep:
        yield f"{curve.name}: steep steps from {_listed(steep)}."
    spread = (high - low) / curve.medians
    variable = [f"{size_text(curve.sizes[n])} ({percent(float(spread[n]))})" for n in found.variable]
    if variable:
        usual = percent(float(np.median(spread)))
        yield (
            f"{curve.name}: varies more than elsewhere at {_listed(variable)}; usual is {usual} between the quartiles. "
            f"Aliasing in a cache near its limit, or something else that ran: repeat it."
        )


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _parting(swept: Swept) -> Iterator[str]:
    """From where on a buffer whose pages are there already pays."""
    plain = swept.curve("untouched")
    for other in (swept.curve("touched"), swept.curve("huge")):
        if plain is None or other is None:
            continue
        common = np.intersect1d(plain.sizes, other.sizes)
        if common.size < 2:
            continue
        slower = [PARTED * plain.at(size) for size in common]
        found = crossings.crossing(common, [other.at(size) for size in common], slower, 1.0)
        largest = float(common[-1])
        times = float(np.median(other.at(largest)) / np.median(plain.at(largest)))
        yield f"{other.name} is {times:.2f} times as fast as untouched at {size_text(largest)}{_from(found, times)}."
    if plain is not None and len(swept.curves) > 1 and swept.writes:
        yield OF_PAGES_READ


def _from(found: crossings.Crossing, times: float) -> str:
    """Since which size it is quicker by more than 5 %; nothing where it is not."""
    if found.at is None:
        return "; more than 5 % at every size" if times > PARTED else ""
    if found.interval is None:
        by_medians = f"by the medians from {size_text(found.at)}, but {crossings.without_size(found)}"
        return f"; from where on by more than 5 % is not settled: {by_medians}"
    low, high = size_text(found.interval.low), size_text(found.interval.high)
    where = f"{low} on" if low == high else f"a size between {low} and {high} on"
    return f"; more than 5 % from {where} (95 %; by the medians from {size_text(found.at)})"


def _storage(swept: Swept) -> Iterator[str]:
    if swept.storage is None:
        return
    rate = float(np.median(swept.storage))
    best = max(float(curve.medians.max()) for curve in swept.curves)
    text = f"Around the page cache (O_DIRECT) the storage gives {quantity(rate, 'B/s')}; the best above is "
    how = (
        "so what was measured is memory, not the device"
        if best > 2 * rate
        else "which is no proof that it was memory"
    )
    yield f"{text}{best / rate:.1f} times that, {how}."
