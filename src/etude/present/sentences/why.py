"""Sentences of causes: the difference, what explains it, and what does not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from etude.units.formatting import counted, percent, quantity
from etude.why.causes import ENTRY, Cause
from etude.why.contributions import Contribution, CountDifference, Split, cost
from etude.why.instructions import InstructionDifferences
from etude.why.instrumented_pairs import Instrumented
from etude.why.instruments import CallCount

CAUSE, PROCESS, DIFFERENCE, SHARE = "cause", "process", "difference", "share of the difference"
FUNCTION, PROGRAM = "function", "program"
CALL, FILE = "call", "file"
DEAR_FROM = 0.1
PART_BELOW, CHANGED = 0.7, 1.5
PART = "the instrument has seen {} of a run's time only: causes are of that part"
DEAR = "the instrument costs more than 10 %: with it, system calls and switches between threads take a larger part"
COUNTS = "Calls whose number or bytes differ between all runs of one test and all of the other"
CAUSES = "Causes whose time differs, on the critical path"


def headline(a: str, b: str, plain: Contribution, typical_s: float) -> str:
    """`B takes 8.2 % (7.1 % to 9.3 %) longer than A: 82 ms.`"""
    low, high = (end / typical_s for end in (plain.low_s, plain.high_s))
    size = percent(plain.mean_s / typical_s)
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
        case "recorded call":
            return f"{cause.name}() of {cause.caller}" if cause.caller else f"{cause.name}()"
        case "start":
            return "exec: a program is started"
        case _:
            return cause.name


def seconds_text(found: Contribution) -> str:
    """`82.1 ms (70.2 ms to 94.0 ms)`."""
    return f"{quantity(found.mean_s, 's')} ({quantity(found.low_s, 's')} to {quantity(found.high_s, 's')})"


def share_text(found: Contribution, whole: Contribution) -> str:
    """Share of the whole difference, with its interval; a dash if that difference may be 0."""
    if not whole.is_told:
        return "–"
    ends = sorted(each / whole.mean_s for each in (found.low_s, found.high_s))
    return f"{percent(found.mean_s / whole.mean_s)} ({percent(ends[0])} to {percent(ends[1])})"


def rest_line(found: Split) -> str:
    """The difference without the listed causes."""
    share = f", {share_text(found.rest, found.whole)} of it" if found.whole.is_told else ""
    rest = f"{seconds_text(found.rest)}{share}"
    if not found.listed:
        return f"No cause differs significantly. The difference with the instrument: {seconds_text(found.whole)}."
    kind = (
        "also differs, by no single cause that is significant" if found.rest.is_told else "is not significant"
    )
    return f"The rest {kind}: {rest}."


def count_text(count: CallCount) -> str:
    """`12,000 (46.9 MiB, 31.0 ms)`."""
    moved = [quantity(count.bytes, "B")] if count.bytes else []
    within = [*moved, *([quantity(count.seconds, "s")] if count.seconds else [])]
    return f"{count.count:,}" + (f" ({', '.join(within)})" if within else "")


def counts_note(found: Sequence[CountDifference]) -> str:
    """A note if numbers of calls vary from run to run; empty if none does."""
    return (
        "" if all(each.exact for each in found) else "Numbers of calls that vary from run to run are medians."
    )


def instructions_line(a: str, b: str, found: InstructionDifferences) -> str:
    """Instructions of both tests, and whether their numbers vary."""
    varies = "the same in each run" if found.exact else "medians of runs that vary"
    ratio = f"{found.whole.b / found.whole.a:.4f} × " if found.whole.a else ""
    return (
        f"Instructions in user space, {varies}: {b} needs {found.whole.b:,}, {ratio}those of {a} ({found.whole.a:,}). "
        f"Functions whose numbers differ{'' if found.listed else ': none'}"
    ) + (":" if found.listed else ".")


def cost_line(found: Instrumented, split: Split) -> str:
    """Pairs, causes that were looked at, and what the instrument costs."""
    spent = cost(found.plain_s, found.runs)
    change, low, high = map(percent, (spent.change, spent.low, spent.high))
    pairs = counted(split.pairs, "pair")
    pairs += f", {len(split.left_out)} with a delayed run left out" if split.left_out else ""
    return (
        f"{pairs}; intervals of 95 % for all {counted(split.looked_at, 'cause')} at once. "
        f"With the instrument {found.a} takes {spent.a:.3f} and {found.b} {spent.b:.3f} times as long: "
        f"the ratio changes by {change} ({low} to {high})."
    )


def doubts(found: Instrumented) -> list[str]:
    """Reasons why causes are less certain than their intervals."""
    spent, runs = cost(found.plain_s, found.runs), [run for side in found.runs for run in side]
    lost = sum(run.lost > 0 for run in runs)
    return [
        *(
            [f"perf lost events in {lost} of {counted(len(runs), 'run')}: their causes are less exact"]
            * bool(lost)
        ),
        *([DEAR] * (spent.certain > 1 + DEAR_FROM)),
        *([PART.format(percent(min(spent.a, spent.b)))] * (min(spent.a, spent.b) < PART_BELOW)),
        *_changed(found),
    ]


PAGE = {"causes": "Causes", "flame-graph": "Functions", "calls": "Calls", "files": "Files"}
PAGE |= {"processes": "Processes", "notes": "Notes"}
"""Headings of the page's sections."""
MEANS = {"longer": "takes longer", "shorter": "takes less time"}
REST = "the rest"
MEANING, NOT_DRAWN, PLACE, TIME = "Meaning", "Not drawn", "program or library", "time"
NO_STACKS = (
    "These pairs were measured by an Étude that kept no stacks: there is no flame graph. "
    "Pairs in another directory (-o) have one."
)
FLAME = (
    "Stacks of the critical path, the process at the bottom. Width: mean time of both tests together. "
    "Colour: difference of the function with all that it calls; the strongest is the largest. Single colours have no "
    "interval: the table of causes has."
)
SMALL = "Functions below 0.05 % of the width."
FLAME_LABEL = "Differential flame graph"
FLAME_HELP = "Click a function to zoom. Keyboard: arrow keys move, Enter zooms, Escape shows the whole graph."


