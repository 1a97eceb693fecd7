"""Lines of pieces through curves: their breaks, what is said of them, and steps and scatter beside them."""

import itertools
import math
import re
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etude.stats import pieces
from etude.stats.segmented import Steps, fit, steps
from support.profiles import examples

X = np.arange(3.0, 25.0)


def curve(breaks, slopes, x=X, first=10.0):
    y = np.full(x.size, first)
    for at, change in zip([x[0], *breaks], np.diff(slopes, prepend=0.0), strict=True):
        y += change * np.maximum(0.0, x - at)
    return y


def noisy(y, rng, spread=0.03, trials=10):
    return [value + rng.normal(0.0, spread, trials) for value in y]


def test_without_noise_the_line_itself_is_found():
    found = fit(X, [[y] * 5 for y in curve((11.3, 18.6), (0.9, 0.05, -0.4))])
    assert [b.at for b in found.breaks] == pytest.approx([11.3, 18.6])
    assert [s.value for s in found.slopes] == pytest.approx([0.9, 0.05, -0.4])
    assert [knot[0] for knot in found.knots] == pytest.approx([3.0, 11.3, 18.6, 24.0])
    assert [knot[1] for knot in found.knots] == pytest.approx([10.0, 17.47, 17.835, 15.675])
    assert found.deviation == pytest.approx(0.0, abs=1e-6)
    assert [b.share for b in found.breaks] == [1.0, 1.0]
    assert found.breaks[0].interval.half_width == pytest.approx(0.0, abs=1e-6)


def test_what_is_straight_has_no_break():
    for slope in (0.0, 0.5):
        found = fit(X, [[y] * 5 for y in curve((), (slope,))])
        assert (found.breaks, found.slopes[0].value) == ((), pytest.approx(slope))
    level = fit(X, [[7.0] * 5] * X.size)
    assert (level.breaks, level.slopes[0].value, level.slopes[0].interval.high) == ((), 0.0, 0.0)


@pytest.mark.more
def test_straight_curves_with_noise_rarely_get_one():
    rng = np.random.default_rng(1)
    found = [fit(X, noisy(curve((), (0.5,)), rng), draws=1) for _ in range(60)]
    assert sum(bool(each.breaks) for each in found) <= 3


@pytest.mark.more
def test_the_intervals_cover_breaks_and_slopes():
    rng, held, right = np.random.default_rng(2), [], 0
    for _ in range(40):
        breaks = rng.uniform(11, 13), rng.uniform(17, 19)
        found = fit(X, noisy(curve(breaks, (0.9, 0.05, -0.4)), rng), draws=199)
        if len(found.breaks) == 2:
            right += 1
            held += [
                b.interval.low <= t <= b.interval.high for b, t in zip(found.breaks, breaks, strict=True)
            ]
            held += [
                s.interval.low <= t <= s.interval.high
                for s, t in zip(found.slopes, (0.9, 0.05, -0.4), strict=True)
            ]
    assert right >= 34
    assert np.mean(held) > 0.95 - 4 * math.sqrt(0.95 * 0.05 / len(held))


def test_a_level_of_its_own_at_each_point_widens_the_interval():
    rng = np.random.default_rng(3)
    y = curve((12.0, 18.0), (0.9, 0.05, -0.4))
    plain = fit(X, noisy(y, rng, 0.01))
    own = fit(X, noisy(y + rng.normal(0.0, 0.05, X.size), rng, 0.01))
    assert len(plain.breaks) == len(own.breaks) == 2
    assert own.breaks[0].interval.half_width > 3 * plain.breaks[0].interval.half_width


@pytest.mark.more
def test_a_break_that_noise_hides_is_found_again_in_few_draws():
    rng = np.random.default_rng(4)
    shares = {}
    for change in (0.05, 0.5):
        found = [fit(X, noisy(curve((14.0,), (0.0, -change)), rng, 0.15)) for _ in range(6)]
        shares[change] = np.mean([b.share for each in found for b in each.breaks])
    assert shares[0.5] == 1.0
    assert shares[0.05] < 0.9


def test_a_point_that_is_unsure_counts_less():
    y = curve((14.0,), (0.5, 0.0))
    rng = np.random.default_rng(5)
    samples = noisy(y, rng, 0.01)
    samples[6] = y[6] - 2.0 + rng.normal(0.0, 1.5, 10)
    found = fit(X, samples)
    assert [b.at for b in found.breaks] == [pytest.approx(14.0, abs=0.1)]


