"""Numbers for reading: nothing is lost but what rounding takes."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from etude.present.sentences.comparison import ratio_text
from etude.stats.ratio import Ratio
from etude.units.formatting import digits, duration, percent, quantity, scale_of, span

sizes = st.floats(1e-12, 1e15) | st.floats(-1e15, -1e-12)
SCALES = {
    "s": 1.0,
    "ms": 1e-3,
    "µs": 1e-6,
    "ns": 1e-9,
    "B": 1.0,
    "KiB": 2.0**10,
    "MiB": 2.0**20,
    "GiB": 2.0**30,
    "TiB": 2.0**40,
    "": 1.0,
    "k": 1e3,
    "M": 1e6,
    "G": 1e9,
}


def parsed(text: str) -> float:
    number, _, unit = text.replace(",", "").partition(" ")
    return float(number) * SCALES[unit]


@given(sizes, st.integers(1, 9))
def test_digits_lose_no_more_than_rounding_takes(x: float, significant: int) -> None:
    shown = float(digits(x, significant).replace(",", ""))
    step = 10.0 ** (math.floor(math.log10(abs(x))) + 1 - significant)
    assert abs(shown - x) <= 0.5 * min(step, max(step, 1.0)) * (1 + 1e-9) or abs(shown - x) <= 0.5


@given(st.floats(1e-9, 1e4), st.sampled_from(["s", "B", "1"]))
def test_a_quantity_is_read_back_within_its_rounding(value: float, unit: str) -> None:
    assume(unit == "s" or value >= 1)
    assert parsed(quantity(value, unit)) == pytest.approx(value, rel=6e-4)


@given(st.floats(1e-7, 1e4), st.floats(0.5, 2.0))
def test_values_of_one_row_are_shown_in_one_unit(mean: float, factor: float) -> None:
    unit = quantity(mean, "s").split()[1]
    assert quantity(mean * factor, "s", mean).split()[1] == unit


@given(st.floats(1e-9, 1e15), st.sampled_from(["s", "B", "1"]))
def test_the_scale_leaves_at_least_one_before_the_point(value: float, unit: str) -> None:
    assume(unit == "s" or value >= 1)
    divisor, _ = scale_of(value, unit)
    assert value / divisor >= 1


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.01234567, "s", "12.35 ms"),
        (0.0, "s", "0 s"),
        (None, "s", "–"),
        (90.0, "s", "90.00 s"),
        (1234567.0, "s", "1,234,567 s"),
        (1536.0, "B", "1.500 KiB"),
        (0.0, "B", "0 B"),
        (2_500_000.0, "1", "2.500 M"),
        (3.0, "1", "3.000"),
        (-0.002, "s", "-2.000 ms"),
        (12.0, "req/s", "12.00 req/s"),
    ],
)
def test_a_quantity_looks_so(value: float | None, unit: str, text: str) -> None:
    assert quantity(value, unit) == text


@given(st.floats(1e-5, 0.999))
def test_a_percentage_has_two_digits(relative: float) -> None:
    text = percent(relative)
    assert re.fullmatch(r"\d+(\.\d+)? %", text)
    assert float(text[:-2]) / 100 == pytest.approx(relative, rel=0.051, abs=6e-6)


@pytest.mark.parametrize(
    ("relative", "text"),
    [(0.019, "1.9 %"), (0.0, "0 %"), (0.00019, "0.019 %"), (0.5, "50 %"), (2.5, "250 %")],
)
def test_percentages_look_so(relative: float, text: str) -> None:
    assert percent(relative) == text


def test_what_is_not_finite_is_no_percentage() -> None:
    assert percent(math.inf) == percent(math.nan) == percent(1.797693134862512e306)
    assert not re.search(r"\d|inf|nan", percent(math.inf))


@given(st.floats(0.01, 100), st.floats(1e-4, 1))
def test_the_ends_of_a_span_can_be_told_apart_and_read_back(low: float, width: float) -> None:
    high = low + width
    left, _, right = span(low, high).partition("–")
    assert left != right
    assert float(left) == pytest.approx(low, abs=0.06 * width + 1e-5)
    assert float(right) == pytest.approx(high, abs=0.06 * width + 1e-5)


@given(st.floats(0.01, 100), st.floats(1e-4, 1))
def test_a_ratio_has_the_decimals_of_its_interval(middle: float, width: float) -> None:
    ratio = Ratio(middle, middle - width / 2, middle + width / 2, 10, "paired", 0.95, 1.0)
    decimals = len(ratio_text(ratio).partition(".")[2])
    assert decimals == len(span(ratio.low, ratio.high).partition("–")[0].partition(".")[2])
    assert float(ratio_text(ratio)) == pytest.approx(middle, abs=0.06 * width + 1e-5)


@given(st.floats(1e-5, 0.5))
def test_a_bound_is_never_rounded_below_what_it_bounds(bound: float) -> None:
    shown = float(percent(bound, up=True).removesuffix(" %"))
    assert 100 * bound - 1e-8 <= shown <= 110 * bound + 0.001


def test_a_ratio_without_an_interval_is_shown_all_the_same() -> None:
    for low, high, text in ((1.5, 1.5, "1.5"), (0.0, math.inf, "1.50")):
        assert ratio_text(Ratio(1.5, low, high, 2, "paired", 0.95, 1.0)) == text
        assert "–" in span(low, high)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.02, "20 ms"), (1.25, "1.2 s"), (14.2, "14 s"), (180.0, "3 min"), (7200.0, "2.0 h")],
)
def test_durations_look_so(seconds: float, text: str) -> None:
    assert duration(seconds) == text
