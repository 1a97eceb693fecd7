"""A linear fit that wild values do not move."""

from __future__ import annotations

import numpy as np
import pytest

from etude.stats.means import huber_fit


def design(n: int) -> np.ndarray:
    return np.column_stack((np.ones(n), np.arange(n)))


def test_without_wild_values_it_is_least_squares() -> None:
    y = 3.0 + 0.5 * np.arange(30) + 0.1 * np.random.default_rng(1).standard_normal(30)
    expected, squares, *_ = np.linalg.lstsq(design(30), y, rcond=None)
    found = huber_fit(design(30), y, 1.0)
    assert found.coefficients == pytest.approx(expected)
    assert found.cost == pytest.approx(float(squares[0]))


def test_three_wild_values_of_thirty_hardly_move_it() -> None:
    y = 3.0 + 0.5 * np.arange(30) + 0.1 * np.random.default_rng(1).standard_normal(30)
    y[[3, 20, 28]] += (1000.0, -400.0, 1e9)
    assert huber_fit(design(30), y, 0.1).coefficients == pytest.approx([3.0, 0.5], abs=0.15)
