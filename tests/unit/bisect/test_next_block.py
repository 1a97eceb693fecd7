"""The choice of the next block: information per second."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.bisect.next_block import Prices, information, next_block
from etude.bisect.posterior import Posterior, posterior_of
from unit.bisect.test_posterior import evidence

COUNT = 64


def ends_only() -> tuple[Posterior, np.ndarray]:
    found = evidence({0: 0.0, COUNT - 1: 0.05}, [[0, 0, COUNT - 1, COUNT - 1]] * 4, noise=0.01)
    return posterior_of(found, COUNT, smallest=0.02), np.bincount(found.commits, minlength=COUNT)


def chosen(
    posterior: Posterior, counts: np.ndarray, built: set[int], broken: set[int], build_s: float
) -> int:
    return next_block(
        posterior, built=built, broken=broken, prices=Prices(1.0, build_s), smallest=0.02, counts=counts
    ).commit


def test_a_certain_observation_of_even_odds_is_one_bit() -> None:
    assert float(information(np.array(0.5), np.array(40.0))) == pytest.approx(1.0, abs=1e-3)
    assert float(information(np.array(0.5), np.array(0.0))) == pytest.approx(0.0, abs=1e-9)


@given(st.floats(0.001, 0.999), st.floats(0.0, 6.0), st.floats(0.01, 2.0))
def test_more_distance_tells_more_and_never_more_than_the_entropy(
    p: float, distance: float, more: float
) -> None:
    near, far = (float(information(np.array(p), np.array(d))) for d in (distance, distance + more))
    entropy = -p * np.log2(p) - (1 - p) * np.log2(1 - p)
    assert -1e-9 <= near <= far + 2e-3
    assert far <= entropy + 1e-6


def test_the_first_candidate_halves_the_range() -> None:
    posterior, counts = ends_only()
    assert chosen(posterior, counts, {0, COUNT - 1}, set(), 1.0) == pytest.approx(COUNT // 2, abs=5)


def test_a_commit_that_cannot_be_built_is_never_chosen() -> None:
    posterior, counts = ends_only()
    broken = set(range(20, 45))
    assert chosen(posterior, counts, {0, COUNT - 1}, broken, 1.0) in (19, 45)
    assert chosen(posterior, counts, {0, COUNT - 1}, set(range(1, COUNT - 1)), 1.0) == COUNT - 1


def test_a_built_commit_is_preferred_where_builds_are_dear() -> None:
    posterior, counts = ends_only()
    built = {0, 25, COUNT - 1}
    assert chosen(posterior, counts, built, set(), 1000.0) == 25
    assert chosen(posterior, counts, built, set(), 0.0) != 25
