"""Sentences of causes: the difference, what explains it, and what does not."""

from __future__ import annotations

from collections.abc import Sequence

from etude.units.formatting import counted, percent, quantity
from etude.why.causes import ENTRY, Cause
from etude.why.contributions import Contribution, CountDifference, Split
from etude.why.instrumented_pairs import Instrumented
from etude.why.instruments import CallCount

CAUSE, PROCESS, DIFFERENCE, SHARE = "cause", "process", "difference", "share of the difference"
CALL, FILE = "call", "file"
COUNTS = "Calls whose number or bytes differ between all runs of one test and all of the other"
CAUSES = "Causes whose time differs, on the critical path"


def headline(a: str, b: str, plain: Contribution, mean_s: float) -> str:
    """`B takes 8.2 % (7.1 % to 9.3 %) longer than A: 82 ms.`"""
    low, high = (end / mean_s for end in (plain.low_s, plain.high_s))
    size = percent(plain.mean_s / mean_s)
    if not plain.is_told:
        return f"The times of {b} and {a} do not differ significantly: {size} ({percent(low)} to {percent(high)})."
    ends = sorted(map(abs, (low, high)))
    way = "longer" if plain.mean_s > 0 else "less time"
    size = f"{size.lstrip('-')} ({percent(ends[0])} to {percent(ends[1])})"
    return f"{b} takes {size} {way} than {a}: {seconds_text(plain)}."


def cause_text(cause: Cause) -> str:
    """A cause in words."""
    within = f" in {cause.caller}" if cause.caller else ""
    match cause.kind:
        case "call":
            return f"{cause.name}(){within}" if cause.name != ENTRY else f"{ENTRY}{within}"
        case "page faults":
            return f"page faults{within}"
        case "start":
            return "exec: a program is started"
        case _:
            return cause.name


def seconds_text(found: Contribution) -> str:
    """`82.1 ms (70.2 ms to 94.0 ms)`."""
    return f"{quantity(found.mean_s, 's')} ({quantity(found.low_s, 's')} to {quantity(found.high_s, 's')})"


def share_text(found: Contribution, whole: Contribution) -> str:
    """Share of the whole difference, with its interval."""
    if whole.mean_s == 0.0:
        return "–"
    ends = sorted(each / whole.mean_s for each in (found.low_s, found.high_s))
    return f"{percent(found.mean_s / whole.mean_s)} ({percent(ends[0])} to {percent(ends[1])})"


def rest_line(found: Split) -> str:
    """The difference without the listed causes."""
    rest = f"{seconds_text(found.rest)}, {share_text(found.rest, found.whole)} of it"
    if not found.listed:
        return (
            f"No cause differs significantly. The difference under the timeline: {seconds_text(found.whole)}."
        )
    kind = (
        "also differs, by no single cause that is significant" if found.rest.is_told else "is not significant"
    )
    return f"The rest {kind}: {rest}."


def count_text(count: CallCount) -> str:
    """`12,000 (46.9 MiB)`."""
    moved = f" ({quantity(count.bytes, 'B')})" if count.bytes else ""
    return f"{count.count:,}{moved}"


def counts_note(found: Sequence[CountDifference]) -> str:
    """A note if numbers of calls vary from run to run; empty if none does."""
    return (
        "" if all(each.exact for each in found) else "Numbers of calls that vary from run to run are medians."
    )


def cost_line(found: Instrumented, split: Split) -> str:
    """Pairs, causes that were looked at, and what the timeline costs."""
    (plain_a, plain_b), (run_a, run_b) = (
        [sum(each) / len(each) for each in found.plain_s],
        [sum(run.elapsed_s for run in side) / len(side) for side in found.runs],
    )
    return (
        f"{counted(split.pairs, 'pair')}; intervals of 95 % for all {counted(split.looked_at, 'cause')} at once. "
        f"Under the timeline {found.a} takes {run_a / plain_a:.3f} and {found.b} {run_b / plain_b:.3f} times as long: "
        f"the ratio changes by {percent(run_b / plain_b / (run_a / plain_a) - 1.0)}."
    )
