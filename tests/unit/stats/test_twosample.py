"""Welch's and Student's t, variances, and the ratio of means: scipy's numbers and the paper's own."""

import csv
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from etude.stats.moments import Moments, deviation_of, mean_of, moments_of
from etude.stats.twosample import f_test, levene, student, t_test_by_variance, welch
from support.places import DATA

GOLDEN = DATA / "autopilot-figures.csv"

# Count, mean and SDEV% as figure 3 of the Auto-pilot paper prints them.
FIGURE_3 = {
    "chill": {"Elapsed": (10, 38.649, 2.528), "System": (10, 1.663, 5.071)},
    "remount": {"Elapsed": (10, 38.751, 0.614), "System": (10, 1.796, 9.255)},
}
FIELDS = {
    "diff_ci_low": "low",
    "diff_ci_high": "high",
    "p_u1>u2": "p_greater",
    "p_u1<u2": "p_less",
    "p_u1!=u2": "p",
}

A = np.array([1.21, 1.28, 1.16, 1.24, 1.25, 1.18])
B = np.array([1.02, 1.31, 0.95, 1.05])

values = st.lists(st.floats(-1e6, 1e6) | st.integers(-9, 9).map(float), min_size=2, max_size=20)


def summary(file, quantity):
    count, mean, percent = FIGURE_3[file][quantity]
    return Moments(count, mean, mean * percent / 100.0)


