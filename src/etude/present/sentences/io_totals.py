"""The reading of a sweep over total sizes: static against dynamic linking (L41 Lab 1 notes, Figures 2 and 3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from etude.iolab.comparisons import ALPHA, Comparison, Level
from etude.iolab.landmarks import size_text
from etude.units.formatting import p_value, percent, quantity

CAVEATS = (
    "on axes that are both logarithmic, two curves seem to become one long before they are: read the ratio below",
    "a small p supports a difference, not a large one: see the ratio",
    "Student's t test supposes values that are spread evenly around their mean, which times seldom are: one slow trial "
    "hides a difference from it, and not from the Mann-Whitney test beside it",
    "the time is that of the whole program, from its start to its end; the program prepares nothing and prints nothing",
)


def findings(base: str, comparisons: Sequence[Comparison]) -> Iterator[str]:
    """Sentences, the most important first: every other curve against the first."""
    for found in comparisons:
        if found.ratios:
            yield from _ratios(found)
            yield from _significance(found)
        else:
            yield f"{found.base} and {found.other}: no size has trials of both."
    if not comparisons:
        yield f"{base}: a single curve; nothing to compare."


def verdict_lines(base: str, comparisons: Sequence[Comparison]) -> Iterator[str]:
    """A line for each other curve: its difference from the first, and the sizes at which it falls below each level."""
    for found in comparisons:
        if not found.ratios:
            yield f"{found.base} and {found.other}: no size has trials of both."
        elif not found.differs:
            yield _not_shown(found)
        else:
            first, last = found.ratios[0].size, found.ratios[-1].size
            levels = [_crossing(level, first, last) for level in found.crossings]
            yield " ".join((_difference(found), *levels))
    if not comparisons:
        yield f"{base}: a single curve; nothing to compare."


def size_lines(comparisons: Sequence[Comparison]) -> tuple[str, ...]:
    """Sentences on the ratio at the smallest and at the largest size."""
    return tuple(line for found in comparisons if found.ratios for line in _end_ratios(found))


def _end_ratios(found: Comparison) -> Iterator[str]:
    for at in (found.ratios[0], found.ratios[-1]):
        yield (
            f"{size_text(at.size)}: {found.base} {quantity(at.base, 's')}, {found.other} {quantity(at.other, 's')}, "
            f"which is {at.ratio:.3f} times that."
        )


def _not_shown(found: Comparison) -> str:
    assert found.p is not None
    return (
        f"No difference between {found.base} and {found.other} is shown: over all sizes {p_value(found.p)} "
        "(Mann-Whitney at each size, added up)."
    )


def _ratios(found: Comparison) -> Iterator[str]:
    yield from _end_ratios(found)
    if not found.differs:
        yield _not_shown(found)
        return
    yield _difference(found)
    for level in found.crossings:
        yield _crossing(level, found.ratios[0].size, found.ratios[-1].size)


def _difference(found: Comparison) -> str:
    """Text on the other's extra time: one number unless these trials show different times at different sizes."""
    difference = found.difference
    assert difference is not None
    middle, least, most = map(_more, (difference.median, difference.least, difference.most))
    if difference.constant:
        return (
            f"{found.other} takes {middle} than {found.base} (the median of the sizes; {least} to {most}); that it "
            "depends on the size is not shown."
        )
    return f"{found.other} takes {least} to {most} than {found.base} (medians of the sizes); their median is {middle}."


def _more(seconds: float) -> str:
    return f"{quantity(abs(seconds), 's')} {'more' if seconds >= 0 else 'less'}"


def _crossing(found: Level, first: float, last: float) -> str:
    share = f"{100 * (found.level - 1):.0f} %"
    if found.at is None and found.state == "open":
        return f"Whether the difference falls below {share} is undecided: {found.why}."
    if found.at is None:
        if found.state == "not below":
            return f"The difference does not fall below {share} up to {size_text(last)}."
        return f"The difference is below {share} from {size_text(first)} on."
    if found.low is not None and found.high is not None:
        low, high = size_text(found.low), size_text(found.high)
        where = f"at {low}" if low == high else f"between {low} and {high}"
        return f"The difference falls below {share} {where} (95 %; by the medians at {size_text(found.at)})."
    by_medians = f"by the medians at {size_text(found.at)}, but {found.why}"
    return f"Where the difference falls below {share} is undecided: {by_medians}."


def _significance(found: Comparison) -> Iterator[str]:
    """The results of both tests on the first trials and on all of them, beside the size of the difference."""
    for tests in found.tests:
        by_t, by_ranks = tests.below("student"), tests.below("mann_whitney")
        name = f"the first {tests.trials} trials" if tests.trials else "all trials"
        varied = sum(each.student is not None for each in tests.sizes)
        counts = [f"{len(by_t)} of {varied} sizes by Student's t test"] if varied else []
        if not tests.too_few_for_ranks:
            sizes = "" if varied else " sizes"
            counts.append(f"{len(by_ranks)} of {len(tests.sizes)}{sizes} by Mann-Whitney's")
        if not counts:
            continue
        adjusted = f", adjusted for {len(tests.sizes)} sizes (Holm)," if len(tests.sizes) > 1 else ""
        text = f"By {name} p{adjusted} is below {ALPHA:g} at {', at '.join(counts)}"
        if tests.too_few_for_ranks:
            text += " (too few trials for Mann-Whitney's)"
        if by_t or by_ranks:
            largest = max(by_t + by_ranks)
            ratio = next(at.ratio for at in found.ratios if at.size == largest)
            differ = percent(abs(ratio - 1))
            text += (
                f"; the largest of these sizes is {size_text(largest)}, where the medians differ by {differ}"
            )
        yield f"{text}."
