"""What differs in slow trials is found, with its share; nothing is, where there is nothing, or too little."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.errors import InputError
from etude.stats.ranks import mann_whitney
from etude.why.outlier_trials import OutlierTrials, read_outlier_trials
from etude.why.outliers import Observed, outliers, permutation_p, slow_trials

FSYNC = Observed("call", "fsync", "log", "s")
READ = Observed("call", "read", "data", "s")
FAULTS = Observed("metric", "minor_faults", "", "1")


def noise(seed: int, count: int = 64) -> tuple[np.ndarray, dict[Observed, np.ndarray]]:
    """Times of trials, every 8th one by 0.5 s longer, and what has nothing to do with them."""
    random = np.random.default_rng(seed)
    elapsed = random.normal(1.0, 0.01, count) + 0.5 * (np.arange(count) % 8 == 7)
    named = {Observed("call", "read", f"f{n}", "s"): random.exponential(0.1, count) for n in range(20)}
    return elapsed, named | {FAULTS: random.poisson(100, count).astype(float)}


def test_a_call_in_every_eighth_trial_is_named_with_its_share() -> None:
    elapsed, observed = noise(1)
    slow = np.arange(64) % 8 == 7
    random = np.random.default_rng(2)
    observed[FSYNC] = np.where(slow, 0.4 + random.normal(0, 0.01, 64), 0.0)
    found = outliers(elapsed, observed)
    assert list(found.slow) == np.flatnonzero(slow).tolist()
    assert [cause.of for cause in found.causes] == [FSYNC]
    assert found.causes[0].share == pytest.approx(0.8, abs=0.02)
    assert found.causes[0].typical == 0.0
    assert found.needed is None


def test_what_has_nothing_to_do_with_slow_trials_is_rarely_named() -> None:
    named = sum(bool(outliers(*noise(seed)).causes) for seed in range(100))
    assert named <= 10  # 5 % of 100; 10 or fewer with a probability of 98.9 %


def test_without_slow_trials_nothing_is_compared() -> None:
    elapsed = np.linspace(1.0, 1.01, 50)
    found = outliers(elapsed, {READ: elapsed})
    assert (found.slow, found.causes, found.needed) == ((), (), None)


@pytest.mark.parametrize("slow", [1, 2])
def test_too_few_slow_trials_are_not_compared_and_enough_are(slow: int) -> None:
    elapsed = np.full(40, 1.0)
    elapsed[:slow] = 2.0
    found = outliers(elapsed, {READ: elapsed - 0.5})
    assert (len(found.slow), found.causes) == (slow, ())
    assert found.needed is not None
    more = np.full(found.needed, 1.0)
    more[: round(slow / 40 * found.needed)] = 2.0
    assert [c.of for c in outliers(more, {READ: more - 0.5}).causes] == [READ]


def test_a_slow_trial_exceeds_the_median_by_three_scaled_deviations() -> None:
    elapsed = np.array([1.0, 1.1, 0.9, 1.05, 0.95, 1.0, 1.2, 1.21])
    median = float(np.median(elapsed))
    bound, slow = slow_trials(elapsed)
    assert bound == pytest.approx(median + 3 * 1.4826 * float(np.median(np.abs(elapsed - median))))
    assert slow.tolist() == (elapsed > bound).tolist()


def test_trials_that_all_take_the_same_have_none_that_is_slow() -> None:
    assert not slow_trials(np.full(9, 2.0))[1].any()


def test_p_is_that_of_mann_and_whitney() -> None:
    random = np.random.default_rng(3)
    table = random.normal(0, 1, (30, 4))
    slow = np.arange(30) < 6
    table[slow] += [0.0, 0.5, 1.0, 1.5]
    expected = [mann_whitney(column[slow], column[~slow]).p for column in table.T]
    assert permutation_p(table, slow) == pytest.approx(expected, abs=0.02)


def test_a_reading_that_some_trials_lack_counts_for_the_others() -> None:
    elapsed, _ = noise(1)
    slow = np.arange(64) % 8 == 7
    others, half = (Observed("monitor", name, "", "CPUs") for name in ("others", "half"))
    values = np.where(slow, 1.0, 0.1) + np.random.default_rng(1).normal(0, 0.01, 64)
    values[:3] = math.nan
    found = outliers(elapsed, {others: values, half: np.where(np.arange(64) < 32, values, math.nan)})
    assert [c.of for c in found.causes] == [others]
    assert found.looked_at == 1
    assert math.isfinite(found.causes[0].typical)


def test_quantities_that_are_no_times_come_from_each_source_in_turn() -> None:
    slow = np.arange(64) % 8 == 7
    values = np.where(slow, 2.0, 1.0)
    counts = {Observed("call", "read", f"f{n}", "1"): values for n in range(12)}
    rest = {FAULTS: values, Observed("monitor", "busy", "", "share"): values, FSYNC: values}
    found = outliers(1.0 + 0.5 * slow, counts | rest)
    assert [c.of.source for c in found.causes] == ["call", "metric", "call", "monitor", *["call"] * 6]
    assert found.causes[0].of == FSYNC


VALUES = st.lists(st.floats(0, 1e3) | st.none(), min_size=3, max_size=3)
OBSERVED = st.tuples(
    st.sampled_from(["call", "monitor"]), st.text(max_size=3), st.text(max_size=3), st.just("s"), VALUES
)


def stored(found: OutlierTrials) -> str:
    return json.dumps({"format": "etude-why-outliers", "version": 1} | asdict(found))


@given(st.lists(OBSERVED, max_size=3))
def test_what_is_stored_is_read_again(tmp_path_factory: pytest.TempPathFactory, observed: list[Any]) -> None:
    found = OutlierTrials("t", [1, 2, 4], [1.0, 2.0, 1.5], observed, None, ["p"], True)
    place = tmp_path_factory.mktemp("o")
    (place / "why-outliers.json").write_text(stored(found))
    assert read_outlier_trials(place) == found
    assert found.outliers().trials == 3


@pytest.mark.parametrize("text", ["", "[]", "{", '{"version": 2}', "short"])
def test_an_edited_file_is_refused_with_its_name(tmp_path: Path, text: str) -> None:
    if text == "short":
        text = stored(OutlierTrials("t", [1, 2], [1.0, 2.0], [(*READ, [1.0])], 1.0, [], False))
    (tmp_path / "why-outliers.json").write_text(text)
    with pytest.raises(InputError, match=r"why-outliers\.json"):
        read_outlier_trials(tmp_path)
