"""Adjusted p-values: R's worked numbers, scipy's, and what every adjustment promises."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from etude.stats.multiplicity import Adjusted, benjamini_hochberg, holm

probabilities = st.lists(st.floats(0.0, 1.0), max_size=30)
RAW = [0.01, 0.04, 0.03, 0.005, 0.9]


def adjusted(found):
    return [a.adjusted for a in found]


def test_holm_is_rs_p_adjust():
    assert adjusted(holm(RAW)) == pytest.approx([0.04, 0.09, 0.09, 0.025, 0.9])


@given(probabilities)
def test_benjamini_hochberg_is_scipys(p):
    expected = stats.false_discovery_control(p) if p else []
    assert adjusted(benjamini_hochberg(p)) == pytest.approx(list(expected))


@given(probabilities, st.randoms())
def test_adjusting_never_helps_a_p_and_keeps_their_order(p, random):
    for method in (holm, benjamini_hochberg):
        found = method(p)
        assert [a.raw for a in found] == p
        assert all(a.raw <= a.adjusted <= 1.0 for a in found)
        by_raw = sorted(found, key=lambda a: a.raw)
        assert adjusted(by_raw) == sorted(adjusted(found))
        shuffled = list(found)
        random.shuffle(shuffled)
        assert sorted(adjusted(method([a.raw for a in shuffled]))) == pytest.approx(sorted(adjusted(found)))
    assert all(h.adjusted >= b.adjusted for h, b in zip(holm(p), benjamini_hochberg(p), strict=True))


def test_a_test_that_could_not_be_made_does_not_count():
    for method in (holm, benjamini_hochberg):
        with_gap = method([0.02, None, 0.04])
        assert with_gap[1] == Adjusted(None, None)
        assert (with_gap[0], with_gap[2]) == method([0.02, 0.04])
        assert method([]) == ()


@pytest.mark.parametrize("wrong", [-0.1, 1.1, float("nan"), float("inf")])
def test_what_is_no_probability_is_refused(wrong):
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm([0.5, wrong])