def frame_text(a_s: float, b_s: float) -> str:
    """`A 12.3 ms, B 15.0 ms, +2.7 ms`: without parentheses, which part a function's name from it."""
    more = b_s - a_s
    return f"A {quantity(a_s, 's')}, B {quantity(b_s, 's')}, {'+' if more > 0 else ''}{quantity(more, 's')}"


def legend(a: str, b: str) -> tuple[str, str, str]:
    """Names of the colours: longer, as long, and less time in the second test."""
    return f"longer in {b} (B)", "as long", f"longer in {a} (A)"


def waterfall_caption(a: str, b: str, found: Split, from_zero: bool) -> str:
    """Caption of the waterfall."""
    axis = "" if from_zero else " The axis does not begin at 0."
    return (
        f"From the time of {a} to that of {b} with the instrument: each cause with its interval (95 %, all "
        f"{counted(found.looked_at, 'cause')} at once), then the rest.{axis}"
    )


def parts_caption(what: str, listed: int, count: int) -> str:
    """The caption of a table of parts, of calls, or of files."""
    left = f" The {listed} with the largest difference of {count}." if count > listed else ""
    return f"{what}{left}"


PROCESSES = "Time of each process on the critical path; intervals of 95 % for all at once."
PLACES = (
    "Time on the critical path by the program, library or part of the kernel whose code ran or blocked; "
    "intervals of 95 % for all at once."
)
FILES = "Time within calls about each file, of all threads, under the recorder; intervals of 95 % for all at once."
CALLS = "All calls under the recorder, means of the runs; times of all threads."
MEDIANS = f"{COUNTS}; medians."
NO_PLACE = "(waiting for a CPU, or not known)"


def _changed(found: Instrumented) -> Iterator[str]:
    """Tests whose plain times beside the instruments are others than in the results that are explained."""
    for name, stored_s, times in zip((found.a, found.b), found.stored_s or (), found.plain_s, strict=False):
        mean_s = sum(times) / len(times)
        if stored_s and not 1 / CHANGED < mean_s / stored_s < CHANGED:
            yield (
                f"{name} takes {quantity(mean_s, 's')} here and took {quantity(stored_s, 's')} in the results: were "
                "the program, its data or its environment changed?"
            )
