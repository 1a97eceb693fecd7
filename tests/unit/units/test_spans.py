"""Intervals of ratios as text: no bound above zero is shown as zero, and both have one notation."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.units.formatting import ratio_format, span

ENDS = st.floats(1e-9, 1e9)


@given(ENDS, ENDS)
def test_no_bound_above_zero_is_shown_as_zero(a: float, b: float) -> None:
    low, high = sorted((a, b))
    assert all(float(end) > 0 for end in span(low, high).split("–"))


@given(ENDS, ENDS, st.floats(0, 1))
def test_a_ratio_has_the_notation_of_its_interval(a: float, b: float, share: float) -> None:
    low, high = sorted((a, b))
    ratio = min(max(low + share * (high - low), low), high)
    assert ratio_format(ratio, low, high) == ratio_format(high, low, high)


@pytest.mark.parametrize(
    ("low", "high", "form"),
    [
        (1.62e-07, 3.147e07, ".4g"),
        (7.2e-06, 139762.08, ".4g"),
        (0.0, 139762.08, ".2f"),
        (0.0031, 1.5, ".3f"),
        (0.98, 1.04, ".3f"),
        (0.5, math.inf, ".2f"),
    ],
)
def test_wide_intervals_have_significant_digits(low: float, high: float, form: str) -> None:
    assert ratio_format(high, low, high) == form
