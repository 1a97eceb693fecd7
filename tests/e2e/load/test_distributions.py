"""The checks of a load: what is right passes, and what is off by a stated little does not.

Right data are made anew here, without the generator; each check then meets data that are altered.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from support.distributions import (
    LEVEL,
    dispersion,
    evenly,
    fixed,
    from_law,
    gaps,
    mix,
    occupied,
    ratio,
    share,
    whole_numbers,
    zipf,
    zipf_exponent,
)
from support.distributions import rate as arrived

pytestmark = pytest.mark.beside
MILLION = 1_000_000
SFS97 = {"lookup": 27, "read": 18, "write": 9, "getattr": 11, "readlink": 7, "readdirplus": 9, "rest": 18}


def drawn(seed: int, total: int, shares: dict[str, float]) -> dict[str, int]:
    weights = np.array(list(shares.values()), dtype=float)
    counts = np.random.default_rng(seed).multinomial(total, weights / weights.sum())
    return dict(zip(shares, map(int, counts), strict=True))


def lognormal(mean: float, sigma: float):  # type: ignore[no-untyped-def]
    return stats.lognorm(sigma, scale=mean * math.exp(-(sigma**2) / 2))


@pytest.mark.parametrize("seed", range(5))
def test_a_mix_passes_and_one_point_moved_between_two_operations_does_not(seed: int) -> None:
    counts = drawn(seed, MILLION, SFS97)
    assert mix(counts, SFS97).holds
    moved = counts | {"read": counts["read"] + 10_000, "write": counts["write"] - 10_000}
    assert not mix(moved, SFS97).holds
    tenth = counts | {"read": counts["read"] + 3_000, "write": counts["write"] - 3_000}
    assert not mix(tenth, SFS97).holds, "nor three tenths of a point"


def test_a_mix_of_twenty_thousand_notices_three_points() -> None:
    counts = drawn(1, 20_000, SFS97)
    assert mix(counts, SFS97).holds
    assert not mix(counts | {"read": counts["read"] + 600, "write": counts["write"] - 600}, SFS97).holds


def test_a_kind_that_is_in_no_table_is_refused_even_once() -> None:
    assert not mix(drawn(1, MILLION, SFS97) | {"mknod": 1}, SFS97).holds


def test_checks_refuse_what_is_right_about_as_often_as_they_say() -> None:
    p = np.array([mix(drawn(seed, 10_000, SFS97), SFS97).p for seed in range(2000)])
    assert stats.kstest(p, "uniform").pvalue > LEVEL
    rng = np.random.default_rng(4)
    p = np.array(
        [zipf("", rng.multinomial(3000, weights(200, 0.8)), 0.8, None, 40, seed).p for seed in range(400)]
    )
    assert stats.kstest(p, "uniform").pvalue > LEVEL
    p = np.array([evenly("", rng.multinomial(3000, np.full(50, 0.02))).p for _ in range(2000)])
    assert stats.kstest(p, "uniform").pvalue > LEVEL


def test_a_ratio_notices_two_percent() -> None:
    assert ratio("", 667_000, 333_000, 2.0).holds
    assert not ratio("", 671_000, 329_000, 2.0).holds
    assert share("", 0, 10, 0.0).holds
    assert not share("", 1, 1000, 0.0).holds
    assert not share("", 0, 0, 0.5).holds, "what was never seen is no success"


def test_sizes_notice_a_mean_that_is_five_percent_off_and_a_narrower_law() -> None:
    rng = np.random.default_rng(3)
    law = lognormal(10_500, 1.5)
    right = np.ceil(law.rvs(100_000, random_state=rng)).astype(np.int64)
    assert whole_numbers("", right, law.cdf, "").holds
    assert not whole_numbers("", np.rint(right * 1.05).astype(np.int64), law.cdf, "").holds
    narrow = lognormal(10_500, 1.45).rvs(100_000, random_state=rng)
    assert not from_law("", narrow, law.cdf, "").holds
    assert not from_law("", right[:5], law.cdf, "").holds


def test_whole_numbers_of_small_values_pass() -> None:
    law = lognormal(40, 0.5)
    values = np.ceil(law.rvs(200_000, random_state=np.random.default_rng(2))).astype(np.int64)
    assert not from_law("", values, law.cdf, "").holds, "rounded they are no draws from it"
    assert whole_numbers("", values, law.cdf, "").holds


def test_sizes_of_requests_notice_one_in_a_thousand() -> None:
    assert fixed("", np.full(100_000, 8192), {8192: 1.0}).holds
    assert not fixed("", np.append(np.full(100_000, 8192), 4096), {8192: 1.0}).holds
    counts = np.array([4096] * 500_000 + [8192] * 500_000)
    assert fixed("", counts, {4096: 0.5, 8192: 0.5}).holds
    counts[:3000] = 8192
    assert not fixed("", counts, {4096: 0.5, 8192: 0.5}).holds


def weights(files: int, exponent: float) -> np.ndarray:
    raw = np.arange(1, files + 1, dtype=float) ** -exponent
    return raw / raw.sum()


@pytest.mark.parametrize(("exponent", "off"), [(1.3, 0.02), (0.75, 0.02)], ids=["mail", "web"])
def test_popularity_passes_and_an_exponent_that_is_a_fiftieth_off_does_not(
    exponent: float, off: float
) -> None:
    rng = np.random.default_rng(8)
    counts = rng.multinomial(MILLION, weights(5000, exponent))
    rng.shuffle(counts)
    found = zipf("", counts, exponent)
    assert found.holds, found
    assert not zipf("", counts, exponent + off).holds
    assert not zipf("", counts, exponent - off).holds
    assert not zipf("", rng.multinomial(MILLION, np.full(5000, 1 / 5000)), exponent).holds


def test_popularity_passes_where_a_fifth_of_the_files_is_not_looked_at() -> None:
    rng = np.random.default_rng(9)
    counts = rng.multinomial(200_000, weights(5000, 1.3))
    looked_at = rng.choice(counts, 4000, replace=False)
    assert zipf("", looked_at, 1.3, 5000).holds
    assert not zipf("", looked_at, 1.5, 5000).holds
    assert not zipf("", looked_at, 1.1, 5000).holds


def test_an_exponent_is_found_where_ranks_are_known() -> None:
    counts = np.random.default_rng(8).multinomial(MILLION, weights(500, 1.1))
    assert zipf_exponent(counts) == pytest.approx(1.1, abs=0.01)
    assert zipf_exponent(np.array([5, 5, 5])) == pytest.approx(0.0, abs=1e-6)


def test_a_working_set_notices_eleven_percent_in_place_of_ten() -> None:
    rng = np.random.default_rng(5)
    for part, holds in ((0.10, True), (0.11, False), (0.09, False)):
        counts = np.bincount(rng.integers(0, int(20_000 * part), 100_000), minlength=20_000)
        assert occupied("", int((counts > 0).sum()), 100_000, 20_000, 0.10).holds == holds
    few = np.bincount(rng.integers(0, 2000, 1000), minlength=20_000)
    assert occupied("", int((few > 0).sum()), 1000, 20_000, 0.10).holds
    assert not occupied("", 1000, 1000, 20_000, 0.10).holds, "a thousand choices without one repeated"


def test_a_working_set_of_which_some_is_not_looked_at_passes() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        chosen = rng.choice(20_000, 2000, replace=False)
        looked_at = chosen[chosen < 19_200]
        assert occupied("", len(looked_at), 200_000, 19_200, 0.10, 0.04).holds
    assert not occupied("", 2150, 200_000, 19_200, 0.10, 0.04).holds


def test_even_choices_notice_that_a_tenth_of_the_files_is_a_fifth_more_popular() -> None:
    rng = np.random.default_rng(5)
    assert evenly("", rng.multinomial(200_000, np.full(1000, 1e-3))).holds
    uneven = np.where(np.arange(1000) < 100, 1.2, 1.0)
    assert not evenly("", rng.multinomial(200_000, uneven / uneven.sum())).holds
    assert not evenly("", np.full(1000, 200)).holds, "taking turns is not chance"


def arrivals(gaps_s: np.ndarray) -> np.ndarray:
    return (np.cumsum(gaps_s) * 1e9).astype(np.int64)


def test_arrivals_notice_other_processes_and_rates() -> None:
    rng = np.random.default_rng(6)
    n, rate = 20_000, 1000.0
    quiet = {"poisson": True, "moved": 0.0, "late_ns": 0.0}
    busy = {"poisson": True, "moved": 0.05, "late_ns": 1e5}
    poisson = arrivals(rng.exponential(1 / rate, n))
    assert gaps("", poisson, rate, **quiet).holds
    assert dispersion("", poisson, 50, 0.0).holds
    late = np.sort(poisson + rng.integers(0, 50_000, n))
    assert gaps("", late, rate, **busy).holds
    for wrong in (
        np.full(n, 1 / rate),
        rng.gamma(2.0, 0.5 / rate, n),
        rng.exponential(1 / rate, n) * rng.choice([0.2, 1.8], n),
        np.where(rng.random(n) < 0.25, 1e-9, rng.exponential(1 / rate, n)),
    ):
        assert not gaps("", arrivals(wrong), rate, **busy).holds
    assert not gaps("", poisson, rate * 1.06, **quiet).holds
    assert arrived("", poisson, rate, poisson=True).holds
    assert not arrived("", poisson, rate * 1.06, poisson=True).holds
    assert not arrived("", np.delete(poisson, np.arange(0, n, 14)), rate, poisson=True).holds
    for wrong in (np.full(n, 1 / rate), rng.gamma(2.0, 0.5 / rate, n)):
        assert not dispersion("", arrivals(wrong), 50, 1.0).holds
    pairs = np.repeat(arrivals(rng.exponential(2 / rate, n // 2)), 2)
    assert not dispersion("", pairs, 50, 0.0).holds


def test_a_clock_passes_as_constant_and_poisson_does_not() -> None:
    rng = np.random.default_rng(6)
    clock = arrivals(np.full(5000, 1e-3)) + rng.integers(0, 50_000, 5000)
    told = {"poisson": False, "moved": 0.05, "late_ns": 1e5}
    assert gaps("", clock, 1000, **told).holds
    assert not gaps("", arrivals(rng.exponential(1e-3, 5000)), 1000, **told).holds
    assert not gaps("", clock, 800, **told).holds
    assert arrived("", clock, 1000, poisson=False).holds
    assert not arrived("", clock, 1010, poisson=False).holds
