"""Two sides of the store compared: every test and metric that both have, machine by machine.

What changes between sessions is in all trials of a session alike. It is taken from the history of that test on that
machine, steps taken out; where that is too short, from several results a side; else the comparison is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from etude.history.metric_history import course_of, facts_that_differ, is_other_machine
from etude.history.selection import Selection
from etude.stats.cross_session import FEWEST, CrossSessionRatio, NotSupported, SessionSpread, compare_sessions
from etude.stats.means import Kind, average
from etude.stats.ratio import Ratio, ratio_of_fitting_means, unpaired_mean_ratio, unpaired_ratio
from etude.store.entry import Entry

FEWEST_A_SIDE = 2
"""Results of either side from which the spread between results is taken, where the history is too short."""


@dataclass(frozen=True)
class Compared:
    """One metric of one test, other/base."""

    test: str
    metric: str
    unit: str
    kind: str
    base: tuple[Entry, ...]
    other: tuple[Entry, ...]
    found: CrossSessionRatio | Ratio | NotSupported
    """The ratio, as one of all that are judged at once: their intervals hold together."""
    differences: tuple[str, ...]
    """Differing facts of the machines; differing names first."""

    @property
    def same_machine(self) -> bool:
        """True if both sides were measured on one machine that nothing recorded has changed."""
        return not self.differences


def compare_sides(base: Selection, other: Selection, stored: Sequence[Entry]) -> tuple[Compared, ...]:
    """All that both have: on each machine that both have; and where they share none, over machines, which is told.

    stored: all entries, ordered as histories, from which the spread between sessions is known.
    """
    found = []
    for key, before in _groups(base.entries).items():
        after = _groups(other.entries).get(key, {})
        names = [name for name in before if name in after]
        pairs = [(name, name) for name in names] or [
            (a, b) for a in list(before)[:1] for b in list(after)[:1]
        ]
        for name, its in pairs:
            found += list(_compared(before[name], after[its], stored))
    judged = sum(not isinstance(each.found, NotSupported) for each in found)
    return tuple(
        each if isinstance(each.found, NotSupported) else replace(each, found=each.found.among(judged))
        for each in found
    )


Key = tuple[str, str, str]


def _groups(entries: Sequence[Entry]) -> dict[Key, dict[str, list[Entry]]]:
    """Entries by test, metric and unit; then by machine."""
    found: dict[Key, dict[str, list[Entry]]] = {}
    for entry in entries:
        if entry.values:
            key = (entry.test, entry.metric, entry.unit)
            found.setdefault(key, {}).setdefault(entry.machine.name, []).append(entry)
    return found


def _compared(base: Sequence[Entry], other: Sequence[Entry], stored: Sequence[Entry]) -> Iterator[Compared]:
    first, last = base[0], other[-1]
    if first.kind == "binary" or min(min(e.values) for e in (*base, *other)) <= 0.0:
        return
    differs: tuple[str, ...] = ()
    if first.machine.name != last.machine.name:
        differs = (f"machine: {first.machine.name} → {last.machine.name}",)
    if is_other_machine(first.machine, last.machine):
        differs += facts_that_differ(first.machine, last.machine) or ("what is not recorded",)
    ratio = _ratio(base, other, stored, same=not differs)
    yield Compared(
        first.test, first.metric, first.unit, first.kind, tuple(base), tuple(other), ratio, differs
    )


def _ratio(
    base: Sequence[Entry], other: Sequence[Entry], stored: Sequence[Entry], *, same: bool
) -> CrossSessionRatio | Ratio | NotSupported:
    kind = cast(Kind, base[0].kind)
    if shared := sorted({e.result for e in base} & {e.result for e in other}):
        which = f"result{'s' * (len(shared) > 1)} {', '.join(map(str, shared))}"
        verb = "is" if len(shared) == 1 else "are"
        return NotSupported(
            f"{which} {verb} on both sides", len(shared), 1, "name sides of different results"
        )
    if min(len(base), len(other)) >= FEWEST_A_SIDE:
        before, after = ([average(e.values, kind).mean for e in side] for side in (base, other))
        return ratio_of_fitting_means(before, after, kind, unpaired_mean_ratio) or unpaired_ratio(
            before, after
        )
    samples = [np.concatenate([np.asarray(e.values) for e in side]) for side in (base, other)]
    if min(sample.size for sample in samples) < 2:
        return NotSupported("a result of one trial has no spread", 1, 1, "measure each at least twice")
    between = _between(base[0], other[-1], stored, same)
    return compare_sessions(samples[0], samples[1], between, kind=kind)


def _between(base: Entry, other: Entry, stored: Sequence[Entry], same: bool) -> SessionSpread | NotSupported:
    """Spread of this test's results around their level on the base's machine, from its history without its steps."""
    alike = [
        e
        for e in stored
        if (e.test, e.metric, e.unit, e.machine.name)
        == (base.test, base.metric, base.unit, base.machine.name)
        and e.values
        and min(e.values) > 0.0
    ]
    if len(alike) < FEWEST:
        reason = f"the variation between sessions is unknown from {len(alike)} stored results on {base.machine.name}"
        remedy = "store more results of it, or run both interleaved: etude bench"
        return NotSupported(reason, len(alike), FEWEST - len(alike), remedy)
    found = course_of(alike).found
    drift = 0.0 if found.drift is None else found.drift.change
    drifting = drift / math.sqrt(12.0)  # it parts results of different days
    return SessionSpread(math.hypot(found.noise.with_wild, drifting), found.noise.degrees, len(alike))
