"""Predicates: judged for every metric, with the figures that Getstats prints."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import linregress
from scipy.stats import t as student

from etude.stats.expression import ExpressionError
from etude.stats.predicate import NAMES, Predicate, bindings, figures
from support.golden import Golden

FIGURE_1 = '("$delta" < 0.05 * $mean) || ($count > 30)'
STEADY = [10.0, 10.1, 9.9, 10.0]
SHAKY = [10.0, 5.0, 15.0, 12.0]

samples = st.lists(st.floats(-1e6, 1e6) | st.integers(-1000, 1000), min_size=2, max_size=30)


def test_it_holds_if_it_holds_for_every_metric(golden: Golden) -> None:
    predicate = Predicate(FIGURE_1)
    assert predicate.judge({"elapsed": STEADY, "user": STEADY}).holds
    judgement = predicate.judge({"elapsed": STEADY, "user": SHAKY, "system": [3.0]})
    assert not judgement.holds
    assert judgement.failed == ("user", "system")
    assert re.match(r"user: .*\b64 %.*, system: ", judgement.why)
    golden(judgement.why)


def test_when_it_holds_it_says_for_what() -> None:
    assert "elapsed, user" in Predicate("1").judge({"elapsed": STEADY, "user": SHAKY}).why


def test_a_metric_can_be_excused() -> None:
    predicate = Predicate('"$name" eq "User" || $delta < 0.05 * $mean')
    assert predicate.judge({"elapsed": STEADY, "user": SHAKY}).holds
    assert not predicate.judge({"elapsed": SHAKY, "user": STEADY}).holds


@pytest.mark.parametrize("name", ["$delta", "$stddev", "$slope", "$hw", "$sdev"])
def test_one_value_is_never_enough(name: str) -> None:
    judgement = Predicate(f"{name} < 1000000").judge({"elapsed": [1.0]})
    assert not judgement.holds
    assert judgement.why == "elapsed: one value"


def test_no_value_and_no_metric_are_never_enough() -> None:
    assert Predicate("1").judge({"elapsed": []}).why == "elapsed: no value"
    assert not Predicate("1").judge({"elapsed": []}).holds
    assert not Predicate("1").judge({}).holds


@pytest.mark.parametrize(
    ("metric", "name", "column"),
    [
        ("elapsed", "Elapsed", "elapsed"),
        ("system", "System", "system"),
        ("sys", "System", "system"),
        ("User", "User", "user"),
        ("wait", "Wait", "wait"),
        ("io", "Wait", "wait"),
        ("cpu", "CPU%", "cpu"),
        ("peak_memory", "peak_memory", "peak_memory"),
    ],
)
def test_metrics_have_getstats_names_and_their_own(metric: str, name: str, column: str) -> None:
    assert Predicate(f'"$name" eq "{name}" && $column eq "{column}"').judge({metric: STEADY}).holds


@given(samples, st.sampled_from([0.9, 0.95, 0.99]))
def test_the_figures_are_those_of_the_textbook(x: list[float], confidence: float) -> None:
    found, n = figures(x, confidence), len(x)
    values = np.asarray(x, dtype=float)
    spread = float(values.std(ddof=1))
    assert (found.count, found.minimum, found.maximum) == (n, min(x), max(x))
    assert found.mean == pytest.approx(float(values.mean()))
    assert found.median == pytest.approx(float(np.median(values)))
    assert found.stddev == pytest.approx(spread, abs=1e-9)
    half = float(student.ppf((1 + confidence) / 2, n - 1)) * spread / math.sqrt(n)
    assert found.delta == pytest.approx(half, abs=1e-9)
    assert found.slope == pytest.approx(float(linregress(range(n), values).slope), abs=1e-6)


@given(samples)
def test_relative_figures_are_in_percent_of_the_mean(x: list[float]) -> None:
    found = figures(x)
    if found.mean:
        assert found.hw == pytest.approx(100 * found.delta / abs(found.mean))
        assert found.sdev == pytest.approx(100 * found.stddev / abs(found.mean))


def test_without_a_mean_nothing_is_relative() -> None:
    assert figures([-1.0, 1.0]).hw == math.inf
    assert figures([0.0, 0.0]).hw == 0.0


def test_dependence_does_not_widen_the_papers_interval() -> None:
    rising = list(range(1, 21))
    shuffled = [rising[i * 11 % 20] for i in range(20)]
    assert figures(rising).delta == pytest.approx(figures(shuffled).delta)


def test_each_name_is_bound_and_no_other() -> None:
    assert tuple(bindings("elapsed", figures(STEADY), 0.95)) == NAMES
    assert Predicate("$confidencelevel == 99", confidence=0.99).judge({"elapsed": STEADY}).holds
    assert Predicate("$delta < 0.3", confidence=0.99).judge({"elapsed": STEADY}).holds
    assert not Predicate("$delta < 0.2", confidence=0.99).judge({"elapsed": STEADY}).holds


def test_an_unknown_name_is_found_before_anything_is_judged() -> None:
    with pytest.raises(ExpressionError, match=r"\$dleta.*\$delta"):
        Predicate("$count > 30 || $dleta < 1")


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95.0])
def test_the_confidence_is_a_fraction(confidence: float) -> None:
    with pytest.raises(ValueError, match="fraction between 0 and 1"):
        Predicate("1", confidence)


@pytest.mark.parametrize("wrong", [[math.nan, 1.0], [math.inf, 1.0]])
def test_values_that_are_not_finite_are_refused(wrong: list[float]) -> None:
    with pytest.raises(ValueError, match="must be finite"):
        Predicate("1").judge({"elapsed": wrong})


def test_a_sample_without_values_has_no_figures() -> None:
    with pytest.raises(ValueError, match="without values"):
        figures([])
