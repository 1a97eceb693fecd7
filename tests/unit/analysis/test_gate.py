"""`--fail-if`: what it may say, and that an interval judges it."""

from __future__ import annotations

import contextlib
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from etude.analysis.comparison import Comparison
from etude.analysis.cross_session import CrossSession
from etude.analysis.gate import Answer, Bound, answers, parse_bound
from etude.analysis.subject import subject_of_table
from etude.analysis.verdict import MetricSummary, TestVerdict, Verdict, verdict
from etude.errors import UsageError
from etude.present.sentences.bounds import answer_reason
from etude.present.sentences.phrases import EXTENDED
from etude.results.readers import read_table
from etude.stats.cross_session import CrossSessionRatio, NotSupported, stated_session_spread
from etude.stats.describe import describe
from etude.stats.intervals import Interval, effective_count, t_quantile
from etude.stats.ratio import Ratio
from etude.units.formatting import percent
from support.golden import Golden


@pytest.mark.parametrize(
    ("text", "of", "limit", "unit", "above"),
    [
        ("elapsed > baseline * 1.05", "ratio", 1.05, None, True),
        ("elapsed>baseline*1.05", "ratio", 1.05, None, True),
        ("elapsed >= baseline", "ratio", 1.0, None, True),
        ("speed < baseline / 1.25", "ratio", 0.8, None, False),
        ("elapsed > baseline + 5%", "ratio", 1.05, None, True),
        ("speed < baseline - 5 %", "ratio", 0.95, None, False),
        ("elapsed > baseline + 2 ms", "difference", 0.002, "s", True),
        ("elapsed < baseline - 2", "difference", -2.0, None, False),
        ("elapsed > 12 ms", "value", 0.012, "s", True),
        ("peak_memory > 1e3 MiB", "value", 1e3 * 2**20, "B", True),
        ("delta < -3", "value", -3.0, None, False),
    ],
)
def test_bounds(text: str, of: str, limit: float, unit: str | None, above: bool) -> None:
    bound = parse_bound(text)
    assert (bound.of, bound.unit, bound.above) == (of, unit, above)
    assert bound.limit == pytest.approx(limit)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "elapsed",
        "elapsed > ",
        "elapsed = 3",
        "elapsed > baseline * -1",
        "elapsed > baseline * 0",
        "elapsed > baseline * 2 ms",
        "elapsed > baseline - 100%",
        "elapsed > 3 parsecs",
        "3 < elapsed",
        "elapsed > baseline * baseline",
    ],
)
def test_what_is_no_bound_is_refused_with_what_was_expected(text: str) -> None:
    with pytest.raises(UsageError, match=re.escape(repr(text))):
        parse_bound(text)


