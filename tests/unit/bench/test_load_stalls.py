"""What a percentile must be while a target stalls, by formula and by playing it."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from etude.results.histograms import Histogram
from support.places import BENCH

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(BENCH))
    bench = importlib.import_module("load.stalls")
error_s, exact_s, percentile_s = bench.error_s, bench.exact_s, bench.percentile_s


@pytest.mark.parametrize("service_s", [1e-5, 0.005, 0.03])
@pytest.mark.parametrize("share", [0.5, 0.95, 0.99, 0.999])
def test_the_exact_percentile_is_that_of_a_schedule_that_is_played(service_s: float, share: float) -> None:
    stall, period, total = 0.1, 1.0, 2_000_000
    at = np.random.default_rng(1).uniform(0, 1000, total)
    # Working time: the clock less all stalls until then; a request ends when so much more of it has gone.
    worked = at - np.floor(at) * stall - np.minimum(at % period, stall)
    ends = worked + service_s
    stalls = np.ceil(np.maximum(ends, 1e-12) / (period - stall) - 1e-12)
    responses = ends + stalls * stall - at
    found = float(np.quantile(responses, share))
    exact = exact_s(share, stall_s=stall, period_s=period, service_s=service_s)
    assert found == pytest.approx(exact, abs=6 * error_s(share, period_s=period, requests=total) + 1e-9)


def test_percentiles_of_several_histograms_are_of_all_that_they_count() -> None:
    low = Histogram(np.array([1_000, 3_000]), np.array([90, 5]))
    high = Histogram(np.array([2_000]), np.array([5]))
    assert percentile_s([low, high], 0.90) == pytest.approx(1e-6)
    assert percentile_s([low, high], 0.95) == pytest.approx(2e-6)
    assert percentile_s([low, high], 0.96) == pytest.approx(3e-6)
