"""What a trial costs with all that is done around it: hooks, probes, caches, writing to disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from etude.results.reader import Results
from etude.results.samples import trials_of

NS_PER_S = 1e9


def seconds_per_trial(results: Results, tests: Sequence[str]) -> float | None:
    """Mean time from one trial's start to the next's, of trials of these tests in one sitting, in seconds.

    What ran in between is in it: the reference against itself, the empty shell, a trial that failed. None where no
    sitting has two trials whose start is known.
    """
    spans, steps = 0.0, 0
    for starts in _starts(results, tests).values():
        spans += (max(starts) - min(starts)) / NS_PER_S
        steps += len(starts) - 1
    return spans / steps if spans > 0.0 else None


def _starts(results: Results, tests: Sequence[str]) -> dict[tuple[int, str], list[int]]:
    """By sitting and boot (the clock of another boot is another clock), when trials began, ns."""
    found: dict[tuple[int, str], list[int]] = {}
    for name in tests:
        for place, start in _of_test(results, name):
            found.setdefault(place, []).append(start)
    return found


def _of_test(results: Results, name: str) -> Iterator[tuple[tuple[int, str], int]]:
    for trial in trials_of(results.measurements[name]):
        known = [m.start_ns for m in trial.measurements if m.start_ns is not None]
        if known:
            yield (trial.first.sitting, trial.first.boot_id), min(known)