@given(st.text(max_size=40))
def test_any_text_is_a_bound_or_refused(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert isinstance(parse_bound(text), Bound)


def compared(low: float, high: float, difference: Interval | None = None) -> Comparison:
    error = math.log(high / low) / 2 / t_quantile(0.95, 19.0)
    ratio = Ratio((low * high) ** 0.5, low, high, 20, "paired", 0.95, 1.0, error, 19.0)
    return Comparison(
        "a", "b", "elapsed", "s", 1.0, ratio, None, 0, None, None, 0.0, 0, 0.0, False, difference=difference
    )


def asked(text: str, *comparisons: Comparison, across: tuple[CrossSession, ...] = ()) -> list[bool | None]:
    return [answer.fails for answer in answers(parse_bound(text), (), comparisons, across)]


@pytest.mark.parametrize(
    ("low", "high", "fails"),
    [(1.06, 1.10, True), (1.04, 1.10, None), (0.98, 1.05, False), (1.0, 1.04, False), (1.051, 1.2, True)],
)
def test_a_ratio_fails_only_when_its_whole_interval_is_beyond(
    low: float, high: float, fails: bool | None
) -> None:
    assert asked("elapsed > baseline * 1.05", compared(low, high)) == [fails]


def test_a_limit_that_is_not_the_bound_does_not_look_like_it() -> None:
    (answer,) = answers(parse_bound("elapsed > baseline * 1.1"), (), [compared(1.05, 1.10004)], ())
    numbers = re.findall(r"\d\.\d+", answer_reason(answer))
    assert len(set(numbers)) == 3


def test_of_many_comparisons_each_needs_a_wider_interval(golden: Golden) -> None:
    assert asked("elapsed > baseline", compared(1.001, 1.02)) == [True]
    assert asked("elapsed > baseline", *[compared(1.001, 1.02)] * 20) == [None] * 20
    told = answers(parse_bound("elapsed > baseline"), (), [compared(1.1, 1.2)] * 3, ())
    assert re.search(r"\b3\b.* 1\.0\d+ … 1\.\d+", answer_reason(told[0]))
    golden(answer_reason(told[0]))


def test_what_does_not_vary_cannot_be_told() -> None:
    ratio = Ratio(1.1, 1.1, 1.1, 20, "unpaired", 0.95, 1.0, 0.0, 19.0)
    assert asked("elapsed > baseline", replace(compared(1.0, 2.0), ratio=ratio)) == [None]


def test_a_bound_from_below_is_the_mirror_image() -> None:
    assert asked("elapsed < baseline * 0.9", compared(0.7, 0.8)) == [True]
    assert asked("elapsed < baseline * 0.9", compared(0.7, 0.95)) == [None]
    assert asked("elapsed < baseline * 0.9", compared(0.9, 0.95)) == [False]


def test_a_difference_is_judged_by_its_own_interval() -> None:
    c = compared(1.0, 2.0, Interval(0.003, 0.004))
    assert asked("elapsed > baseline + 2 ms", c) == [True]
    assert asked("elapsed > baseline + 5 ms", c) == [False]
    with pytest.raises(UsageError, match="has no interval"):
        asked("elapsed > baseline + 2 ms", compared(1.0, 2.0))
    with pytest.raises(UsageError, match=r"elapsed .*\bs\b.*\bB$"):
        asked("elapsed > baseline + 2 KiB", c)


def test_fewer_trials_than_a_verdict_judges_decide_no_bound() -> None:
    few, enough = (replace(compared(1.5, 1.6), trials=trials) for trials in (4, 10))
    assert asked("elapsed > baseline * 1.05", few) == asked("elapsed > baseline * 2", few) == [None]
    assert asked("elapsed > baseline * 1.05", enough) == [True]
    (told,) = answers(parse_bound("elapsed > baseline"), (), [few], ())
    assert (told.more, told.precision, told.decides) == (6, None, True)
    wide = replace(compared(1.0, 1.2), trials=9)
    (told,) = answers(parse_bound("elapsed > baseline * 1.08"), (), [wide], ())
    (enough_made,) = answers(parse_bound("elapsed > baseline * 1.08"), (), [replace(wide, trials=10)], ())
    assert (told.more, told.precision) == (enough_made.more, enough_made.precision)
    assert told.more > 1
    unpaired = replace(wide, trials=8, ratio=replace(wide.ratio, method="unpaired"))
    (told,) = answers(parse_bound("elapsed > baseline * 1.08"), (), [unpaired], ())
    assert (told.more, told.decides) == (2, False), "it is not known how many would"
    assert answers(parse_bound("elapsed > baseline"), (), [few], (), few=4)[0].fails
    difference = replace(few, difference=Interval(0.003, 0.004))
    assert asked("elapsed > baseline + 2 ms", difference) == [None]
    test = TestVerdict(
        "t", {}, 5, {}, 5, 1, (MetricSummary("elapsed", "s", describe([1.0, 1.1, 0.9])),), 0, 0.0
    )
    assert answers(parse_bound("elapsed > 0.01 s"), [test], (), ())[0].fails is None
    ratio = CrossSessionRatio(1.2, 1.1, 1.3, 0.01, stated_session_spread(2.0), 0.5, 0.95)
    found = CrossSession("a", "a", "old", "new", "elapsed", "s", 1.0, ratio, trials=9)
    assert asked("elapsed > baseline * 1.05", across=(found,)) == [None]


def test_a_difference_that_the_verdict_does_not_claim_breaks_no_bound() -> None:
    noise = replace(compared(1.06, 1.10), floor=0.2)
    assert noise.within_noise
    assert asked("elapsed > baseline * 1.05", noise) == asked("elapsed > baseline", noise) == [None]
    assert asked("elapsed > baseline * 0.9", noise) == [True]
    assert asked("elapsed > baseline * 1.2", noise) == [False]
    assert asked("elapsed < baseline * 0.9", replace(compared(0.8, 0.88), floor=0.3)) == [None]
    assert asked("elapsed > baseline + 1 ms", replace(noise, difference=Interval(0.002, 0.004))) == [None]
    steady = replace(noise, floor_ratio=compared(1.15, 1.25).ratio)
    assert steady.within_steady_noise
    given = [
        answers(parse_bound("elapsed > baseline * 1.05"), (), [c], ())[0].unclaimed for c in (noise, steady)
    ]
    assert given[0] != given[1]
    opposed = replace(compared(1.06, 1.10), typical=compared(0.9, 0.95).ratio)
    assert asked("elapsed > baseline * 1.05", opposed) == [None]


@pytest.mark.parametrize(
    ("text", "difference"), [("baseline * 1.05", None), ("baseline + 1 ms", Interval(0.002, 0.004))]
)
def test_an_answer_after_a_look_says_so(text: str, difference: Interval | None) -> None:
    first = compared(1.06, 1.10, difference)
    told = [
        answers(parse_bound(f"elapsed > {text}"), (), [replace(first, extended=extended)], ())[0]
        for extended in (False, True)
    ]
    assert [EXTENDED in answer_reason(each) for each in told] == [False, True]


def test_an_interval_that_holds_the_bound_says_how_many_more_pairs_would_not() -> None:
    near, far = (
        answers(parse_bound(text), (), [compared(1.0, 1.2)], ())[0]
        for text in ("elapsed > baseline * 1.08", "elapsed > baseline * 1.01")
    )
    assert near.more > far.more > 0
    assert near.precision is not None
    assert near.precision == pytest.approx(1.2**0.5 / 1.08 - 1.0, rel=0.2)
    for bound, found in ((1.08, near), (1.01, far)):
        said = float(percent(found.precision or 0.0).split()[0]) / 100.0
        assert said == pytest.approx(found.precision)
        assert 1.2**0.5 / (1.0 + said) >= bound
    assert answers(parse_bound("elapsed > baseline * 1.5"), (), [compared(1.0, 1.2)], ())[0].more == 0


def test_a_mean_is_judged_by_its_interval() -> None:
    summary = describe([1.0, 1.1, 0.9, 1.0, 1.05] * 2)
    test = TestVerdict("t", {}, 10, {}, 10, 1, (MetricSummary("elapsed", "s", summary),), 0, 0.0)

    def told(text: str) -> list[Answer]:
        return answers(parse_bound(text), [test], (), ())

    assert [a.fails for a in told("elapsed > 0.5 s")] == [True]
    assert [a.fails for a in told("elapsed > 1 s")] == [None]
    assert [a.fails for a in told("elapsed > 2000 ms")] == [False]
    with pytest.raises(UsageError, match=r"'nosuch > 1': .*nosuch"):
        told("nosuch > 1")


def test_a_stored_baseline_counts_as_far_as_it_may_be_compared() -> None:
    ratio = CrossSessionRatio(1.2, 1.1, 1.3, 0.01, stated_session_spread(2.0), 0.5, 0.95)
    found = CrossSession("a", "a", "old", "new", "elapsed", "s", 1.0, ratio)
    assert asked("elapsed > baseline * 1.05", across=(found,)) == [True]
    with pytest.raises(UsageError, match="by their ratio"):
        asked("elapsed > baseline + 2 ms", across=(found,))
    refused = CrossSession(
        "a", "a", "old", "new", "elapsed", "s", 1.0, NotSupported("a reason", 1, 2, "a remedy")
    )
    with pytest.raises(UsageError, match=r"\bold: a reason; a remedy$"):
        asked("elapsed > baseline * 1.05", across=(refused,))


def test_a_question_that_nothing_answers_is_an_error_of_usage() -> None:
    with pytest.raises(UsageError, match=r"': .*\belapsed\b.*--reference"):
        asked("elapsed > baseline * 1.05")


def test_a_question_on_what_has_no_ratio_says_why() -> None:
    with pytest.raises(UsageError, match=r"': no elapsed of b against a: some are 0$"):
        answers(
            parse_bound("elapsed > baseline * 1.05"),
            [],
            [],
            [],
            without=["no elapsed of b against a: some are 0"],
        )


def test_of_many_means_each_needs_a_wider_interval(tmp_path: Path) -> None:
    values = {name: np.random.default_rng(n).normal(5.0, 0.1, 12) for n, name in enumerate("abcdefghijkl")}

    def judged(names: str) -> Verdict:
        lines = [f"{name},{x}" for name in names for x in values[name]]
        file = tmp_path / f"{names}.csv"
        file.write_text("\n".join(["test,elapsed", *lines, ""]))
        return verdict(subject_of_table(read_table(file)))

    def half(test: TestVerdict) -> float:
        m = test.metric("elapsed")
        assert m is not None
        assert m.summary is not None
        assert m.summary.mean_interval is not None
        return m.summary.mean_interval.half_width

    tests, count = judged("abcdefghijkl").together("elapsed")
    assert count == 12
    for test in tests:
        x = values[test.test]
        error = x.std(ddof=1) / math.sqrt(effective_count(x))
        assert half(test) == pytest.approx(stats.t.isf(0.025 / 12, 11) * error)
    alone = judged("a")
    (told,) = answers(parse_bound("elapsed > 3"), tests[:1], (), (), together=count)
    assert "for all 12" in answer_reason(told), "also where one alone has an interval as wide as that"
    (test,), count = alone.together("elapsed")
    assert (half(test), count) == (half(alone.tests[0]), 1)
