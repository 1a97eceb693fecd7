"""Values that two tests have in common blocks, and the machine of each pair."""

from __future__ import annotations

from itertools import compress
from typing import NamedTuple

import numpy as np

from etude.results.series import Floats, Series
from etude.stats.levels import group_means


class Pairs(NamedTuple):
    """Values of two tests in common blocks; shape (pairs,) each."""

    base: Floats
    other: Floats
    machines: tuple[str, ...]
    """Machine of each pair; all empty if unknown."""

    @property
    def several(self) -> bool:
        """True if the pairs come from more than one machine."""
        return len(set(self.machines)) > 1


def pairs_of(base: Series, other: Series, metric: str) -> Pairs:
    """Values of both tests in each block that is complete and within one session group."""
    kept = [_by_block(series, metric) for series in (base, other)]
    _, first, second = np.intersect1d(kept[0][0], kept[1][0], assume_unique=False, return_indices=True)
    machines = machines_of(base, metric)
    return Pairs(kept[0][1][first], kept[1][1][second], tuple(machines[place] for place in first))


def paired_values(base: Series, other: Series, metric: str) -> tuple[Floats, Floats]:
    """The values of `pairs_of`."""
    return pairs_of(base, other, metric)[:2]


def samples(base: Series, other: Series, metric: str) -> tuple[Floats, Floats]:
    """Values of both tests. If both were measured by several processes, these are the means of each process, since
    values of one process are not independent."""
    found = [_by_process(series, metric) for series in (base, other)]
    if min(means.size for means in found) >= 2:
        return found[0], found[1]
    return base.sample(metric), other.sample(metric)


def _by_process(series: Series, metric: str) -> Floats:
    column, labels = series.column(metric), series.labels.get("process")
    if column is None or not labels:
        return np.empty(0)
    there = series.kept & np.isfinite(column.values)
    _, groups = np.unique(np.array(labels)[there], return_inverse=True)
    return group_means(column.values[there], groups) if groups.size else np.empty(0)


def machines_of(series: Series, metric: str) -> list[str]:
    """Machine of each value of `Series.sample`; empty names if unknown."""
    column, names = series.column(metric), series.labels.get("machine") or ("",) * series.trials.size
    if column is None:
        return []
    there = series.kept & np.isfinite(column.values)
    return list(compress(names, there.tolist()))


def _by_block(series: Series, metric: str) -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.int64]], Floats]:
    column = series.column(metric)
    if column is None or series.blocks is None:
        return np.empty(0, dtype=np.int64), np.empty(0)
    there = series.kept & np.isfinite(column.values)
    blocks = series.blocks[there]
    sittings = series.sittings if series.stretches is None else series.stretches
    if sittings is not None:
        blocks = blocks + (sittings[there] << 40)
    return blocks, column.values[there]
