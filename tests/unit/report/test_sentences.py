"""The sentences of a verdict: what they claim, what they stand on, and what more would show."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from etude.report.asked import Asked
from etude.report.text import comparison_lines, takes, widened_line
from etude.report.verdict import Comparison
from etude.stats.compare import Ratio


def ratio(middle: float, low: float, high: float, count: int = 40) -> Ratio:
    return Ratio(middle, low, high, count, "paired", 0.95, 1.0)


SLOWER = Comparison(
    base="A",
    other="B",
    metric="elapsed",
    unit="s",
    base_mean=0.01234,
    ratio=ratio(1.04, 1.02, 1.06),
    floor=0.018,
    floor_pairs=10,
    floor_ratio=ratio(1.0, 0.98, 1.02, 10),
    asked=None,
    finer=0.01,
    more=160,
    more_s=14.0,
    contention=False,
)


def said(**changes: Any) -> list[str]:
    return comparison_lines(replace(SLOWER, **changes))


def test_a_difference_is_a_ratio_with_its_interval_and_what_it_stands_on() -> None:
    assert said()[0] == (
        "B takes 1.040 × A's time (95 %: 1.020–1.060; 40 pairs, random order, this sitting only); "
        "noise floor of this machine now ± 1.8 %."
    )


def test_the_base_value_stands_beside_each_ratio() -> None:
    for changes in ({}, {"ratio": ratio(1.0, 0.99, 1.01)}, {"contention": True}):
        assert said(**changes)[1] == "A's elapsed is 12.34 ms (mean)."


def test_no_difference_says_above_which_size() -> None:
    assert said(ratio=ratio(1.003, 0.987, 1.019))[0] == (
        "No difference above 1.9 % can be seen between B and A (ratio 1.003, 95 %: 0.987–1.019; 40 pairs, random "
        "order, this sitting only); noise floor of this machine now ± 1.8 %."
    )


@pytest.mark.parametrize(
    ("low", "high", "differs"),
    [(1.02, 1.06, True), (0.9, 0.99, True), (1.0, 1.06, False), (0.9, 1.0, False), (0.99, 1.01, False)],
)
def test_a_difference_is_claimed_only_when_the_interval_excludes_one(
    low: float, high: float, differs: bool
) -> None:
    c = replace(SLOWER, ratio=ratio((low + high) / 2, low, high))
    assert c.differs == differs
    assert ("takes" in comparison_lines(c)[0]) == differs


def test_an_interval_that_says_nothing_is_not_dressed_up() -> None:
    for wide in (ratio(1.5, 0.2, 9.0), ratio(1.0, 0.0, float("inf"))):
        line = said(ratio=wide)[0]
        assert "No difference above" not in line
        assert "Nothing can be said yet" in line


def test_an_unknown_noise_floor_says_how_many_pairs_there_are() -> None:
    assert (
        "noise floor not yet known (3 of 5 pairs of A against itself)." in said(floor=None, floor_pairs=3)[0]
    )


def test_what_more_pairs_would_show_is_said_with_their_time() -> None:
    assert said()[2:] == ["160 more pairs (14 s) would narrow it to ± 1.0 %."]
    assert said(more=1, more_s=0.02)[2:] == ["1 more pair (20 ms) would narrow it to ± 1.0 %."]
    assert said(more=0)[2:] == []


def test_a_precision_that_was_not_reached_is_said_not_to_be() -> None:
    lines = said(asked=0.01, finer=0.01)
    assert lines[2] == (
        "Not converged: the ratio is known to ± 1.9 %, 1.0 % was asked; 160 more pairs (14 s) would reach it."
    )
    assert not [line for line in said(asked=0.05) if "converged" in line]


def test_a_duet_is_a_ratio_under_contention() -> None:
    assert "40 pairs, both at once: ratio under contention, this sitting only" in said(contention=True)[0]


def test_another_metric_is_not_called_time() -> None:
    assert said(metric="peak_memory", unit="B", base_mean=2048.0)[:2] == [
        "B's peak_memory is 1.040 × A's (95 %: 1.020–1.060; 40 pairs, random order, this sitting only); "
        "noise floor of this machine now ± 1.8 %.",
        "A's peak_memory is 2.000 KiB (mean).",
    ]


def test_names_that_end_in_s_take_an_apostrophe() -> None:
    assert takes("elapsed", "B", "2", "ls") == "B takes 2 × ls' time"


def test_what_a_predicate_costs_is_said_once() -> None:
    def asked(factors: dict[str, float], precision: float | None = None) -> Asked:
        return Asked("elapsed", False, factors, factors, precision, ())

    assert widened_line(asked({"a": 1.08, "b": 1.16})) == (
        "Intervals are widened by 1.08 to 1.16, because a predicate looked at the trials until it held."
    )
    assert widened_line(asked({"a": 1.0})) is None
    assert widened_line(asked({"a": 1.08}, 0.05)) is None, "a rule of ours says so where it is explained"
