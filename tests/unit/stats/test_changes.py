"""Steps in series: found where they are, and not found where there are none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import lfilter

from etude.stats.changes import FEWEST, SHORTEST, stepped

Draw = Callable[[np.random.Generator, int], np.ndarray]


def autoregression(dependence: float, heavy: bool = False) -> Draw:
    def draw(random: np.random.Generator, n: int) -> np.ndarray:
        noise = random.standard_t(3, n + 100) if heavy else random.standard_normal(n + 100)
        return lfilter([1], [1, -dependence], noise)[100:] * np.sqrt(1 - dependence**2)

    return draw


NOISES: dict[str, Draw] = {
    "white": lambda random, n: random.standard_normal(n),
    "autocorrelated 0.3": autoregression(0.3),
    "autocorrelated 0.5": autoregression(0.5),
    "heavy-tailed t3": lambda random, n: random.standard_t(3, n),
    "heavy-tailed Cauchy": lambda random, n: random.standard_cauchy(n),
    "one in twelve ten times as wild": lambda random, n: (
        random.standard_normal(n) * np.where(random.random(n) < 1 / 12, 10, 1)
    ),
    "two modes": lambda random, n: random.standard_normal(n) + 5 * (random.random(n) < 0.3),
    "autocorrelated and heavy-tailed": autoregression(0.5, heavy=True),
    "few different values": lambda random, n: np.floor(random.random(n) * 1.05) + 10.0,
}


@pytest.mark.parametrize("name", NOISES)
def test_a_flat_history_of_200_raises_none_in_19_of_20(name: str) -> None:
    flat = [NOISES[name](np.random.default_rng([7, seed]), 200) for seed in range(200)]
    false = sum(bool(stepped(x).steps) for x in flat)
    assert false <= 10, f"{false} of 200"


@pytest.mark.parametrize("name", [name for name in NOISES if name != "few different values"])
def test_a_step_in_200_is_found_at_its_place(name: str) -> None:
    found = 0
    for seed in range(40):
        random = np.random.default_rng([8, seed])
        x = NOISES[name](random, 200)
        spread = 1.4826 * np.median(np.abs(x - np.median(x)))
        at = int(random.integers(20, 180))
        x[at:] += 6.0 * spread
        steps = stepped(x).steps
        found += any(abs(step.at - at) <= 2 for step in steps)
    assert found >= 32, f"{found} of 40"


def test_two_opposite_steps_are_both_found() -> None:
    x = np.random.default_rng(3).standard_normal(200)
    x[90:102] += 5.0
    assert [step.at for step in stepped(x).steps] == [90, 102]


def test_the_intervals_of_size_and_place_hold_the_truth() -> None:
    size = place = 0
    for seed in range(100):
        x = np.random.default_rng([9, seed]).standard_normal(120)
        x[50:] += 2.0
        step = min(stepped(x).steps, key=lambda step: abs(step.at - 50))
        size += step.interval.low <= 2.0 <= step.interval.high
        place += step.earliest <= 50 <= step.latest
        assert step.earliest <= step.at <= step.latest
        assert step.p < 0.01
    assert size >= 88
    assert place >= 92


def test_two_outliers_beside_each_other_are_no_step() -> None:
    x = np.random.default_rng(4).standard_normal(100)
    x[40:42] += 1000.0
    assert stepped(x).steps == ()


def test_a_step_of_values_that_do_not_vary_is_found_with_its_exact_size() -> None:
    (step,) = stepped([3.0] * 20 + [4.0] * 10).steps
    assert (step.at, step.size, step.interval.low, step.interval.high) == (20, 1.0, 1.0, 1.0)


def test_values_that_never_vary_have_one_level() -> None:
    found = stepped([2.5] * 50)
    assert (found.steps, found.levels, found.noise.deviation) == ((), (2.5,), 0.0)


def test_no_values_are_refused() -> None:
    with pytest.raises(ValueError, match="without values"):
        stepped([])


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=60))
def test_stretches_cover_any_series_in_order_and_none_is_short(x: list[float]) -> None:
    found = stepped(x)
    bounds = [*found.starts, len(x)]
    assert len(found.levels) == len(found.steps) + 1
    if found.steps:
        assert len(x) >= FEWEST
        assert min(np.diff(bounds)) >= SHORTEST
    for step in found.steps:
        assert 0 < step.earliest <= step.at <= step.latest < len(x)
        assert 0.0 <= step.p <= 1.0


@given(st.lists(st.integers(-1000, 1000), min_size=6, max_size=60), st.sampled_from([0.5, 2.0, 1024.0]))
def test_places_do_not_depend_on_the_unit(x: list[int], unit: float) -> None:
    ones, others = stepped([float(v) for v in x]), stepped([v * unit for v in x])
    assert [s.at for s in ones.steps] == [s.at for s in others.steps]
