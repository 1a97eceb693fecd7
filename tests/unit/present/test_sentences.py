"""The sentences of a verdict: what they claim, what they stand on, and what more would show."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from etude.analysis.comparison import QuieterMetric
from etude.analysis.subject import StopRuleInfo
from etude.analysis.verdict import Comparison, MetricSummary, TestVerdict, Verdict
from etude.present.sentences.comparison import (
    basis_line,
    caution,
    comparison_lines,
    margin,
    narrower_line,
    ratio_text,
    takes_text,
    widened_line,
)
from etude.present.sentences.verdict import compared_lines, joined_lines
from etude.results.trial_join import why_not_joined
from etude.stats.describe import describe
from etude.stats.intervals import Interval
from etude.stats.ratio import Ratio
from etude.units.formatting import level_text, span
from support.golden import Golden


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


def of_several(*comparisons: Comparison) -> list[str]:
    verdict = SimpleNamespace(comparisons=comparisons, subject=SimpleNamespace(label="my results"))
    return list(compared_lines(cast("Verdict", verdict)))


def missing(line: str, *parts: str) -> list[str]:
    return [part for part in parts if part not in line]


def test_a_difference_is_a_ratio_with_its_interval_and_what_it_stands_on(golden: Golden) -> None:
    assert missing(said()[0], "B", "1.040 × A", "95 %", "1.020–1.060", "± 1.8 %") == []
    golden(said()[0])


@pytest.mark.parametrize(("values", "ends"), [((1.0, 1.1, 1.2, 1.1, 1.0), 0), ((1.0, 0.2, 0.1, 9.0, 0.3), 2)])
def test_a_margin_as_large_as_the_mean_is_told_by_its_ends(values: tuple[float, ...], ends: int) -> None:
    words = margin(describe(values), "s")
    assert len(re.findall(r"[\d.]+ m?s", words)) == ends
    assert ("%" in words) == (ends == 0)
    assert margin(describe(values[:1]), "s") == ""


def test_a_ratio_within_the_noise_of_identical_commands_is_no_claim(golden: Golden) -> None:
    noisy = replace(SLOWER, floor=0.05)
    assert (noisy.excludes_one, noisy.within_noise, noisy.differs) == (True, True, False)
    faster = replace(noisy, ratio=ratio(1 / 1.04, 1 / 1.06, 1 / 1.02))
    assert (faster.within_noise, faster.differs) == (True, False)
    assert (SLOWER.within_noise, SLOWER.differs) == (False, True)
    assert replace(SLOWER, floor=None).differs
    golden(comparison_lines(noisy)[0])


def test_no_claim_where_the_means_and_the_typical_run_point_in_different_directions(golden: Golden) -> None:
    opposed = replace(SLOWER, typical=ratio(0.76, 0.7, 0.82))
    assert (opposed.opposed, opposed.differs) == (True, False)
    alike = replace(SLOWER, typical=ratio(1.03, 1.02, 1.04))
    assert (alike.opposed, alike.differs) == (False, True)
    golden("\n".join(comparison_lines(c)[0] for c in (opposed, alike)))


def test_a_claim_beside_a_difference_that_may_be_0_says_so(golden: Golden) -> None:
    held, clear = (replace(SLOWER, difference=Interval(low, 0.01)) for low in (-0.001, 0.001))
    assert caution(held) != caution(clear) == caution(SLOWER)
    assert held.differs
    golden(comparison_lines(held)[0])


def test_nothing_is_claimed_of_values_that_never_vary(golden: Golden) -> None:
    constant = replace(SLOWER, ratio=ratio(1.025, 1.025, 1.025))
    assert (constant.varies, constant.excludes_one, constant.differs) == (False, True, False)
    (line,) = comparison_lines(constant)
    assert "1.025" in line
    golden(line)


def test_a_difference_of_the_reference_from_itself_is_not_averaged_out() -> None:
    noisy = replace(SLOWER, floor=0.05, finer=0.01, more=100)
    steady = replace(noisy, floor_ratio=ratio(1.05, 1.04, 1.06, 10))
    assert (noisy.within_steady_noise, steady.within_steady_noise) == (False, True)
    assert not replace(steady, ratio=ratio(1.07, 1.06, 1.08)).within_steady_noise
    assert narrower_line(noisy) is not None
    assert narrower_line(steady) is None


def test_what_a_ratio_rests_on_is_a_line_of_its_own(golden: Golden) -> None:
    bases = [replace(SLOWER, **changes) for changes in ({}, {"contention": True}, {"floor": None})]
    lines = [basis_line(c) for c in bases]
    for line in lines:
        assert missing(line, "40 pairs", "A", "elapsed", "12.34 ms") == []
    assert len(set(lines)) == 3
    golden("\n".join(lines))


def test_a_verdict_needs_no_more_than_a_ratio_its_interval_and_the_noise() -> None:
    for changes in ({}, {"ratio": ratio(1.0, 0.99, 1.01)}, {"asked": 0.01, "finer": 0.01}):
        words = " ".join(said(**changes))
        assert not re.search(r"pair|session|sitting|floor|half width|kept|block|H0|p =|order|trimmed", words)


def test_no_difference_says_above_which_size(golden: Golden) -> None:
    line = said(ratio=ratio(1.003, 0.987, 1.019))[0]
    assert missing(line, "B", "A", "1.9 %", "1.003", "95 %", "0.987–1.019", "± 1.8 %") == []
    assert "1.9 %" not in said(ratio=ratio(1.003, 0.987, 1.019), floor=0.03)[0]
    golden(line)


@pytest.mark.parametrize(
    ("low", "high", "differs"),
    [(1.02, 1.06, True), (0.9, 0.99, True), (1.0, 1.06, False), (0.9, 1.0, False), (0.99, 1.01, False)],
)
def test_a_difference_is_claimed_only_when_the_interval_excludes_one(
    low: float, high: float, differs: bool
) -> None:
    c = replace(SLOWER, ratio=ratio((low + high) / 2, low, high))
    assert c.differs == differs
    assert comparison_lines(c)[0].startswith(takes_text("elapsed", "B", ratio_text(c.ratio), "A")) == differs


def test_an_interval_that_says_nothing_is_not_dressed_up(golden: Golden) -> None:
    lines = [said(ratio=wide)[0] for wide in (ratio(1.5, 0.2, 9.0), ratio(1.0, 0.0, float("inf")))]
    for line in lines:
        assert "below" not in line
    golden("\n".join(lines))


def test_an_unknown_noise_says_how_many_pairs_there_are(golden: Golden) -> None:
    unknown = replace(SLOWER, floor=None, floor_pairs=3)
    assert "3 of 5 pairs" in basis_line(unknown)
    assert "±" not in comparison_lines(unknown)[0]
    golden(f"{comparison_lines(unknown)[0]}\n{basis_line(unknown)}")


def narrower(**changes: Any) -> str:
    return narrower_line(replace(SLOWER, **changes)) or ""


def test_what_more_trials_would_show_is_said_with_their_time(golden: Golden) -> None:
    many, one = narrower(), narrower(more=1, more_s=0.02)
    assert missing(many, "110 to 240 more trials", "± 1.0 %") == []
    assert (
        missing(narrower(ratio=replace(SLOWER.ratio, degrees=20_000.0)), "bout 160 more trials", "14 s") == []
    )
    assert missing(one, "1 to ", "20 ms", "± 1.0 %") == []
    assert narrower(more=0) == narrower(asked=0.01) == ""
    golden(f"{many}\n{one}")


def test_nobody_is_told_how_to_reach_a_margin_that_says_nothing() -> None:
    assert narrower(finer=0.2, more=2) != ""
    assert narrower(finer=0.5, more=2) == narrower(finer=5.0, more=2) == narrower(finer=float("inf")) == ""


def test_a_precision_that_was_not_reached_is_said_not_to_be(golden: Golden) -> None:
    (line,) = said(asked=0.01, finer=0.01)[1:]
    assert missing(line, "± 1.9 %", "1.0 %", "110 to 240 more trials") == []
    assert said(asked=0.05) == said()
    (named,) = comparison_lines(replace(SLOWER, asked=0.01, finer=0.01), several=True)[1:]
    assert missing(named, " B ", " A ") == []
    golden(f"{line}\n{named}")


def test_trials_that_would_take_too_long_are_no_advice(golden: Golden) -> None:
    far = {"asked": 0.001, "finer": 0.001, "more": 10**9, "more_s": 7e7}
    (line,) = said(**far)[1:]
    assert not re.search(r"1,000,000,000| h\)", line)
    assert narrower(more=10**9, more_s=7e7) == ""
    golden(line)


def test_a_duet_is_a_ratio_under_contention(golden: Golden) -> None:
    line = said(contention=True)[0]
    assert line != said()[0]
    golden(line)


@pytest.mark.parametrize(("span_s", "says"), [(0.2, True), (2.4, True), (2.6, False), (None, False)])
def test_a_ratio_of_one_moment_says_how_long_that_was(
    span_s: float | None, says: bool, golden: Golden
) -> None:
    ways: list[dict[str, Any]] = [
        {},
        {"contention": True},
        {"ratio": replace(SLOWER.ratio, method="unpaired")},
    ]
    lines = [said(span_s=span_s, **way)[0] for way in ways]
    assert [line != said(**way)[0] for line, way in zip(lines, ways, strict=True)] == [says] * 3
    golden("\n".join(lines))


def test_another_metric_is_not_called_time(golden: Golden) -> None:
    first = said(metric="peak_memory", unit="B", base_mean=2048.0)[0]
    second = basis_line(replace(SLOWER, metric="peak_memory", unit="B", base_mean=2048.0))
    assert missing(first, "B's peak_memory", "1.040 × A") == []
    assert missing(second, "A's peak_memory", "2.000 KiB") == []
    assert not re.search(r"\btime\b|elapsed", first + second)
    golden(f"{first}\n{second}")


@pytest.mark.parametrize(
    ("confidence", "text"),
    [(0.95, "95 %"), (0.999, "99.9 %"), (0.9999999, "99.99999 %"), (1.0 - 1e-14, "99.999999999999 %")],
)
def test_no_confidence_is_said_to_be_100_percent(confidence: float, text: str) -> None:
    assert level_text(confidence) == text


def test_names_that_end_in_s_take_an_apostrophe() -> None:
    assert "2 × ls' " in takes_text("elapsed", "B", "2", "ls")


def test_what_a_predicate_costs_is_said_once(golden: Golden) -> None:
    def asked(factors: dict[str, float], precision: float | None = None) -> StopRuleInfo:
        return StopRuleInfo("elapsed", False, factors, factors, precision, ())

    line = widened_line(asked({"a": 1.08, "b": 1.16}))
    assert line is not None
    assert missing(line, "1.08", "1.16") == []
    assert widened_line(asked({"a": 1.0})) is None
    assert widened_line(asked({"a": 1.08}, 0.05)) is None  # a rule of ours says so where it is explained
    golden(line)


def test_a_ratio_beyond_a_million_has_an_exponent() -> None:
    assert ratio_text(Ratio(2.42193e28, 1e28, 5e28, 10, "paired", 0.95, 1.0)) == "2.422e+28"
    assert span(1e7, 5e28) == "1e+07–5e+28"


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (1.00107, 1.113, "1.001–1.113"),
        (1.0001, 1.14, "1.0001–1.1400"),
        (0.87, 0.9999, "0.8700–0.9999"),
        (1.000001, 1.2, "1.00000–1.20000"),
        (1.0, 1.2, "1.00–1.20"),
        (0.96, 1.04, "0.960–1.040"),
    ],
)
def test_an_end_beside_1_is_seen_on_its_side(low: float, high: float, text: str) -> None:
    assert span(low, high) == text
    ratio = Ratio(1.05, low, high, 10, "paired", 0.95, 1.0)
    assert len(ratio_text(ratio).partition(".")[2]) == len(text.partition("–")[2].partition(".")[2])


def test_workers_of_several_numbers_are_one_line_a_way() -> None:
    def told(name: str, workers: int, **joins: str) -> TestVerdict:
        metrics = tuple(
            MetricSummary(m, "1/s", None, joined=how, workers=workers) for m, how in joins.items()
        )
        return TestVerdict(name, {}, 1, Counter(), 1, 1, metrics, 0, 0.0, None)

    tests = [told(str(n), n, rate="sum", memory="max") for n in (1, 2, 4)]
    one, other = joined_lines(tests[1:], ("rate", "memory"))
    assert one.endswith("sum of 2 or 4 workers: rate")
    assert other.endswith("largest of 2 or 4 workers: memory")
    (of_all, _) = joined_lines(tests, ("rate", "memory"))
    assert "commands or 2 or 4 workers" in of_all
    assert len(joined_lines([told("a", 2, rate="sum"), told("b", 4, memory="max")], ("rate", "memory"))) == 2


def test_what_is_alike_of_several_comparisons_is_one_line(golden: Golden) -> None:
    quieter = QuieterMetric("CPU time", ratio(1.03, 1.029, 1.031))
    b = replace(SLOWER, asked=0.01, quieter=quieter)
    c = replace(b, other="C", ratio=ratio(1.04, 0.9, 1.2), more=900, more_s=40.0)
    d = replace(SLOWER, other="D", asked=0.1)
    assert of_several(b) == comparison_lines(b)
    named = comparison_lines(b, several=True)
    assert of_several(b, d) == [named[0], comparison_lines(d)[0], *named[1:]]
    lines = of_several(b, c, d)
    assert lines[:3] == [comparison_lines(each)[0] for each in (b, c, d)]
    assert len(lines) == 5
    assert missing(lines[3], "CPU time", "'my results'") == []
    assert missing(lines[4], "2 of 3", *(f"{float(f'{end:.2g}'):,.0f}" for end in c.more_range)) == []
    golden("\n".join(lines))


def test_each_quieter_metric_of_several_comparisons_has_its_own_line() -> None:
    b = replace(SLOWER, quieter=QuieterMetric("CPU time", ratio(1.03, 1.029, 1.031)))
    c = replace(b, other="C", quieter=QuieterMetric("instructions", ratio(1.03, 1.029, 1.031)))
    assert sorted(of_several(b, c)) == sorted([*comparison_lines(b), *comparison_lines(c)])


def test_what_is_not_joined_for_one_reason_is_one_line() -> None:
    why = why_not_joined(asked=False)
    metrics = tuple(MetricSummary(f"p{n}", "s", None, why, joined="none", workers=2) for n in (50, 99))
    tests = [TestVerdict(name, {}, 1, Counter(), 1, 1, metrics, 0, 0.0, None) for name in "ab"]
    (told,) = joined_lines(tests, ("p50", "p99"))
    assert told == f"p50, p99: {why}"
