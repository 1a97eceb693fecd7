"""Mann-Whitney and Wilcoxon with Hodges and Lehmann's shift: scipy's p, R's worked examples, and symmetry."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from etude.stats.ranks import mann_whitney, wilcoxon

# The two examples of R's wilcox.test (Hollander and Wolfe 1973, pages 27 and 69).
DEPRESSION_BEFORE = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30]
DEPRESSION_AFTER = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29]
PERMEABILITY_TERM = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46]
PERMEABILITY_EARLY = [1.15, 0.88, 0.90, 0.74, 1.21]

values = st.lists(st.integers(1, 40).map(float) | st.floats(0.5, 50.0), min_size=1, max_size=14)
distinct = st.lists(st.floats(0.5, 50.0), min_size=2, max_size=28, unique=True)


def test_mann_whitney_is_rs_worked_example():
    found = mann_whitney(PERMEABILITY_TERM, PERMEABILITY_EARLY)
    assert (found.statistic, found.exact) == (35.0, True)
    assert found.p == pytest.approx(0.2544, abs=5e-5)


def test_wilcoxon_is_rs_worked_example():
    found = wilcoxon(DEPRESSION_BEFORE, DEPRESSION_AFTER)
    assert (found.statistic, found.exact) == (40.0, True)
    assert found.p == pytest.approx(2.0 * 0.01953, abs=2e-5)  # R prints the one-sided one


@given(distinct, st.integers(1, 27))
def test_exact_p_is_scipys(x, cut):
    a, b = x[: min(cut, len(x) - 1)], x[min(cut, len(x) - 1) :]
    assert mann_whitney(a, b).p == pytest.approx(stats.mannwhitneyu(a, b, method="exact").pvalue)
    assert mann_whitney(a, b).statistic == stats.mannwhitneyu(a, b).statistic


@given(values, values)
def test_p_with_ties_is_scipys_approximation(a, b):
    found = mann_whitney(a, b)
    if not found.exact:
        with np.errstate(all="ignore"):
            expected = stats.mannwhitneyu(a, b, method="asymptotic").pvalue
        assert found.p == pytest.approx(1.0 if np.isnan(expected) else min(1.0, expected))


@pytest.mark.parametrize("n", [3, 8, 25])
def test_wilcoxons_exact_p_is_scipys(n):
    a, b = np.random.default_rng(n).normal(size=(2, n))
    assert wilcoxon(a, b).p == pytest.approx(stats.wilcoxon(a, b, method="exact").pvalue)
    a = np.round(a, 1)
    expected = stats.wilcoxon(a, np.round(b, 1), method="asymptotic", correction=True).pvalue
    assert wilcoxon(a, np.round(b, 1)).exact or wilcoxon(a, np.round(b, 1)).p == pytest.approx(expected)


@pytest.mark.parametrize(("n", "m"), [(4, 4), (5, 9), (12, 12)])
def test_a_shift_is_in_the_interval_exactly_where_the_test_does_not_reject_it(n, m):
    rng = np.random.default_rng(n * m)
    a, b = rng.normal(3.0, 1.0, n), rng.normal(0.0, 1.0, m)
    found = mann_whitney(a, b)
    differences = np.sort((a[:, None] - b).ravel())
    assert found.shift == pytest.approx(np.median(differences))
    assert {found.low, found.high} <= set(differences)
    for inside, shift in [(True, found.low + 1e-9), (False, found.low - 1e-9), (True, found.high - 1e-9)]:
        assert (stats.mannwhitneyu(a - shift, b, method="exact").pvalue > 0.05) == inside


def test_a_paired_shift_is_the_median_of_all_averages():
    a, b = np.array(DEPRESSION_BEFORE), np.array(DEPRESSION_AFTER)
    found, d = wilcoxon(a, b), a - b
    averages = sorted((x + y) / 2 for x, y in itertools.combinations_with_replacement(d, 2))
    assert found.shift == pytest.approx(np.median(averages))
    assert found.low == pytest.approx(averages[5])  # R's psignrank: six of forty-five at either end
    assert found.high == pytest.approx(averages[-6])


def test_too_few_values_have_a_shift_without_limits():
    found = mann_whitney([1.0, 2.0, 3.0], [2.5, 4.0])
    assert (found.shift, found.low, found.high) == (-1.25, None, None)
    assert wilcoxon([1.0, 2.0], [0.5, 1.0]).low is None


@given(values, values, st.floats(-5.0, 5.0), st.floats(0.1, 10.0))
def test_shift_and_unit_come_back(a, b, shift, scale):
    plain = mann_whitney(a, b)
    moved = mann_whitney(np.array(a) * scale + shift * scale, np.array(b) * scale)
    assert moved.shift == pytest.approx(scale * (plain.shift + shift), abs=1e-9 * scale)
    ratio, factor = mann_whitney(a, b, ratio=True), mann_whitney(np.array(a) * scale, b, ratio=True)
    assert factor.shift == pytest.approx(scale * ratio.shift)
    other_way = mann_whitney(b, a)
    assert (other_way.shift, other_way.p) == (pytest.approx(-plain.shift), pytest.approx(plain.p))
    if plain.low is not None:
        assert plain.low <= plain.shift <= plain.high


def test_long_samples_are_compared_by_their_quantiles():
    rng = np.random.default_rng(3)
    a, b = rng.normal(1.0, 1.0, 5000), rng.normal(0.0, 1.0, 4000)
    found = mann_whitney(a, b)
    assert found.low < 1.0 < found.high
    assert found.high - found.low == pytest.approx(
        2 * 1.96 * np.sqrt(np.pi / 3 * (1 / 5000 + 1 / 4000)), rel=0.1
    )
    assert wilcoxon(a[:4000], b).shift == pytest.approx(1.0, abs=0.1)


def test_what_cannot_be_compared_is_refused():
    for arguments, reason in ((([], [1.0]), "values of either"), (([1.0, 1e301], [1.0]), "too large")):
        with pytest.raises(ValueError, match=reason):
            mann_whitney(*arguments)
    with pytest.raises(ValueError, match="equally many"):
        wilcoxon([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="positive"):
        wilcoxon([1.0, 0.0], [1.0, 1.0], ratio=True)


@pytest.mark.parametrize("test", [mann_whitney, wilcoxon])
def test_ranks_of_dependent_values_show_few_false_differences(test):
    """AR(1) with 0.6: taken as independent, a third of the series differ at 5 %."""
    generator = np.random.default_rng(3)
    found = {False: 0, True: 0}
    for _ in range(400):
        noise = generator.normal(size=(2, 160))
        for at in range(1, noise.shape[1]):
            noise[:, at] += 0.6 * noise[:, at - 1]
        a, b = noise[:, 100:]
        for dependent in found:
            shift = test(a, b, dependent=dependent)
            found[dependent] += shift.p < 0.05
            assert (shift.low > 0.0 or shift.high < 0.0) == (shift.p < 0.05) or abs(shift.p - 0.05) < 0.01
    assert found[False] > 0.25 * 400
    assert found[True] < 0.11 * 400


def test_ranks_of_independent_values_stay_as_they_are():
    a, b = np.random.default_rng(5).normal(size=(2, 30))
    assert mann_whitney(a, b, dependent=True) == mann_whitney(a, b)
    assert wilcoxon(a, b, dependent=True) == wilcoxon(a, b)
