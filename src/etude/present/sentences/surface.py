"""Sentences on a surface: its optimum, what limits it, ranges, effects, accuracy and cost."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from etude.surface.effects import Interaction, MainEffect
from etude.surface.ranges import NOTHING, BreakEven, Crossover, Limit, Range
from etude.surface.summary import Accuracy, CostSummary, Missed, Optimum, Summary
from etude.surface.surface_result import joined, span_text, value_text
from etude.units.formatting import counted, digits, duration, percent

MOST_INTERACTIONS, MOST_CROSSOVERS, MOST_SETTINGS = 3, 6, 6
MOST_MISSED = 3
MOST_NAMED = 4
"""Maximum number of cells that are named as equal to the best."""


def summary_lines(said: Summary) -> list[tuple[str, tuple[str, ...]]]:
    """Headings with their sentences, without headings that have none."""
    if said.optimum is None:
        limits = (limits_text(said.limits),)
        return [
            ("Optimum", ("Nothing is known yet.",)),
            ("What limits", limits),
            ("Cost", (cost_text(said.spent),)),
        ]
    ranges = tuple(
        range_text(line, several=len(each) > 1)
        for overall, each in said.ranges
        for line in _told(overall, each)
    )
    parts = [
        ("Optimum", optimum_lines(said.optimum)),
        ("What limits", (limits_text(said.limits),)),
        ("Effective range", ranges),
        ("Main effects", tuple(map(effect_text, said.effects))),
        ("Interactions", tuple(map(interaction_text, said.interactions[:MOST_INTERACTIONS]))),
        ("Crossovers", tuple(map(crossover_text, said.crossovers[:MOST_CROSSOVERS]))),
        ("Break-even", break_even_lines(said.break_evens)),
        ("Accuracy", (accuracy_text(said.accuracy),) if said.accuracy and said.spent.predicted else ()),
        ("Cost", (cost_text(said.spent),)),
    ]
    return [(heading, lines) for heading, lines in parts if lines]


def _told(overall: Range, each: tuple[Range, ...]) -> list[Range]:
    """The overall range, and the ranges of the settings that differ from it."""
    others = [r for r in each if (r.low, r.high) != (overall.low, overall.high)]
    return [overall, *(others if len(others) <= MOST_SETTINGS else [])]


def optimum_lines(found: Optimum) -> tuple[str, ...]:
    """Lines on the best response, what cannot be distinguished from it, and whether it lies at an edge."""
    best, names = found.best, found.alike_names
    kind = "" if best.state == "measured" else f" ({best.state}, not measured)"
    value, span = value_text(best.value, found.unit), span_text(best.low, best.high, found.unit)
    lines = [f"Best {found.response}: {value} ({span}) at {found.name}{kind}."]
    if names:
        lines.append(
            f"{counted(len(names), 'other configuration')} not significantly different from it: {_some(names)}."
        )
    if found.edges:
        edges = joined(found.edges)
        lines.append(f"It is at the edge of the tested levels ({edges}): better ones may exist beyond it.")
    return tuple(lines)


def accuracy_text(found: Accuracy) -> str:
    """`Predictions are off by 9.1 % on average (6.0 % … 12 %; …)`."""
    return (
        f"Predictions are off by {percent(found.mape)} on average ({percent(found.low)} … {percent(found.high)}), "
        f"by {percent(found.worst)} at most: each of {counted(found.count, 'measured configuration')} predicted "
        "from all others."
    )


def cost_text(found: CostSummary) -> str:
    """`12 of 32 cells measured, 20 predicted: 212 trials, 14.2 h of bench time.`."""
    further = [
        f"{count} {word}"
        for count, word in (
            (found.predicted, "predicted"),
            (found.bounded, "with a bound only"),
            (found.failed, "unknown"),
        )
        if count
    ]
    told = ", ".join([f"{found.measured} of {counted(found.cells, 'configuration')} measured", *further])
    return f"{told}: {counted(found.trials, 'trial')}, {duration(found.bench_s)} of benchmarking time."


def limit_text(found: Limit) -> str:
    """`disks=1 nfsds=64: disks (+93 %, elasticity 0.95)`."""
    if found.factor is None:
        return f"{found.name}: {NOTHING}"
    how = " by its last step" if found.beyond else ""
    sure = "" if found.sure else ", not significantly different from 0"
    return f"{found.name}: {found.factor} (+{percent(found.gain)}{how}, elasticity {digits(found.elasticity, 2)}{sure})"


def range_text(found: Range, *, several: bool = False) -> str:
    """`nfsds (disks=1): works from 1 to 16; beyond, it changes less than 5 % (the intervals allow 9 %)`."""
    every = "over all settings of the others" if several else ""
    where = f" ({found.setting or every})" if found.setting or every else ""
    if found.none:
        return f"{found.factor}{where}: changes the response by less than {percent(found.little)}"
    told = f"{found.factor}{where}: works from {found.levels[found.low]} to {found.levels[found.high]}"
    if found.open:
        told += ", the highest level tested"
    if found.turn is not None:
        ends = ("highest", "falls") if found.rises else ("lowest", "rises")
        told += f": the response is {ends[0]} at {found.levels[found.turn]}, and {ends[1]} from there on"
    if found.shown < found.high:
        told += (
            f" (significant up to {found.levels[found.shown]})"
            if found.shown > found.low
            else " (no significant effect)"
        )
    if found.open:
        return told
    could_be = percent(found.could_be) if math.isfinite(found.could_be) else "any change"
    return f"{told}; beyond, it changes less than {percent(found.little)} (the intervals allow {could_be})"


def break_even_text(found: BreakEven) -> str:
    """`disks (nfsds=16): 500 from 2 on (surely 3, not below 2)`."""
    where = f"{found.factor} ({found.setting})" if found.setting else found.factor
    target = f"{found.target:g}"
    if found.level is None:
        perhaps = f"; perhaps at {found.earliest}" if found.earliest is not None else ""
        return f"{where}: {target} is not reached{perhaps}"
    surely = f"surely {found.surely}" if found.surely is not None else "surely at none"
    return f"{where}: {target} from {found.level} on ({surely}, not below {found.earliest})"


def effect_text(found: MainEffect) -> str:
    """`nfsds: from 1 to 64 × 3.2 (2.9–3.6)`."""
    at = found.largest
    if not any(found.ratios[1:]):
        return f"{found.factor}: not known, no two known configurations differ in it alone"
    first = f"{found.factor}: from {found.levels[0]} to {found.levels[at]}"
    if at == 0 or found.ratios[at] is None:
        return f"{found.factor}: changes nothing"
    told = f"{first} {found.ratios[at]}"
    return told if found.ratios[at].differs else f"{told}: not significantly different from no effect"  # type: ignore[union-attr]


def interaction_text(found: Interaction) -> str:
    """`disks and nfsds: what disks=4 does against disks=1 is × 2.1 (1.8–2.5) as much at nfsds=64 as at nfsds=1`."""
    a, b = found.factors
    told = (
        f"{a} and {b}: what {a}={found.first[1]} does against {a}={found.first[0]} is {found.ratio} as much "
        f"at {b}={found.second[1]} as at {b}={found.second[0]}"
    )
    return told if found.ratio.differs else f"{told}: not significant"


def crossover_text(found: Crossover) -> str:
    """`fs: xfs overtakes ext4 at threads ≈ 6.3 (4.1 … 9.8)`."""
    ends = ["?" if end is None else digits(end, 3) for end in (found.low, found.high)]
    where = f" ({found.setting})" if found.setting else ""
    return (
        f"{found.factor}{where}: {found.over} overtakes {found.under} at {found.along} ≈ "
        f"{digits(found.at, 3)} ({ends[0]} … {ends[1]})"
    )


def limits_text(found: tuple[Limit, ...]) -> str:
    """`disks limits 12 of 32 cells, nfsds 16, and nothing that was varied 4.`."""
    counts = Counter(each.factor for each in found)
    named = [(name or NOTHING, count) for name, count in counts.most_common()]
    if not named:
        return "The limiting factor is unknown."
    (first, count), *rest = named
    told = [f"{first} limits {count} of {len(found)} configurations", *(f"{name} {n}" for name, n in rest)]
    doubtful = [each.name for each in found if each.factor is not None and not each.sure]
    more = f"; the gain is not significant at {_some(doubtful)}" if doubtful else ""
    return f"{joined(told)}{more}."


def missed_lines(missed: Sequence[Missed]) -> tuple[str, ...]:
    """Line on the measured configurations that did not meet their target, each with its reason; none without any."""
    if not missed:
        return ()
    told = "; ".join(f"{each.name} ({each.why})" if each.why else each.name for each in missed[:MOST_MISSED])
    more = f"; and {len(missed) - MOST_MISSED} more" if len(missed) > MOST_MISSED else ""
    which = counted(len(missed), "measured configuration")
    return (f"not converged: {which} did not meet the target: {told}{more}.",)


def unmeasured_lines(names: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Line on the configurations of each state that is not *measured*: `Predicted: disks=1 nfsds=4.`"""
    words = {"bounded": "with a bound only"}
    return tuple(f"{words.get(state, state).capitalize()}: {_some(each)}." for state, each in names.items())


def _some(names: Sequence[str]) -> str:
    more = [f"{len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else []
    return joined([*names[:MOST_NAMED], *more])


def break_even_lines(found: Sequence[BreakEven], most: int = 4) -> tuple[str, ...]:
    """Line per setting; if a factor has many settings, line with the counts of levels that reach the target."""
    lines: list[str] = []
    for factor in dict.fromkeys(each.factor for each in found):
        mine = [each for each in found if each.factor == factor]
        if len(mine) <= most:
            lines += [break_even_text(each) for each in mine]
            continue
        counts = Counter(each.level for each in mine)
        told = [f"{counts[level]} from {level} on" for level in counts if level is not None]
        told += [f"{counts[None]} never"] if counts[None] else []
        lines.append(
            f"{factor}: {mine[0].target:g} is reached, of {len(mine)} settings of the others, "
            f"in {joined(told)}"
        )
    return tuple(lines)
