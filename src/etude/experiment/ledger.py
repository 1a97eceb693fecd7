"""What has been measured so far in this experiment, as the loop and the stop rule need to see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from etude.results.model import Measurement
from etude.results.samples import Trial, paired_samples, sample, trials_of


class Ledger:
    """Trials by test. It starts with those on disk when an experiment is resumed.

    `stretches`: of each sitting the one that it belongs to (`etude.results.stretches`).
    """

    def __init__(
        self,
        measured: Mapping[str, Sequence[Measurement]],
        stretches: Mapping[int, int] = MappingProxyType({}),
    ) -> None:
        self._stretches = stretches
        self._trials = {name: trials_of(rows) for name, rows in measured.items()}
        self._blocks = {
            name: {t.first.block for t in trials if t.kept} for name, trials in self._trials.items()
        }

    def begin(self, test: str) -> None:
        """Make room for a test that was not known at the start."""
        self._trials.setdefault(test, [])
        self._blocks.setdefault(test, set())

    def add(self, test: str, measurements: Sequence[Measurement]) -> None:
        """Note what is on disk now: whole trials of one test."""
        trials = trials_of(measurements)
        self._trials[test].extend(trials)
        self._blocks[test].update(t.first.block for t in trials if t.kept)

    def trials(self, test: str) -> Sequence[Trial]:
        """All trials of a test, set-aside ones included."""
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
        """Whether the test has a kept trial in that block."""
        return block in self._blocks[test]

    def kept(self, test: str) -> int:
        """Number of kept trials."""
        return len(self._blocks[test])

    def sample(self, test: str, metric: str) -> list[float]:
        """The metric over the kept trials."""
        return sample(self._trials[test], metric)

    def paired(self, tests: Sequence[str], metric: str) -> tuple[list[float], ...]:
        """The metric over the complete blocks, aligned."""
        return paired_samples([self._trials[name] for name in tests], metric, self._stretches)

    def measured_s(self, tests: Sequence[str]) -> float:
        """Seconds that the kept trials of these tests took, all launches of each included."""
        return sum(
            (trial.value("elapsed") or 0.0) * trial.first.inner
            for name in tests
            for trial in self._trials[name]
            if trial.kept
        )
