"""Measurements of an experiment so far, in the form that the trial loop and the stop rule need."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from etude.results.model import LATEST_NS, MAX_DURATION_S, Joined, Measurement, join_trial, metric_kind

NS_PER_S = 1e9


@dataclass(frozen=True, slots=True)
class Trial:
    """One execution of a test: the measurements of its workers, one for each command."""

    measurements: tuple[Measurement, ...]

    @property
    def first(self) -> Measurement:
        """The first command of the first worker. Members of the whole trial are the same in each line: number, block,
        session, whether it is included and why not, launches, cache."""
        return self.measurements[0]

    @property
    def kept(self) -> bool:
        return self.first.kept

    def metrics(self) -> tuple[str, ...]:
        """Names of all its metrics: a command may have some that others lack."""
        return tuple(dict.fromkeys(name for m in self.measurements for name in m.metrics))

    def value(self, metric: str) -> float | None:
        """The metric joined over each worker's commands, then over the workers; None if it was not measured."""
        return self.joined(metric).value

    def joined(self, metric: str) -> Joined:
        """The metric's value, and how workers and commands were joined."""
        if len(self.measurements) == 1:
            found = self.measurements[0].metrics.get(metric)
            return Joined(found[0] if found else None)
        return join_trial(self.measurements, metric)

    def span_ns(self) -> tuple[int, int]:
        """First start and last end, ns of the monotonic clock of its first worker's host; -1 if unknown.

        A program's `elapsed` is per launch; launches of one trial follow each other (docs/reference/formats.md).
        """
        host = self.first.host
        ends = [
            (m.start_ns, m.start_ns + round(lasted * 1e9))
            for m in self.measurements
            if m.start_ns is not None
            and m.start_ns < LATEST_NS
            and m.host == host
            and (elapsed := m.value("elapsed")) is not None
            and 0 <= (lasted := elapsed * m.inner) < MAX_DURATION_S
        ]
        return (min(start for start, _ in ends), max(end for _, end in ends)) if ends else (-1, -1)


def trials_of(measurements: Iterable[Measurement]) -> list[Trial]:
    """The trials of one test, in the order in which they were made."""
    grouped: dict[int, list[Measurement]] = {}
    for measurement in measurements:
        grouped.setdefault(measurement.trial, []).append(measurement)
    return [Trial(tuple(rows)) for rows in grouped.values()]


@dataclass
class _Column:
    """One metric over the included trials of one test that have it, as far as they were read."""

    seen: int = 0
    """Number of trials that were read."""
    values: array[float] = field(default_factory=lambda: array("d"))
    places: array[int] = field(default_factory=lambda: array("q"))
    """Positions of the values: session group and block, one after the other."""
    in_order: bool = True
    """True if positions are increasing."""

    def take(self, trial: Trial, metric: str, stretch: int) -> None:
        self.seen += 1
        value = trial.value(metric) if trial.kept else None
        if value is None:
            return
        place = (stretch, trial.first.block)
        self.in_order = self.in_order and (not self.places or tuple(self.places[-2:]) < place)
        self.values.append(value)
        self.places.extend(place)


