"""What became of requests at one load."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from etude.peak.slo_ratio import load_figures
from etude.peak.task import Trial
from etude.peak.window import Window
from etude.results.histograms import Histogram


def trial(answers: int, failed: int = 0, **changes: float) -> Trial:
    """Each answer took as many ms as its number."""
    values = np.arange(1, answers + 1) * 1_000_000
    latency = Histogram(values, np.ones_like(values))
    window = Window(10.0, answers + failed, answers, failed, float(values.mean()) * 1e-9, latency)
    return Trial(100.0, 10.0, (window,), 12.0, **changes)  # type: ignore[arg-type]


def test_trials_at_a_load_are_taken_together() -> None:
    figures = load_figures([trial(1000, generator_busy=0.2), trial(1000, 500, lateness_p99_s=0.003)])
    assert (figures.offered, figures.completed, figures.errors) == (125.0, 100.0, 0.2)
    assert figures.mean_s == pytest.approx(0.5005)
    assert figures.quantiles_s == pytest.approx({"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999})
    assert (figures.lateness_p99_s, figures.headroom) == (0.003, pytest.approx(0.75))


def test_each_trial_counts_once_in_the_mean_as_in_its_readings() -> None:
    assert load_figures([trial(1000), trial(100)]).mean_s == pytest.approx((0.5005 + 0.0505) / 2)


def test_a_quantile_of_too_few_answers_is_not_known() -> None:
    known = {name for name, value in load_figures([trial(999)]).quantiles_s.items() if value is not None}
    assert known == {"p50", "p90", "p99"}
    assert load_figures([trial(99)]).quantiles_s["p99"] is None


def test_requests_without_an_answer_are_in_the_quantiles_of_every_trial() -> None:
    """100 of 1100 wait for 50 s each at the end of either trial: 9 % of all."""
    (window,) = trial(1000).windows
    stuck = replace(window, offered=1100, under_way=100, waited_s=5000.0)
    overloaded = replace(trial(1000), windows=(stuck,))
    quantiles = load_figures([overloaded, overloaded]).quantiles_s
    assert quantiles["p90"] == pytest.approx(0.99)
    assert quantiles["p99"] == 50.0
    assert load_figures([overloaded, trial(1000)]).quantiles_s["p99"] == 50.0
