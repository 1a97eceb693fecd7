"""Costs of a curve over a size are found again, and its bends at a false rate that is held."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from etude.stats.cost_curve import CostCurve, fit

SIZES = 2.0 ** np.arange(3, 25)
TOTAL, CALL_S, BYTE_S, PAGE_S = 16 * 2.0**20, 400e-9, 1 / (25 * 2**30), 0.6e-6


def measured(
    rng: np.random.Generator,
    *,
    page: int | None = None,
    noise: Any = 0.05,
    trials: int = 10,
    tails: bool = False,
    slower: Any = 1.0,
) -> CostCurve:
    """A machine without a cache, unless some sizes are slower; the fit of its medians."""
    columns = [1 / SIZES, np.ones_like(SIZES)]
    factors = [CALL_S, BYTE_S]
    if page:
        columns.append(np.ceil(SIZES / page) / TOTAL)
        factors.append(PAGE_S * page / 4096)
    costs = np.array(columns).T
    normal = rng.normal(size=(trials, SIZES.size))
    off = (
        np.exp(noise * np.abs(normal)) + 0.5 * (rng.random(normal.shape) < 0.05)
        if tails
        else 1 + noise * normal
    )
    values = costs @ factors * slower * off
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75), axis=0)
    return fit(np.log2(SIZES), middle, costs, errors=(high - low) / middle, draws=399)


MACHINES: dict[str, dict[str, Any]] = {
    "touched": {},
    "untouched": {"page": 4096},
    "huge": {"page": 2 << 20},
    "little noise": {"page": 4096, "noise": 0.005},
    "tails": {"page": 4096, "tails": True},
    "four trials": {"trials": 4},
}


def test_of_machines_without_a_cache_one_curve_of_twenty_at_most_shows_a_bend() -> None:
    rng, curves = np.random.default_rng(11), 60
    false = {
        name: sum(bool(measured(rng, **machine).bends) for _ in range(curves))
        for name, machine in MACHINES.items()
    }
    assert sum(false.values()) <= 0.05 * curves * len(MACHINES), false


def test_noise_that_grows_with_the_size_bends_no_curve() -> None:
    """One in five such curves showed a bend where noise of one size was assumed."""
    rng, noise = np.random.default_rng(3), np.geomspace(0.02, 0.3, SIZES.size)
    assert sum(bool(measured(rng, noise=noise, trials=6).bends) for _ in range(60)) <= 4


def test_the_costs_of_a_call_a_byte_and_a_page_are_found_again_and_covered() -> None:
    rng, covered = np.random.default_rng(2), np.zeros(3)
    for _ in range(60):
        found = measured(rng, page=4096, noise=0.02)
        for n, truth in enumerate((CALL_S, BYTE_S, PAGE_S)):
            interval = found.intervals[n]
            assert interval is not None
            covered[n] += interval.low <= truth <= interval.high
            assert found.factors[n] == pytest.approx(truth, rel=0.15)
    assert (covered >= 52).all(), covered


@pytest.mark.parametrize(("times", "noise"), [(4.0, 0.01), pytest.param(1.3, 0.05, marks=pytest.mark.more)])
def test_a_cache_that_is_outgrown_bends_the_curve_there(times: float, noise: float) -> None:
    rng = np.random.default_rng(3)
    for _ in range(8):
        found = measured(rng, noise=noise, slower=np.where(SIZES > 2**18, times, 1.0)).bends
        bends = [b for b in found if b.power > 0.0 and b.interval.low <= 18.8 and b.interval.high >= 17.8]
        assert bends
        assert bends[0].after == pytest.approx(times, rel=0.2)


@pytest.mark.more
def test_a_rate_that_falls_from_a_size_on_is_one_bend_whose_interval_covers_it() -> None:
    rng, at, covered = np.random.default_rng(4), 15.3, 0
    slower = np.exp(0.2 * np.maximum(np.log2(SIZES) - at, 0.0))
    for _ in range(25):
        bends = measured(rng, noise=0.03, slower=slower).bends
        covered += any(bend.interval.low <= at <= bend.interval.high for bend in bends)
        assert bends[-1].after == pytest.approx(math.exp(0.2 * (24 - at)), rel=0.1)
    assert covered >= 22


def test_a_bend_that_changes_little_is_none_however_sure_it_is() -> None:
    rng = np.random.default_rng(5)
    assert not measured(rng, noise=0.0005, slower=np.where(SIZES > 2**18, 1.03, 1.0)).bends


def test_exact_values_have_no_bend_and_the_same_seed_gives_the_same_answer() -> None:
    costs = np.array([1 / SIZES, np.ones_like(SIZES)]).T
    exact = fit(np.log2(SIZES), costs @ (CALL_S, BYTE_S), costs)
    assert exact.factors == pytest.approx((CALL_S, BYTE_S), rel=1e-6)
    assert not exact.bends
    one, two = (
        measured(np.random.default_rng(6), slower=np.where(SIZES > 2**18, 2.0, 1.0)) for _ in range(2)
    )
    assert one == two


@pytest.mark.parametrize(
    ("x", "values", "columns"),
    [
        ([1, 2, 2, 3, 4], [1.0] * 5, 1),
        ([1, 2, 3, 4, 5], [1, 1, 0, 1, 1], 1),
        ([1, 2, 3], [1.0] * 3, 2),
        ([1, 2], [1.0], 1),
    ],
    ids=["x-twice", "not-positive", "too-few", "lengths"],
)
def test_what_is_no_curve_is_refused(x: list[float], values: list[float], columns: int) -> None:
    with pytest.raises(ValueError, match=r"must|need|rows"):
        fit(x, values, np.ones((len(x), columns)))
