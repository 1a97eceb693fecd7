"""From measurements to samples: trials, the values of one metric, and pairs within blocks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from etude.results.model import Joined, Measurement, join_trial

LATEST_NS, LONGEST_S = 2**62, 1e9
"""What no clock says and no trial lasts: such numbers are another's, and not taken for times."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One execution of a test: the measurements of its workers, of each command that they ran."""

    measurements: tuple[Measurement, ...]

    @property
    def first(self) -> Measurement:
        """The first command of the first worker. What the whole trial shares stands in each line, so in this one, too:
        number, block, sitting, whether it is kept and why not, launches, cache."""
        return self.measurements[0]

    @property
    def kept(self) -> bool:
        return self.first.kept

    def metrics(self) -> tuple[str, ...]:
        """The names of all its metrics: a command may have some that others lack."""
        return tuple(dict.fromkeys(name for m in self.measurements for name in m.metrics))

    def value(self, metric: str) -> float | None:
        """The metric joined over each worker's commands, then over the workers; None where it was not measured."""
        return self.joined(metric).value

    def joined(self, metric: str) -> Joined:
        """The metric's value, and how workers and commands were joined."""
        if len(self.measurements) == 1:
            found = self.measurements[0].metrics.get(metric)
            return Joined(found[0] if found else None)
        return join_trial(self.measurements, metric)

    def span_ns(self) -> tuple[int, int]:
        """From its first start to its last end, ns of the monotonic clock of its first worker's host; -1 where unknown.

        A program's `elapsed` is per launch; launches of one trial follow each other (docs/formats.md).
        """
        host = self.first.host
        ends = [
            (m.start_ns, m.start_ns + round(lasted * 1e9))
            for m in self.measurements
            if m.start_ns is not None
            and m.start_ns < LATEST_NS
            and m.host == host
            and (elapsed := m.value("elapsed")) is not None
            and 0 <= (lasted := elapsed * m.inner) < LONGEST_S
        ]
        return (min(start for start, _ in ends), max(end for _, end in ends)) if ends else (-1, -1)


def trials_of(measurements: Iterable[Measurement]) -> list[Trial]:
    """The trials of one test, in the order in which they were made."""
    grouped: dict[int, list[Measurement]] = {}
    for measurement in measurements:
        grouped.setdefault(measurement.trial, []).append(measurement)
    return [Trial(tuple(rows)) for rows in grouped.values()]


def sample(trials: Iterable[Trial], metric: str) -> list[float]:
    """The metric's values over the kept trials that have one."""
    values = (trial.value(metric) for trial in trials if trial.kept)
    return [value for value in values if value is not None]


def paired_samples(
    tests: Sequence[Iterable[Trial]], metric: str, stretches: Mapping[int, int] = MappingProxyType({})
) -> tuple[list[float], ...]:
    """For each test the metric's values, aligned: index i is one block, complete in all tests and in one sitting.

    A block that an interruption tore in two joins no pair: its halves saw two states of the machine. `stretches`:
    of each sitting (`etude.results.stretches`); sittings of one stretch count as one.
    """
    blocks = [_by_block(trials, metric, stretches) for trials in tests]
    shared = set(blocks[0]).intersection(*blocks[1:])
    return tuple([values[block] for block in sorted(shared)] for values in blocks)


def _by_block(
    trials: Iterable[Trial], metric: str, stretches: Mapping[int, int]
) -> dict[tuple[int, int], float]:
    values = {}
    for trial in trials:
        value = trial.value(metric) if trial.kept else None
        if value is not None:
            sitting = trial.first.sitting
            values[stretches.get(sitting, sitting), trial.first.block] = value
    return values
