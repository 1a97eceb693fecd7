"""The reading of a sweep over buffer sizes (L41 Lab 1 notes, "I/O buffer size")."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from etude.io.landmarks import Landmark, landmarks, nearest, size_text
from etude.io.points import Points, Swept
from etude.report.text import percent, quantity
from etude.results.series import Floats
from etude.stats import crossings, segmented

NEAR_PEAK = 0.95
LEAST_CALL_S = 1e-10
"""No call of any machine costs less: what is found to has been lost in the copying."""
LARGE_CALL = 4096
"""Calls of up to so many bytes tell what a call costs whatever it transfers."""
SURE = 0.5
"""A knee that fewer bootstrap samples than this share find again is not named."""
PARTED = 1.05
RISING, AROUND = 1.3, 8.0
"""Where twice the buffer still brings so many times the rate, the cost of calls is being shared; it matters up to so
many times, and from so small a part on, of the size at which half of the best rate is reached."""
MOST_NAMED = 3

OF_FRESH_PAGES = (
    "The kernel fills a fresh page with zeroes when it is first written to: the larger the untouched buffer, the fewer "
    "calls share that cost. A huge page costs one fault for many small ones."
)
OF_PAGES_READ = (
    "Pages of an untouched buffer that are only read, as when a file is written, are all one page of zeroes, which "
    "stays in the nearest cache; a touched buffer has pages of its own."
)

CAVEATS = (
    "each value is a mean over all calls of one run: its spread says little of single calls (means of means)",
    "bars are quartiles: samples of this kind have a long tail, for which a deviation would mislead",
    "a curve bends at multiples or parts of a cache's size, seldom just there: caches are not fully associative, the "
    "data pass through them twice (from the page cache, into the buffer), and the stacks need room, too",
    "a logarithmic axis makes steps of equal factors equal: read rates off the axis, not off the slope",
)


def findings(swept: Swept) -> Iterator[str]:
    """Sentences, the most important first."""
    for curve in swept.curves:
        if curve.sizes.size > 1:
            yield from _shape(curve)
            yield from _knees(curve, swept)
            yield from _jumps(curve)
    yield from _parting(swept)
    yield from _storage(swept)


def _shape(curve: Points) -> Iterator[str]:
    """The peak, the plateau around it, and what a call costs."""
    medians, sizes = curve.medians, curve.sizes
    best = int(medians.argmax())
    near = np.flatnonzero(medians >= NEAR_PEAK * medians[best])
    low, high = _plateau(near, best)
    over = f"from {size_text(sizes[low])} to {size_text(sizes[high])}" if low < high else "there alone"
    yield (
        f"{curve.name}: fastest at {size_text(sizes[best])}, {quantity(medians[best], 'B/s')}; "
        f"within 5 % of that {over}."
    )
    small = sizes <= LARGE_CALL
    if np.count_nonzero(small) >= 3:
        call, half = _call_cost(sizes[small], medians[small]), _reaches(curve, medians[best] / 2)
        if call > LEAST_CALL_S:
            text = f"{curve.name}: a call costs {quantity(call, 's')} whatever it transfers"
            yield text + (f"; half of the best rate is reached at {size_text(half)}." if half else ".")


def _plateau(near: np.ndarray, best: int) -> tuple[int, int]:
    """The stretch of neighbouring points around the best."""
    low = high = best
    while low - 1 in near:
        low -= 1
    while high + 1 in near:
        high += 1
    return low, high


def _call_cost(sizes: Floats, medians: Floats) -> float:
    """Seconds of a call that transfers nothing: a line through the time of a call over its bytes, weighted so that
    relative errors count alike."""
    seconds = sizes / medians
    slope_and_start = np.polynomial.polynomial.polyfit(sizes, seconds, 1, w=1 / seconds)
    return float(slope_and_start[0])


def _reaches(curve: Points, rate: float) -> float | None:
    """Where the curve first reaches a rate, between its points by logarithms; None where it begins above."""
    medians = curve.medians
    above = int((medians >= rate).argmax())
    if above == 0:
        return None
    x, y = np.log2(curve.sizes), np.log2(medians)
    part = (np.log2(rate) - y[above - 1]) / (y[above] - y[above - 1])
    return float(np.exp2(x[above - 1] + part * (x[above] - x[above - 1])))


def _knees(curve: Points, swept: Swept) -> Iterator[str]:
    if curve.sizes.size < 6:
        return
    found = segmented.fit(np.log2(curve.sizes), [np.log2(values) for values in curve.samples])
    known = landmarks(swept.experiment)
    for number, knee in enumerate(found.breaks):
        if knee.share is not None and knee.share < SURE:
            continue
        at, within = float(np.exp2(knee.at)), ""
        if knee.interval is not None:
            low, high = (size_text(float(np.exp2(end))) for end in (knee.interval.low, knee.interval.high))
            within = f" (95 %: {low} to {high})"
        before, after = (2**slope.value for slope in found.slopes[number : number + 2])
        yield (
            f"{curve.name}: bends at {size_text(at)}{within}, {_where(at, before, curve, known)}: "
            f"twice the buffer is {before:.2f} times the rate before, {after:.2f} times after."
        )


def _where(at: float, before: float, curve: Points, known: Sequence[Landmark]) -> str:
    """What lies at a bend: the stretch in which copying comes to cost as much as the calls, or else a landmark."""
    half = _reaches(curve, float(curve.medians.max()) / 2)
    if half is not None and before > RISING and 1 / AROUND < at / half < AROUND:
        return f"as copying comes to cost as much as calling, around {size_text(half)} ({nearest(at, known)})"
    return nearest(at, known)


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
    if plain is not None and len(swept.curves) > 1:
        yield OF_PAGES_READ if swept.writes else OF_FRESH_PAGES


def _from(found: crossings.Crossing, times: float) -> str:
    """Since which size it is quicker by more than 5 %; nothing where it is not."""
    if found.at is None:
        return "; more than 5 % at every size" if times > PARTED else ""
    text = f"; more than 5 % from {size_text(found.at)} on"
    if found.interval is None:
        return text
    return f"{text} (95 %: {size_text(found.interval.low)} to {size_text(found.interval.high)})"


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
