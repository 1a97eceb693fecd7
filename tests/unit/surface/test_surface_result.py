"""What is known of each cell, what it cost, and how good predictions are."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from etude.present.sentences.surface import cost_text, summary_lines
from etude.surface.samples import Sample
from etude.surface.summary import accuracy, cost_summary, summarise
from etude.surface.surface_result import Cost
from etude.surface.surrogates import Predicted
from support.golden import Golden
from support.made_surfaces import DISKS, FS, NFSDS, power, surface


def test_each_cell_is_measured_predicted_bounded_or_not_known() -> None:
    mapped = surface((DISKS,), lambda d: 100 * d, predicted=lambda n: n == 1, failed=[(2,)], bounded=[(3,)])
    states = [mapped.estimate(cell) for cell in mapped.space]
    assert [each.state for each in states] == ["measured", "predicted", "failed", "bounded"]
    assert [each.value for each in states] == [100, pytest.approx(200), None, None]
    assert states[1].low == pytest.approx(200 * math.exp(-1.96 * 0.02), rel=1e-4)
    assert states[2].why == "it died"
    assert (states[3].low, states[3].high) == (400, math.inf)
    assert mapped.unmeasured == ((1,), (2,), (3,))


def test_predictions_stay_within_what_was_measured() -> None:
    mapped = surface((DISKS,), lambda d: 100 * d, bounded=[(3,)])
    below = replace(mapped, predicted=Predicted(np.log([50.0]), np.array([0.1])))
    assert math.exp(below.filled.log[3]) == pytest.approx(400)


def test_a_prediction_of_which_nothing_can_be_said_is_not_known() -> None:
    mapped = surface((DISKS,), lambda d: d, predicted=lambda n: n > 1, guess_sd=math.inf)
    assert [mapped.estimate(cell).state for cell in mapped.space] == ["measured"] * 2 + ["failed"] * 2
    assert not mapped.filled.known[2:].any()


def test_the_last_sample_of_a_cell_counts() -> None:
    mapped = surface((DISKS,), lambda d: 100 * d)
    again = replace(mapped, samples=(*mapped.samples, Sample((0,), "measured", 90.0, 85.0, 95.0, 0.95)))
    assert again.estimate((0,)).value == 90
    assert math.exp(again.filled.log[0]) == pytest.approx(90)


def test_cells_that_make_no_sense_are_nowhere() -> None:
    mapped = surface((DISKS, NFSDS), power, without=[(0, 7)])
    assert not mapped.filled.known[0, 7]
    assert cost_summary(mapped).cells == 31
    assert all("disks=1 nfsds=100" not in limit.name for limit in summarise(mapped).limits)


def test_costs_add_up(golden: Golden) -> None:
    mapped = surface((DISKS,), lambda d: d, predicted=lambda n: n == 1, failed=[(2,)])
    found = cost_summary(mapped)
    assert (found.measured, found.predicted, found.failed, found.trials) == (2, 1, 1, 19)
    assert found.bench_s == 3660
    golden(cost_text(found))
    assert cost_summary(replace(mapped, costs=())).bench_s == 3660
    tried_twice = replace(mapped, costs=(*mapped.costs, Cost((0,), 40.0, 2, "failed")))
    assert (cost_summary(tried_twice).bench_s, cost_summary(tried_twice).trials) == (3700, 21)


def test_the_error_of_predictions_is_the_mean_of_absolute_ones() -> None:
    found = accuracy([0.1, -0.1, 0.2, -0.2])
    assert found is not None
    assert (found.mape, found.worst, found.count) == (pytest.approx(0.15), 0.2, 4)
    half = 3.182446305 * math.sqrt(0.01 / 3) / 2
    assert (found.low, found.high) == (pytest.approx(0.15 - half), pytest.approx(0.15 + half))
    assert accuracy([0.1, -0.1]) is None
    assert accuracy([0.1, math.nan, 0.1]) is None


def test_all_of_it_in_sentences(golden: Golden) -> None:
    mapped = surface(
        (DISKS, NFSDS, FS),
        lambda d, n, fs: power(d, n) * (n**0.2 / 2 if fs == "xfs" else 1),
        predicted=lambda n: n % 3 == 0,
        loo=(0.1, 0.05, -0.02),
    )
    told = dict(summary_lines(summarise(mapped, target=200.0)))
    assert list(told) == [
        "Optimum", "What limits", "Effective range", "Main effects", "Interactions", "Crossovers", "Break-even",
        "Accuracy", "Cost",
    ]  # fmt: skip
    assert "5.7 %" in told["Accuracy"][0]
    nothing = surface((DISKS,), lambda d: d, failed=[(n,) for n in range(4)])
    told = dict(summary_lines(summarise(nothing)))
    golden("\n".join((*told["Optimum"], *told["What limits"])))
