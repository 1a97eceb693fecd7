"""The reading of a sweep over buffer sizes (L41 Lab 1 notes, "I/O buffer size")."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from etude.iolab.costs import Cost, Costs
from etude.iolab.landmarks import size_text
from etude.iolab.points import Swept
from etude.iolab.shapes import NEAR_PEAK, PARTED, Growth, Parting, Shape
from etude.units.formatting import percent, quantity, span

SAME = 1.05
"""Factor: a piece whose rate changes by less than this against its costs is level."""
MOST_NAMED = 3

OF_PAGES_READ = (
    "Pages of an untouched buffer that are only read, as when a file is written, are all one page of zeroes, which "
    "stays in the nearest cache; a touched buffer has pages of its own."
)

CAVEATS = (
    "each value is a mean over all calls of one run: its spread shows little about single calls (means of means)",
    "bars are quartiles: such samples often have a long tail, for which a standard deviation would mislead",
    "a size of this machine in a bend's interval is a candidate, no proof: caches are not fully associative, the data "
    "pass through them twice (from the page cache, into the buffer), and other sizes may lie there, too",
    "a logarithmic axis makes steps of equal factors equal: read rates off the axis, not off the slope",
)


def findings(
    swept: Swept, costs: Mapping[str, Costs], shapes: Sequence[Shape], partings: Sequence[Parting]
) -> Iterator[str]:
    """Sentences, the most important first; `costs` by curve, of those that have enough sizes."""
    for shape in shapes:
        yield _peak(shape)
        if shape.curve in costs:
            yield from _costs(costs[shape.curve], shape, swept)
            yield from _bends(costs[shape.curve])
        yield from _jumps(shape)
    for parting in partings:
        yield _parting(parting)
    if swept.writes and len(swept.curves) > 1 and swept.curve("untouched") is not None:
        yield OF_PAGES_READ
    yield from _storage(swept)


def verdict_line(growths: Sequence[Growth]) -> str:
    """Sentence on the buffer size from which on throughput no longer grows; `growths`: at least one."""
    first, *others = growths
    more = "".join(f"; {each.curve}: {_grown(each)}" for each in others)
    if first.at == first.last:
        told = f"Throughput grows up to the largest buffer, {size_text(first.last)} ({first.curve}{_within(first)})"
    elif first.at == first.first:
        told = f"Throughput grows with no buffer beyond the smallest, {_grown(first)} ({first.curve})"
    else:
        within = _within(first)
        told = (
            f"Throughput no longer grows from a buffer of {size_text(first.at)} on ({first.curve}{within}), "
            f"where it is {quantity(first.rate, 'B/s')}"
        )
    return f"{told}{more}."


def growth_line(growth: Growth) -> str:
    """Sentence on how certain the end of a curve's growth is."""
    at = size_text(growth.at)
    if growth.at == growth.last:
        return f"{growth.curve}: it still grows at {at}, the largest size: its end was not reached."
    if growth.low is None or growth.high is None:
        return f"{growth.curve}: by the medians from {at} on; too few trials for an interval."
    low, high = size_text(growth.low), size_text(growth.high)
    ends = f"at {low} in 95 %" if low == high else f"from {low} to {high} in 95 %"
    return (
        f"{growth.curve}: {ends} of trials drawn anew; a size is taken as the end of the growth where it has "
        f"{percent(NEAR_PEAK)} of the largest median from it on."
    )


def _grown(growth: Growth) -> str:
    return f"{size_text(growth.at)}{_within(growth).replace(';', ',', 1)}"


def _within(growth: Growth) -> str:
    if growth.low is None or growth.high is None:
        return "; too few trials for an interval"
    if growth.low == growth.high:
        return "; 95 %: there alone"
    return f"; 95 %: {size_text(growth.low)} to {size_text(growth.high)}"


def size_lines(shapes: Sequence[Shape]) -> tuple[str, ...]:
    """Sentences on the largest rate of each curve."""
    return tuple(map(_peak, shapes))


