"""The README's claim about running all of A and then all of B, under a drift of the machine."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ttest_ind

RUNS, NOISE, REPLICATIONS = 10, 0.02, 20_000


@pytest.mark.parametrize(("drift", "claimed"), [(0.0, 0.05), (0.02, 0.19), (0.05, 0.73)])
def test_a_drift_becomes_a_difference_between_identical_programs(drift: float, claimed: float) -> None:
    generator = np.random.default_rng(20)
    machine = 1.0 + drift * np.arange(2 * RUNS) / (2 * RUNS - 1)
    runs = generator.normal(1.0, NOISE, (REPLICATIONS, 2 * RUNS)) * machine
    p = ttest_ind(runs[:, :RUNS], runs[:, RUNS:], axis=1, equal_var=False).pvalue
    assert float(np.mean(p < 0.05)) == pytest.approx(claimed, abs=0.015)