def least_of_all(x, y, count, step=0.125):
    """By trying every place of a fine grid."""
    grid = np.arange(x[1], x[-2] + 1e-9, step)
    best = math.inf
    for breaks in itertools.combinations(grid, count):
        if count and min(np.diff(breaks), default=1.0) < 1.0:
            continue
        design = np.column_stack([np.ones_like(x), x, *(np.maximum(0.0, x - b) for b in breaks)])
        best = min(best, _residual(design, y))
    return best


def _residual(design, y):
    left = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    return float(left @ left)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("count", [1, 2])
def test_no_breaks_on_a_fine_grid_fit_better(seed, count):
    rng = np.random.default_rng(seed)
    x = np.linspace(0.0, 1.0, 12)
    y = (
        rng.normal(0.0, 1.0, 12)
        if seed % 2
        else curve(rng.uniform(0.2, 0.8, 1), (1.0, -1.0), x) + rng.normal(0, 0.1, 12)
    )
    lines = pieces.Lines(x, np.ones(12), count)
    lines.most = count
    found = lines.best(y[None, :])[count]
    grid = least_of_all(x * 11, y, count)
    assert found.residual[0] <= grid * 1.001
    assert lines.solve(found.breaks, y[None, :])[1] == pytest.approx(found.residual)


def test_fewer_points_allow_fewer_breaks():
    rng = np.random.default_rng(6)
    for n, most in ((3, 0), (7, 0), (8, 1), (12, 2), (24, 5)):
        found = fit(np.arange(n), [rng.normal(0.0, 1.0, 3) for _ in range(n)], most=9)
        assert len(found.breaks) <= max(most, n // 4 - 1)
    jagged = [[value] for value in np.tile([0.0, 0.0, 5.0, 5.0, 5.0], 5)]
    assert len(fit(np.arange(25), jagged, most=2).breaks) <= 2


def test_the_same_seed_gives_the_same_answer():
    samples = noisy(curve((12.0,), (0.5, 0.0)), np.random.default_rng(7))
    assert fit(X, samples, seed=3) == fit(X, samples, seed=3)
    assert fit(X, samples, seed=3) != fit(X, samples, seed=4)


def test_deviations_within_the_tolerance_are_worth_no_break():
    y = np.log2(2.0**X / (300.0 + 2.0**X / 10.0))
    counts = [len(fit(X, [[v] for v in y], tolerance=t).breaks) for t in (0.0, 0.05, 0.2)]
    assert counts[0] > counts[1] > counts[2]


def test_below_four_trials_there_is_a_line_and_no_interval():
    y = curve((12.0,), (0.5, 0.0))
    found = fit(X, [[v, v] if n else [v] * 9 for n, v in enumerate(y)])
    (one,) = found.breaks
    assert (one.interval, one.share, found.slopes[0].interval) == (None, None, None)
    assert re.search(r"\b4 or more .*\b2 \(at 4\)$", found.why)


@pytest.mark.parametrize("unit", [1e-150, 1.0, 1e150])
def test_units_do_not_matter(unit):
    samples = noisy(curve((12.0,), (0.5, 0.0)), np.random.default_rng(8))
    found = fit(X * 1e-3, [s * unit for s in samples])
    plain = fit(X, samples)
    assert found.breaks[0].at == pytest.approx(plain.breaks[0].at * 1e-3)
    assert found.slopes[0].value == pytest.approx(plain.slopes[0].value * 1e3 * unit)
    assert found.slopes[1].interval.high == pytest.approx(
        plain.slopes[1].interval.high * 1e3 * unit, abs=1e-3 * unit
    )


@settings(max_examples=examples(40))
@given(
    x=st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=14, unique=True).map(sorted),
    data=st.data(),
    trials=st.integers(1, 5),
)
def test_whatever_is_finite_has_a_line_or_a_reason(x, data, trials):
    y = st.floats(-1e300, 1e300) | st.integers(-2, 2).map(float)
    samples = data.draw(
        st.lists(st.lists(y, min_size=trials, max_size=trials), min_size=len(x), max_size=len(x))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found, reason = fit(x, samples, draws=5), None
        except ValueError as error:
            reason = str(error)
    if reason is not None:
        assert "too far apart" in reason
        return
    assert all(math.isfinite(v) for knot in found.knots for v in knot)
    places = [knot[0] for knot in found.knots]
    assert places == sorted(places)
    for each in found.breaks:
        assert each.interval is None or x[0] <= each.interval.low <= each.interval.high <= x[-1]


@pytest.mark.parametrize(
    ("x", "samples", "reason"),
    [
        ([1.0, 2.0], [[1.0], [2.0]], "three or more"),
        ([1.0, 1.0, 2.0], [[1.0]] * 3, "x must rise"),
        ([1.0, 3.0, 2.0], [[1.0]] * 3, "x must rise"),
        ([1.0, 2.0, 3.0], [[1.0]] * 2, "3 x .*2 samples"),
        ([1.0, 2.0, 3.0], [[1.0], [], [1.0]], "2 of 3 \\(2\\)"),
        ([1.0, 2.0, 3.0], [[1.0], [math.nan], [1.0]], "finite"),
        ([1.0, math.inf, 3.0], [[1.0]] * 3, "finite"),
    ],
)
def test_what_is_no_curve_is_refused(x, samples, reason):
    with pytest.raises(ValueError, match=reason) as refused:
        fit(x, samples)
    assert "\n" not in str(refused.value)


def test_numbers_that_make_no_sense_are_refused():
    for options, reason in (
        ({"most": -1}, "0 or more"),
        ({"draws": 0}, "draws 1 or more"),
        ({"confidence": 95}, "fraction"),
        ({"tolerance": math.nan}, "tolerance"),
    ):
        with pytest.raises(ValueError, match=reason):
            fit(X, [[1.0]] * X.size, **options)


def spreads(medians, share=0.01):
    medians = np.asarray(medians)
    return medians, medians * (1.0 - share), medians * (1.0 + share)


def test_a_drop_and_a_jump_are_steep_steps_and_sharing_a_cost_is_none():
    x = np.arange(3.0, 25.0)
    amortised = 2.0**x / (300.0 + 2.0**x / 10.0)
    assert steps(x, *spreads(amortised)) == Steps((), ())
    changed = amortised * np.where(x > 19, 0.7, 1.0) * np.where(x > 22, 1.3, 1.0)
    assert steps(x, *spreads(changed)).steep == (16, 19)
    assert steps(x, *spreads(changed, 0.3)).steep == ()  # the spreads overlap


def test_a_little_rise_after_a_fall_is_no_jump():
    assert steps([1.0, 2.0, 3.0], *spreads([1.0, 0.7, 0.74])).steep == (0,)
    assert steps([1.0, 2.0, 3.0], *spreads([1.0, 0.7, 0.9])).steep == (0, 1)


def test_a_first_rise_that_is_more_than_proportional_is_a_jump():
    assert steps([1.0, 2.0, 3.0], *spreads([1.0, 3.0, 4.0])).steep == (0,)
    assert steps([1.0, 2.0, 3.0], *spreads([1.0, 2.0, 4.0])).steep == ()
    assert steps([1.0, 3.0, 5.0], *spreads([1.0, 4.0, 16.0])).steep == ()


def test_points_that_scatter_three_times_as_much_as_most_are_variable():
    medians, low, high = spreads(np.full(9, 100.0))
    low[4], high[4] = 95.0, 105.0
    assert steps(np.arange(9.0), medians, low, high).variable == (4,)
    assert steps(np.arange(9.0), medians, low, high, times=6.0).variable == ()
    low, high = medians.copy(), medians * np.where(np.arange(9) == 2, 1.009, 1.0)
    assert steps(np.arange(9.0), medians, low, high).variable == ()  # 1 % is no scatter
    assert steps(np.arange(9.0), medians, low, high, least=0.005).variable == (2,)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (([1.0], [1.0], [1.0], [1.0]), "two or more"),
        (([1.0, 2.0], [1.0, 1.0], [1.0], [1.0, 1.0]), "as many each"),
        (([2.0, 1.0], [1.0, 1.0], [1.0, 1.0], [1.0, 1.0]), "x must rise"),
        (([1.0, 2.0], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0]), "positive"),
        (([1.0, 2.0], [1.0, 1.0], [1.1, 1.0], [1.2, 1.0]), "between the ends"),
        (([1.0, 2.0], [1.0, math.nan], [1.0, 1.0], [1.0, 1.0]), "finite"),
    ],
)
def test_steps_of_what_is_no_curve_are_refused(rows, reason):
    with pytest.raises(ValueError, match=reason):
        steps(*rows)