class Progress:
    """Trials by test. It starts with those on disk when an experiment is resumed.

    Queries after each trial cost as much as what was added since: a long series is never read again.
    `stretches`: the session group of each session (`etude.results.results`).
    """

    def __init__(
        self,
        measured: Mapping[str, Sequence[Measurement]],
        stretches: Mapping[int, int] = MappingProxyType({}),
    ) -> None:
        self._stretches = stretches
        self._trials: dict[str, list[Trial]] = {}
        self._blocks: dict[str, set[int]] = {}
        self._unplaced_s: dict[str, float] = {}
        """Trials whose times are unknown."""
        self._spans: dict[str, dict[int, tuple[int, int]]] = {}
        """First start and last end of each test and session, ns."""
        self._columns: dict[tuple[str, str], _Column] = {}
        for name, rows in measured.items():
            self.begin(name)
            self.add(name, rows)

    def begin(self, test: str) -> None:
        """Add a test that was not known at the start."""
        if test not in self._trials:
            self._trials[test], self._blocks[test], self._spans[test] = [], set(), {}
            self._unplaced_s[test] = 0.0

    def add(self, test: str, measurements: Sequence[Measurement]) -> None:
        """Add complete trials of one test that are on disk now."""
        trials = trials_of(measurements)
        self._trials[test].extend(trials)
        for trial in trials:
            lasted = (trial.value("elapsed") or 0.0) * trial.first.inner
            if trial.kept:
                self._blocks[test].add(trial.first.block)
            start, end = trial.span_ns()
            if start < 0:
                self._unplaced_s[test] += lasted
                continue
            known = self._spans[test].get(trial.first.sitting, (start, end))
            self._spans[test][trial.first.sitting] = min(known[0], start), max(known[1], end)

    def trials(self, test: str) -> Sequence[Trial]:
        """All trials of a test, excluded ones included."""
        return self._trials[test]

    def measurements(self) -> dict[str, tuple[Measurement, ...]]:
        """All measurements by test, in the order in which they were made."""
        return {
            name: tuple(m for t in trials for m in t.measurements) for name, trials in self._trials.items()
        }

    def next_trial(self, test: str) -> int:
        """The number of the test's next trial."""
        trials = self._trials[test]
        return trials[-1].first.trial + 1 if trials else 0

    def has(self, test: str, block: int) -> bool:
        """True if the test has an included trial in that block."""
        return block in self._blocks[test]

    def kept(self, test: str) -> int:
        """Number of included trials."""
        return len(self._blocks[test])

    def count(self, test: str, metric: str) -> int:
        """Number of included trials that have the metric."""
        return len(self._column(test, metric).values)

    def sample(self, test: str, metric: str) -> Sequence[float]:
        """The metric over the included trials."""
        return self._column(test, metric).values[:]  # a copy: an array with a numpy view cannot grow

    def paired(self, tests: Sequence[str], metric: str) -> tuple[Sequence[float], ...]:
        """The metric over the complete blocks, aligned."""
        first, *others = (self._column(name, metric) for name in tests)
        if first.in_order and all(each.places == first.places for each in others):
            return tuple(self.sample(name, metric) for name in tests)
        return paired_samples([self._trials[name] for name in tests], metric, self._stretches)

    def unit(self, metric: str) -> str:
        """The unit of a metric, that of its first value; empty if there is none."""
        units = (
            m.metrics[metric][1]
            for trials in self._trials.values()
            for trial in trials
            for m in trial.measurements
            if metric in m.metrics
        )
        return next(units, "")

    def kind(self, metric: str) -> str:
        """The kind of a metric by its unit; a cost if it has no value."""
        return metric_kind(metric, self.unit(metric)).kind

    def sessions(self, tests: Sequence[str]) -> int:
        """The number of sessions in which these tests have trials whose time is known; at least 1."""
        return max(1, len({sitting for name in tests for sitting in self._spans[name]}))

    def spent_s(self, tests: Sequence[str]) -> float:
        """Wall-clock seconds from the first trial of these tests to the end of their last, summed over sessions.

        All other work in between is included; restarts of the machine are not.
        """
        spans: dict[int, tuple[int, int]] = {}
        for name in tests:
            for sitting, (start, end) in self._spans[name].items():
                known = spans.get(sitting, (start, end))
                spans[sitting] = min(known[0], start), max(known[1], end)
        placed_s = sum(end - start for start, end in spans.values()) / NS_PER_S
        return placed_s + sum(self._unplaced_s[name] for name in tests)

    def _column(self, test: str, metric: str) -> _Column:
        """The metric's column, updated with the trials since the last call."""
        column = self._columns.setdefault((test, metric), _Column())
        trials = self._trials[test]
        for place in range(column.seen, len(trials)):
            sitting = trials[place].first.sitting
            column.take(trials[place], metric, self._stretches.get(sitting, sitting))
        return column


def paired_samples(
    tests: Sequence[Iterable[Trial]], metric: str, stretches: Mapping[int, int] = MappingProxyType({})
) -> tuple[list[float], ...]:
    """The metric's values for each test, aligned: index i is one block, complete in all tests and in one session group.

    A block that was split by an interruption gives no pair: its halves saw two states of the machine. `stretches`:
    the session group of each session (`etude.results.results`).
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