def _peak(shape: Shape) -> str:
    """The peak and the plateau around it."""
    over = (
        f"from {size_text(shape.low)} to {size_text(shape.high)}" if shape.low < shape.high else "there alone"
    )
    return (
        f"{shape.curve}: the largest median is that at {size_text(shape.peak_at)}, {quantity(shape.peak, 'B/s')}; "
        f"medians within 5 % of it {over}."
    )


def _costs(costs: Costs, shape: Shape, swept: Swept) -> Iterator[str]:
    """Sentences on the cost of a call and of a fresh page."""
    if costs.call_s is not None:
        half = shape.half_at
        text = f"{costs.curve}: a call costs {_seconds(costs.call_s)}, independent of its size"
        yield text + (f"; half of the best rate is first reached at {size_text(half)}." if half else ".")
    if costs.page_s is not None and costs.page_bytes and costs.page_share is not None:
        curve = swept.curve(costs.curve)
        assert curve is not None
        share = f"{percent(costs.page_share)} of the time at {size_text(curve.sizes[-1])}"
        page, cost = size_text(costs.page_bytes), _seconds(costs.page_s)
        if swept.curve("touched") is not None:
            yield (
                f"{costs.curve}: a fresh page of {page} of the buffer costs {cost}, by what touched does not take; "
                f"once, which all calls share: {share}."
            )
        else:
            yield (
                f"{costs.curve}: each further page of {page} of the buffer costs {cost} once, {share}: it is fresh, "
                "and whatever else slows large buffers is in it, which a touched one would show."
            )


def _seconds(cost: Cost) -> str:
    low, high = (quantity(end, "s") for end in (cost.interval.low, cost.interval.high))
    return f"{quantity(cost.value, 's')} (95 %: {low} to {high})"


def _bends(costs: Costs) -> Iterator[str]:
    """Sentences on sizes at which calls, bytes and fresh pages do not explain the curve. A level piece after a change
    only ends it."""
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
            f"rate goes from {1 / bend.before:.2f} to {1 / bend.after:.2f} times what the fitted costs allow."
        )


def _jumps(shape: Shape) -> Iterator[str]:
    steep = [
        f"{size_text(step.first)} to {size_text(step.second)} ({step.ratio:.2f} times)"
        for step in shape.steps
    ]
    if steep:
        yield f"{shape.curve}: steep steps of the medians, whose quartiles lie apart, from {_listed(steep)}."
    variable = [f"{size_text(each.size)} ({percent(each.spread)})" for each in shape.scatter]
    if variable:
        usual = percent(shape.usual_spread)
        yield (
            f"{shape.curve}: varies more than elsewhere at {_listed(variable)}; usual is {usual} between the "
            f"quartiles. Aliasing in a cache near its limit, or something else that ran: repeat it."
        )


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _parting(found: Parting) -> str:
    """Sentence on the size from which a buffer with pages in place already, or with huge pages, pays off."""
    within = shown = ""
    if found.ratio_low is not None and found.ratio_high is not None:
        within = f" (95 %: {span(found.ratio_low, found.ratio_high)})"
        shown = " by the medians, which is not shown" if found.ratio_low <= 1.0 <= found.ratio_high else ""
    text = f"{found.curve} is {found.ratio:.2f} times as fast as untouched at {size_text(found.size)}{shown}{within}"
    if found.at is None:
        return text + ("; by the medians more than 5 % at every size." if found.ratio > PARTED else ".")
    if found.low is None or found.high is None:
        by_medians = f"by the medians from {size_text(found.at)}, but {found.why}"
        return f"{text}; from where on by more than 5 % is undecided: {by_medians}."
    low, high = size_text(found.low), size_text(found.high)
    where = f"{low} on" if low == high else f"a size between {low} and {high} on"
    return f"{text}; more than 5 % from {where} (95 %; by the medians from {size_text(found.at)})."


def _storage(swept: Swept) -> Iterator[str]:
    if swept.storage is None:
        return
    rate = float(np.median(swept.storage))
    best = max(float(curve.medians.max()) for curve in swept.curves)
    text = f"Around the page cache (O_DIRECT) the storage gives {quantity(rate, 'B/s')}; the best above is "
    how = "which takes memory or read-ahead" if best > 2 * rate else "which is no proof that it was memory"
    yield f"{text}{best / rate:.1f} times that, {how}."