def golden(*, alternative):
    lines = [line for line in GOLDEN.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    rows = [row for row in csv.DictReader(lines) if row["file"] == "remount-chill"]
    return [row for row in rows if ("_alt" in row["statistic"]) == alternative]


def within(row, value):
    """As far as the rounding of the paper's inputs can tell, and half a last digit."""
    return float(row["lowest_by_rounding"]) - 0.0005 <= value <= float(row["highest_by_rounding"]) + 0.0005


@pytest.mark.parametrize(
    "row", golden(alternative=False), ids=lambda row: f"{row['quantity']} {row['statistic']}"
)
def test_students_t_gives_the_numbers_of_figure_3(row):
    found = student(summary("remount", row["quantity"]), summary("chill", row["quantity"]))
    value = getattr(found, FIELDS[row["statistic"]])
    assert row["verdict"] in ("exact", "rounding")
    assert within(row, float(row["printed"]))
    assert value == pytest.approx(float(row["recomputed"]), abs=1e-6)


@pytest.mark.parametrize(
    "row",
    [row for row in golden(alternative=True) if row["verdict"] == "NO"],
    ids=lambda row: f"{row['quantity']} {row['statistic']}",
)
def test_what_the_paper_did_not_compute_is_not_what_students_t_gives(row):
    """The counter-tests: Welch gives the recomputed figure, which is not the printed one; Student does not."""
    field = FIELDS[row["statistic"].removesuffix("_alt_welch")]
    pair = summary("remount", row["quantity"]), summary("chill", row["quantity"])
    assert getattr(welch(*pair), field) == pytest.approx(float(row["recomputed"]), abs=1e-6)
    assert not within(row, float(row["printed"]))
    assert not within(row, getattr(student(*pair), field))


def test_the_print_out_of_figure_3_comes_out_of_its_summaries():
    lines = []
    for quantity in ("Elapsed", "System"):
        found = student(summary("remount", quantity), summary("chill", quantity))
        lines.append(f"{quantity}: ({found.low:.2f}, {found.high:.2f})")
        lines += [f"{h.null}  {h.alternative}  {h.p:.2f} {h.result}" for h in found.hypotheses]
    assert lines == [
        "Elapsed: (-0.57, 0.77)",
        "u1 <= u2  u1 >  u2  0.38 ACCEPT H_0",
        "u1 >= u2  u1 <  u2  0.62 ACCEPT H_0",
        "u1 == u2  u1 != u2  0.75 ACCEPT H_0",
        "System: (0.01, 0.26)",
        "u1 <= u2  u1 >  u2  0.02 REJECT H_0",
        "u1 >= u2  u1 <  u2  0.98 ACCEPT H_0",
        "u1 == u2  u1 != u2  0.04 REJECT H_0",
    ]


@pytest.mark.parametrize(("test", "pooled"), [(welch, False), (student, True)])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_both_t_tests_are_scipys(test, pooled, confidence):
    found = test(A, B, confidence=confidence)
    limits = stats.ttest_ind(A, B, equal_var=pooled).confidence_interval(confidence)
    assert (found.low, found.high) == pytest.approx(tuple(limits))
    for field, alternative in (("p", "two-sided"), ("p_greater", "greater"), ("p_less", "less")):
        expected = stats.ttest_ind(A, B, equal_var=pooled, alternative=alternative).pvalue
        assert getattr(found, field) == pytest.approx(expected)
    assert (found.difference, found.confidence) == (pytest.approx(A.mean() - B.mean()), confidence)


@pytest.mark.parametrize("test", [welch, student])
def test_a_summary_says_what_the_values_say(test):
    from_values, from_summaries = test(A, B), test(moments_of(A), Moments(4, B.mean(), B.std(ddof=1)))
    assert vars(from_values) == pytest.approx(vars(from_summaries))


def test_a_summary_of_impossible_numbers_is_refused():
    for wrong in ((1, 1.0, 1.0), (5, math.nan, 1.0), (5, 1.0, -1.0), (5, 1.0, math.inf)):
        with pytest.raises(ValueError, match="needs"):
            Moments(*wrong)


def test_without_any_spread_no_difference_is_judged():
    for test in (welch, student):
        with pytest.raises(ValueError, match="neither sample varies"):
            test([2.0, 2.0], [3.0, 3.0, 3.0])
    assert welch([2.0, 2.0], [3.0, 3.1, 3.2]).degrees == pytest.approx(2.0)


@pytest.mark.parametrize(("count", "power"), [(3, 0.8), (10, 0.8), (10, 0.5), (40, 0.95)])
def test_the_smallest_difference_is_found_as_often_as_is_said(count, power):
    found = student(Moments(count, 10.0, 1.0), Moments(count, 9.0, 1.0))
    smallest = found.smallest_found(power)
    limit = stats.t.isf(0.025, found.degrees)
    true_power = stats.nct.sf(limit, found.degrees, smallest / found.standard_error)
    assert true_power == pytest.approx(power, abs=1e-4)


def test_the_smallest_difference_does_not_depend_on_the_one_that_was_seen():
    near, far = (student(Moments(10, mean, 1.0), Moments(10, 9.0, 1.0)) for mean in (9.1, 20.0))
    assert near.smallest_found() == pytest.approx(far.smallest_found())
    with pytest.raises(ValueError, match="power"):
        near.smallest_found(0.04)


@given(
    a=values,
    b=values,
    shift=st.floats(-1e3, 1e3),
    scale=st.floats(0.01, 100.0),
    test=st.sampled_from([welch, student]),
)
def test_a_difference_moves_and_grows_with_its_unit(a, b, shift, scale, test):
    spread = max(np.ptp(a), np.ptp(b))
    assume(spread > 1e-3 * max(1.0, np.max(np.abs(a)), np.max(np.abs(b))))
    plain = test(a, b)
    moved = test(scale * np.array(a) + shift, scale * np.array(b) + shift)
    assume(plain.standard_error > 1e-6 * max(1.0, abs(plain.difference)))
    for field in ("difference", "low", "high"):
        assert getattr(moved, field) == pytest.approx(
            scale * getattr(plain, field), rel=1e-4, abs=scale * spread * 1e-6
        )
    assert moved.p == pytest.approx(plain.p, abs=1e-4)
    other_way = test(b, a)
    assert (other_way.low, other_way.p_less) == pytest.approx((-plain.high, plain.p_greater))
    assert plain.p == pytest.approx(2.0 * min(plain.p_greater, plain.p_less))
    assert (plain.low <= 0.0 <= plain.high) == (plain.p >= 0.05) or plain.p == pytest.approx(0.05)


def test_f_and_levene_are_scipys():
    found = f_test(A, B)
    assert found.statistic == pytest.approx(np.var(A, ddof=1) / np.var(B, ddof=1))
    assert found.p == pytest.approx(2.0 * stats.f.cdf(found.statistic, 5, 3))
    assert f_test(moments_of(A), moments_of(B)) == found
    for centre in ("median", "mean"):
        expected = stats.levene(A, B, center=centre)
        found = levene(A, B, centre=centre)
        assert (found.statistic, found.p) == pytest.approx((expected.statistic, expected.pvalue))


def test_the_planned_choice_takes_welch_where_the_spreads_differ():
    alike, unlike = np.array([1.0, 1.1, 0.9, 1.05]), np.array([1.0, 5.0, -3.0, 9.0])
    assert t_test_by_variance(alike, alike + 1.0)[0] == student(alike, alike + 1.0)
    found, why = t_test_by_variance(alike, unlike)
    assert found == welch(alike, unlike)
    assert why.p < 0.05
    assert t_test_by_variance(alike, alike + 1.0, by="Levene")[1].method == "Levene"
    with pytest.raises(ValueError, match="values themselves"):
        t_test_by_variance(moments_of(alike), unlike, by="Levene")


@given(
    st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=20),
    st.sampled_from([1e-250, 1e-120, 1.0, 1e120, 1e250]),
)
def test_moments_keep_what_is_very_large_or_very_small(x, scale):
    plain = moments_of(np.array(x))
    scaled = np.array(x) * scale
    assert mean_of(scaled) == pytest.approx(plain.mean * scale, rel=1e-9, abs=1e-9 * scale)
    assert deviation_of(scaled) == pytest.approx(plain.deviation * scale, rel=1e-6, abs=1e-9 * scale)
