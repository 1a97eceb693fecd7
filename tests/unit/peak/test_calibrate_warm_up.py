"""The warm-up that trials show."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from etude.peak.calibrate import warm_up_s
from etude.peak.task import Trial
from support.policy_simulator import task, trial

STEADY = [0.5] * 12


def noisy(readings: Sequence[float], trials: int = 5, noise: float = 0.1) -> list[Trial]:
    rng = np.random.default_rng(7)
    return [
        trial(400.0, [each * float(np.exp(noise * rng.normal())) for each in readings]) for _ in range(trials)
    ]


@pytest.mark.parametrize(
    ("readings", "expected_s"),
    [
        (STEADY, 0.0),
        ([0.9, 0.8, 0.7] + [0.5] * 9, 30.0),
        # Quicker at first is no warm-up.
        ([0.3, 0.3] + [0.5] * 10, 0.0),
        # Longer than half of a trial.
        ([0.9] * 8 + [0.5] * 4, 60.0),
    ],
)
def test_the_warm_up_ends_with_the_last_window_that_is_slower(
    readings: Sequence[float], expected_s: float
) -> None:
    assert warm_up_s(task(), noisy(readings)) == pytest.approx(expected_s)


def test_few_trials_or_windows_and_trials_that_are_too_much_show_none() -> None:
    assert warm_up_s(task(), noisy(STEADY, trials=2)) is None
    assert warm_up_s(task(), [trial(400.0, [0.5] * 5)] * 5) is None
    assert warm_up_s(task(), [trial(400.0, [3.0] * 12)] * 5) is None
