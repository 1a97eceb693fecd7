"""Ratios of two tests: known values, symmetry, subtraction, and plans for more."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from etude.stats.ratio import (
    Ratio,
    further_range,
    more_pairs,
    more_trials,
    noise_floor,
    paired_mean_ratio,
    paired_ratio,
    unpaired_mean_ratio,
    unpaired_ratio,
)
from support.synthetic_series import autoregressive

times = st.floats(1e-6, 1e6, allow_nan=False) | st.integers(1, 10_000)
pairs = st.lists(st.tuples(times, times), min_size=2, max_size=30)

BASE = np.array([1.00, 1.10, 0.95, 1.05, 1.02, 0.99])
OTHER = np.array([1.21, 1.28, 1.16, 1.24, 1.25, 1.18])


def close(a, b):
    return a == pytest.approx(b, rel=1e-6) or (min(a, b) < 1e-250) or (max(a, b) > 1e250)


def test_a_paired_ratio_is_students_interval_of_the_log_ratios():
    expected = stats.ttest_1samp(np.log(OTHER / BASE), 0.0).confidence_interval(0.9)
    ratio = paired_ratio(BASE, OTHER, confidence=0.9)
    assert (ratio.low, ratio.high) == pytest.approx((math.exp(expected.low), math.exp(expected.high)))
    assert ratio.ratio == pytest.approx(stats.gmean(OTHER) / stats.gmean(BASE))
    assert (ratio.count, ratio.method, ratio.confidence, ratio.factor) == (6, "paired", 0.9, 1.0)


def test_an_unpaired_ratio_is_welchs_interval_of_the_logs():
    expected = stats.ttest_ind(np.log(OTHER[:4]), np.log(BASE), equal_var=False).confidence_interval(0.95)
    ratio = unpaired_ratio(BASE, OTHER[:4])
    assert (ratio.low, ratio.high) == pytest.approx((math.exp(expected.low), math.exp(expected.high)))
    assert (ratio.count, ratio.method) == (4, "unpaired")


@pytest.mark.parametrize("together", [5, 10, 20])
def test_of_many_identical_tests_few_experiments_find_any_difference(together):
    rng = np.random.default_rng(3)
    found = 0
    for _ in range(200):
        base, *others = rng.lognormal(0.0, 0.05, (together + 1, 20))
        each = [paired_ratio(base, other).among(together) for other in others]
        found += any(not ratio.low <= 1.0 <= ratio.high for ratio in each)
        assert all((ratio.adjusted_p < 0.05) == (not ratio.low <= 1.0 <= ratio.high) for ratio in each)
        assert each[0].for_many(1).high == pytest.approx(paired_ratio(base, others[0]).high)
    assert found <= 0.05 * 200 + 6


def test_dependent_samples_show_few_false_differences():
    rng = np.random.default_rng(4)
    draws = zip(autoregressive(0.6, 0.1)(rng, 400, 30), autoregressive(0.6, 0.1)(rng, 400, 30), strict=True)
    ratios = [unpaired_ratio(base, other) for base, other in draws]
    assert np.mean([not ratio.low <= 1.0 <= ratio.high for ratio in ratios]) <= 0.10
    assert min(ratio.degrees for ratio in ratios) < 10


def test_a_ratio_of_means_is_known_as_well_as_it_says():
    rng = np.random.default_rng(6)
    sigma = math.sqrt(math.log1p(0.4**2))
    means, typical = [], []
    for _ in range(400):
        base = np.full(50, 1.0) * rng.normal(1.0, 0.02, 50)
        other = rng.lognormal(-(sigma**2) / 2, sigma, 50)
        means.append(paired_mean_ratio(base, other))
        typical.append(paired_ratio(base, other))
    covered = [np.mean([r.low <= 1.0 <= r.high for r in each]) for each in (means, typical)]
    assert covered[0] >= 0.93 > covered[1] + 0.1


def test_a_ratio_of_means_is_that_of_the_arithmetic_means():
    paired, unpaired = paired_mean_ratio(BASE, OTHER), unpaired_mean_ratio(BASE, OTHER[:4])
    assert paired.ratio == pytest.approx(OTHER.mean() / BASE.mean())
    assert unpaired.ratio == pytest.approx(OTHER[:4].mean() / BASE.mean())
    same = paired_mean_ratio(BASE, 1.5 * BASE)
    assert (same.low, same.high) == (pytest.approx(1.5), pytest.approx(1.5))


def test_pairs_cancel_what_the_machine_did_to_both():
    drift = np.linspace(1.0, 3.0, 6)
    assert paired_ratio(BASE * drift, OTHER * drift).half_width == pytest.approx(
        paired_ratio(BASE, OTHER).half_width
    )


def test_the_half_width_is_a_factor_to_either_side():
    ratio = paired_ratio(BASE, OTHER)
    assert ratio.high == pytest.approx(ratio.ratio * (1.0 + ratio.half_width))
    assert ratio.low == pytest.approx(ratio.ratio / (1.0 + ratio.half_width))


def test_a_factor_widens_the_log_interval():
    plain, wider = paired_ratio(BASE, OTHER), paired_ratio(BASE, OTHER, factor=1.2)
    assert math.log1p(wider.half_width) == pytest.approx(1.2 * math.log1p(plain.half_width))


def test_a_constant_ratio_is_known_exactly():
    ratio = paired_ratio([2, 2, 2], [3, 3, 3])
    assert (ratio.ratio, ratio.half_width) == (pytest.approx(1.5), 0.0)
    assert unpaired_ratio([2, 2, 2], [3, 3]).half_width == 0.0


@given(pairs, st.floats(1e-3, 1e3))
def test_scale_does_not_matter(values, scale):
    base, other = map(np.array, zip(*values, strict=True))
    for function in (paired_ratio, unpaired_ratio):
        plain, scaled = function(base, other), function(base * scale, other * scale)
        assert close(plain.low, scaled.low)
        assert close(plain.high, scaled.high)


@given(pairs)
def test_swapping_the_tests_inverts_the_interval(values):
    base, other = map(np.array, zip(*values, strict=True))
    for function in (paired_ratio, unpaired_ratio):
        there, back = function(base, other), function(other, base)
        assert close(there.ratio * back.ratio, 1.0)
        assert close(there.low, 1.0 / back.high if back.high else math.inf)


@given(pairs)
def test_a_ratio_lies_in_its_interval_and_is_never_nan(values):
    base, other = map(list, zip(*values, strict=True))
    for function in (paired_ratio, unpaired_ratio):
        ratio = function(base, other)
        assert ratio.low <= ratio.ratio <= ratio.high
        assert ratio.half_width >= 0.0


def test_the_cost_of_a_shell_is_taken_off_both():
    ratio = paired_ratio(BASE + 0.5, OTHER + 0.5, subtract=(0.5, 0.0))
    assert ratio.low == pytest.approx(paired_ratio(BASE, OTHER).low)


def test_the_error_of_the_cost_widens_by_what_the_ratio_changes_with_it():
    error, step = 0.02, 1e-6
    plain = paired_ratio(BASE, OTHER, subtract=(0.5, 0.0))
    moved = paired_ratio(BASE, OTHER, subtract=(0.5 + step, 0.0))
    slope = math.log(moved.ratio / plain.ratio) / step
    t = stats.t.ppf(0.975, len(BASE) - 1)
    half = math.log1p(paired_ratio(BASE, OTHER, subtract=(0.5, error)).half_width)
    assert half == pytest.approx(math.hypot(math.log1p(plain.half_width), t * slope * error), rel=1e-4)


def test_an_uncertain_cost_does_not_matter_between_equals():
    exact, vague = (paired_ratio(BASE, BASE, subtract=(0.5, error)) for error in (0.0, 0.2))
    assert exact.half_width == vague.half_width == 0.0


@pytest.mark.parametrize("subtract", [(0.0, 0.0), (0.97, 0.0)])
def test_a_ratio_needs_positive_values(subtract):
    with pytest.raises(ValueError, match="positive"):
        paired_ratio([1.0, 0.95, 0.0 if subtract[0] == 0.0 else 2.0], OTHER[:3], subtract=subtract)
    with pytest.raises(ValueError, match="positive"):
        unpaired_ratio([1.0, -1.0], OTHER)


@pytest.mark.parametrize(
    ("base", "other", "message"),
    [
        ([1.0, 2.0], [1.0, 2.0, 3.0], "equally many"),
        ([1.0], [1.0], "two or more"),
        ([1.0, math.nan], [1.0, 2.0], "finite"),
        ([1.0, 2.0], [1.0, math.inf], "finite"),
    ],
)
def test_what_makes_no_pairs_is_refused(base, other, message):
    for function in (paired_ratio, paired_mean_ratio):
        with pytest.raises(ValueError, match=message):
            function(base, other)


@pytest.mark.parametrize("subtract", [(math.nan, 0.0), (0.0, -1.0), (0.0, math.inf)])
def test_a_cost_has_a_finite_value_and_error(subtract):
    with pytest.raises(ValueError, match="standard error"):
        paired_ratio(BASE, OTHER, subtract=subtract)


def test_the_noise_floor_is_the_half_width_that_identical_tests_show():
    noise = np.array([0.03, -0.03, 0.03, -0.03, 0.03])
    floor = noise_floor(np.ones(5), np.exp(noise), pairs=20, kind="ratio", factor=1.1)
    assert floor == pytest.approx(math.exp(1.1 * stats.t.ppf(0.975, 4) * 0.03 / math.sqrt(20)) - 1.0)


@pytest.mark.parametrize("kind", ["cost", "rate"])
def test_the_noise_floor_is_that_of_the_ratio_of_means(kind):
    rng = np.random.default_rng(6)
    base, again = rng.lognormal(0.0, 0.8, (2, 20_000))
    ratio = paired_mean_ratio(base, again)
    values = (base, again) if kind == "cost" else (1.0 / base, 1.0 / again)
    assert noise_floor(*values, pairs=20_000, kind=kind) == pytest.approx(ratio.half_width, rel=0.03)
    typical = paired_ratio(base, again)
    assert typical.half_width < 0.9 * ratio.half_width
    assert noise_floor(base, again, pairs=20_000, kind="ratio") == pytest.approx(typical.half_width, rel=0.03)


def test_of_several_ratios_width_and_further_pairs_are_those_of_the_interval_that_is_printed():
    alone = paired_ratio(BASE, OTHER)
    among = alone.among(4)
    assert among.high == pytest.approx(among.ratio * (1.0 + among.half_width))
    assert among.half_width > alone.half_width
    further = more_pairs(among, target=0.5 * among.half_width)
    assert further > more_pairs(alone, target=0.5 * among.half_width)
    n = among.count + further
    spread = among.standard_error * math.sqrt(among.count)
    halves = [stats.t.isf(0.05 / 4 / 2, m - 1) * spread / math.sqrt(m) for m in (n - 1, n)]
    assert halves[1] < math.log1p(0.5 * among.half_width) <= halves[0]


def test_a_steady_difference_of_the_reference_from_itself_is_noise_too():
    assert noise_floor([1.0] * 8, [1.05] * 8, pairs=10) > 0.03


def test_below_five_pairs_there_is_no_noise_floor():
    assert noise_floor([1.0] * 4, [1.0] * 4, pairs=10) is None
    assert noise_floor([1.0] * 5, [1.0] * 5, pairs=10) == 0.0


def test_the_pairs_planned_are_just_enough():
    rng = np.random.default_rng(4)
    logs = rng.normal(0.0, 0.03, 8)
    further = more_pairs(paired_ratio(np.ones(8), np.exp(logs), factor=1.1), target=0.01)
    for n, reached in ((8 + further, True), (8 + further - 1, False)):
        half = 1.1 * stats.t.ppf(0.975, n - 1) * logs.std(ddof=1) / math.sqrt(n)
        assert bool(half < math.log(1.01)) is reached


def test_nothing_more_is_planned_where_the_target_is_reached():
    assert more_pairs(paired_ratio([1, 1, 1], [2, 2, 2]), target=0.01) == 0
    for ratio in (paired_ratio(BASE, OTHER), paired_mean_ratio(BASE, OTHER)):
        assert more_pairs(ratio, target=1.001 * ratio.half_width) == 0
        assert more_pairs(ratio, target=0.999 * ratio.half_width) > 0


def test_the_trials_planned_count_dependence():
    rising = np.linspace(1.0, 1.2, 12)
    shuffled = np.random.default_rng(5).permutation(rising)
    assert more_trials(rising, target=0.01) > 2 * more_trials(shuffled, target=0.01) > 0


def test_a_plan_relative_to_a_mean_of_zero_is_refused():
    with pytest.raises(ValueError, match="other than zero"):
        more_trials([-1.0, 1.0], target=0.05)
    with pytest.raises(ValueError, match="two or more"):
        more_trials([1.0], target=0.05)


def test_a_plan_without_end_is_cut():
    assert more_pairs(paired_ratio([1e-6, 1e6], [1e6, 1e-6]), target=1e-9) == 10**9


@given(pairs, st.floats(1e-3, 0.5), st.floats(1.01, 10.0))
def test_a_wider_target_never_needs_more(values, target, wider):
    base, other = map(np.array, zip(*values, strict=True))
    plain, widened = (paired_ratio(base, other, factor=factor) for factor in (1.0, 1.3))
    assert more_pairs(plain, target=target * wider) <= more_pairs(plain, target=target)
    assert more_pairs(plain, target=target) <= more_pairs(widened, target=target)
    assert more_trials(base, target=target * wider) <= more_trials(base, target=target)


@pytest.mark.parametrize("target", [0.0, -0.1, math.nan, math.inf])
def test_a_target_is_above_zero(target):
    with pytest.raises(ValueError, match="target"):
        more_pairs(paired_ratio(BASE, OTHER), target=target)


def test_the_range_of_a_forecast_holds_in_four_of_five_pilots() -> None:
    """The trials that the true spread needs lie in the range that a pilot of normal values states."""
    rng = np.random.default_rng(3)
    pilot, needed = 8, 800.0
    held = 0
    for _ in range(400):
        variance = float(rng.normal(size=pilot).var(ddof=1))
        low, high = further_range(pilot, round(needed * variance) - pilot, pilot - 1)
        held += low <= needed - pilot <= high
    assert 0.75 < held / 400 < 0.85
    assert further_range(10, 0, 9)[0] == 1


@pytest.mark.parametrize("ratio", [paired_ratio, paired_mean_ratio])
def test_pairs_that_depend_on_those_before_count_for_fewer(ratio: Callable[..., Ratio]) -> None:
    """Two equal programs, each with a state of its own that lasts: a third of such intervals excluded 1."""
    random = np.random.default_rng(3)
    found = 0
    for _ in range(200):
        noise = random.standard_normal((2, 60))
        for n in range(1, 60):
            noise[:, n] = 0.6 * noise[:, n - 1] + 0.8 * noise[:, n]
        base, other = np.exp(0.05 * noise)
        found += not ratio(base, other).low <= 1.0 <= ratio(base, other).high
    assert found / 200 < 0.15


def test_values_below_the_least_normal_number_are_refused():
    base = [1e-320, 2e-320, 1.5e-320]
    with pytest.raises(ValueError, match="too small to be compared"):
        paired_ratio(base, base)


@pytest.mark.filterwarnings("error")
def test_the_smallest_values_are_compared_without_a_warning():
    base = [2.3e-308, 2.4e-308] * 10
    found = paired_ratio(base, [2 * value for value in base])
    assert found.ratio == pytest.approx(2.0)


def test_a_ratio_says_as_how_many_pairs_it_counts():
    generator = np.random.default_rng(4)
    walk = np.exp(0.1 * np.cumsum(generator.normal(size=30)))
    base = np.ones(30)
    for ratio in (paired_ratio(base, walk), paired_mean_ratio(base, walk)):
        assert ratio.effective_count < 15 < ratio.count
    assert paired_ratio(base, np.exp(generator.normal(size=30))).effective_count == 30
