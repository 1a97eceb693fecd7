"""The noise of simulated servers goes through the paper's readings."""

import numpy as np
import pytest

from etude.peak.harnesses.simulated import NOISE, QUIET
from etude.peak.slo_ratio import Reading

TRIALS = 5_000


def trial_means(rho: float, runlength_s: float, window_s: float = 10.0, trials: int = TRIALS) -> np.ndarray:
    rng = np.random.default_rng(8)
    durations = np.full(round(runlength_s / window_s), window_s)
    return np.array([NOISE.draw(rng, rho, durations).mean() for _ in range(trials)])


@pytest.mark.parametrize(
    ("rho", "runlength_s", "accuracy"),
    [(0.3, 90, 0.87), (0.3, 300, 0.95), (0.9, 90, 0.851), (0.9, 120, 0.87)],
)
def test_five_trials_are_as_accurate_at_95_percent_as_the_paper_reads(rho, runlength_s, accuracy):
    """Accuracy of equation 2, with Student's interval, at the standard deviation that trials have."""
    means = trial_means(rho, runlength_s)
    cv = means.std() / means.mean()
    five = Reading(1.0, tuple(1 + cv * np.sqrt(4 / 5) * np.array([-1, -1, 0, 1, 1]) * np.sqrt(5 / 4)))
    assert np.std(five.values, ddof=1) == pytest.approx(cv)
    assert 1 - five.half_width(0.95) == pytest.approx(accuracy, abs=0.0035)
    # 1 % is the standard error of a standard deviation from 5 000 values; the start's tail is missing at 90 s.
    assert cv == pytest.approx(NOISE.cv(rho, runlength_s), rel=0.03)


@pytest.mark.parametrize(
    ("rho", "runlength_s", "cv"),
    [(0.3, 90, 0.1047), (0.3, 300, 0.0403), (0.9, 90, 0.1200), (0.9, 120, 0.1044)],
)
def test_the_law_gives_the_coefficients_of_variation_of_the_readings(rho, runlength_s, cv):
    assert NOISE.cv(rho, runlength_s) == pytest.approx(cv, abs=0.0001)


def test_the_law_at_the_peak_is_the_extrapolated_one():
    assert NOISE.cv(1.0, 180) == pytest.approx(0.1039, abs=0.0001)
    assert NOISE.white_s(5.0) == NOISE.white_s(1e9) == 5.0
    assert NOISE.startup_s(0.0) == 10.0
    assert NOISE.startup_s(0.9) == 0.0


@pytest.mark.parametrize("rho", [0.05, 0.3, 0.9, 1.5])
@pytest.mark.parametrize("window_s", [2.0, 10.0, 60.0])
def test_windows_are_right_on_average(rho, window_s):
    means = trial_means(rho, 60, window_s, 4000)
    assert means.mean() == pytest.approx(1, abs=4 * means.std() / np.sqrt(means.size))


def test_the_length_of_windows_does_not_change_what_a_trial_says():
    assert trial_means(0.6, 60, 60.0).std() == pytest.approx(trial_means(0.6, 60, 2.0).std(), rel=0.035)


def test_only_the_start_of_a_trial_is_transient():
    rng = np.random.default_rng(3)
    windows = np.array([NOISE.draw(rng, 0.3, np.full(18, 10.0)) for _ in range(5000)])
    first, last = windows[:, 0].std(), windows[:, -1].std()
    assert last == pytest.approx(np.sqrt(0.02**2 + 0.01173), rel=0.03)
    assert first == pytest.approx(np.sqrt(0.02**2 + 0.01173 + (0.866 * (1 - np.exp(-0.5))) ** 2), rel=0.03)


def test_the_quiet_law_has_no_noise():
    windows = QUIET.draw(np.random.default_rng(1), 0.9, np.full(5, 10.0))
    assert list(windows) == [1.0] * 5
