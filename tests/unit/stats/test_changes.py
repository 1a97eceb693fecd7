"""Steps in series: found where they are, and not found where there are none, nor where values drift."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import lfilter

from etude.stats.changes import FEWEST, SHORTEST, fit_steps

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
    false = sum(bool(fit_steps(x).steps) for x in flat)
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
        steps = fit_steps(x).steps
        found += any(abs(step.at - at) <= 2 for step in steps)
    assert found >= 32, f"{found} of 40"


def test_two_opposite_steps_are_both_found() -> None:
    x = np.random.default_rng(3).standard_normal(200)
    x[90:102] += 5.0
    assert [step.at for step in fit_steps(x).steps] == [90, 102]


def test_the_intervals_of_size_and_place_hold_the_truth() -> None:
    found = size = place = 0
    for seed in range(100):
        x = np.random.default_rng([9, seed]).standard_normal(120)
        x[50:] += 2.0
        steps = fit_steps(x).steps
        if not steps:
            continue
        found += 1
        step = min(steps, key=lambda step: abs(step.at - 50))
        size += step.interval.low <= 2.0 <= step.interval.high
        place += step.earliest <= 50 <= step.latest
        assert step.earliest <= step.at <= step.latest
        assert step.p < 0.01
    assert found >= 92
    assert size >= 88
    assert place >= 90


@pytest.mark.parametrize("name", ["white", "heavy-tailed t3"])
def test_a_linear_drift_of_two_deviations_is_a_drift_and_no_step(name: str) -> None:
    found = [
        fit_steps(NOISES[name](np.random.default_rng([10, seed]), 100) + np.linspace(0.0, 2.0 * scale, 100))
        for seed in range(40)
        for scale in (1.0 if name == "white" else 3.0**0.5,)
    ]
    assert sum(bool(each.steps) for each in found) <= 2
    assert sum(each.drift is not None for each in found) >= 36


def test_a_large_drift_is_one_and_its_interval_holds_the_truth() -> None:
    held = 0
    for seed in range(60):
        found = fit_steps(np.random.default_rng([11, seed]).standard_normal(120) - np.linspace(0.0, 8.0, 120))
        assert found.drift is not None
        held += found.drift.interval.low <= -8.0 <= found.drift.interval.high
    assert held >= 53


def test_a_step_within_a_drift_is_found_beside_it() -> None:
    x = np.random.default_rng(12).standard_normal(200) + np.linspace(0.0, 6.0, 200)
    x[120:] += 8.0
    found = fit_steps(x)
    assert found.drift is not None
    assert [step.at for step in found.steps] == [120]
    assert found.steps[0].interval.low <= 8.0 <= found.steps[0].interval.high
    assert float(np.mean((x - found.fitted) ** 2)) < 1.5


def test_a_step_is_no_drift() -> None:
    drifts = 0
    for seed in range(40):
        x = np.random.default_rng([13, seed]).standard_normal(100)
        x[60:] += 4.0
        drifts += fit_steps(x).drift is not None
    assert drifts <= 1


@pytest.mark.parametrize(("n", "each"), [(20, 1), (45, 5), (60, 5), (200, 20)])
def test_a_clear_step_between_days_is_not_taken_for_dependence(n: int, each: int) -> None:
    found = 0
    for seed in range(60):
        random = np.random.default_rng([18, seed])
        days = np.arange(n) // each
        x = random.standard_normal(n) + 0.5 * random.standard_normal(days[-1] + 1)[days]
        at = each * int(random.integers(SHORTEST, days[-1] + 2 - SHORTEST))
        x[at:] += 8.0
        found += any(abs(step.at - at) <= 2 for step in fit_steps(x, blocks=days).steps)
    assert found >= 36, f"{found} of 60"


@pytest.mark.parametrize("n", [10, 12, 14, 20])
def test_a_blatant_step_of_a_short_history_is_no_drift(n: int) -> None:
    found = 0
    for seed in range(50):
        random = np.random.default_rng([n, seed])
        x = 0.01 * random.standard_normal(n)
        x[n // 2 :] += 0.3
        made = fit_steps(x)
        found += [step.at for step in made.steps] == [n // 2] and made.drift is None
    assert found >= 42


@pytest.mark.parametrize("n", [20, 50])
def test_a_clear_line_is_not_taken_for_dependence(n: int) -> None:
    found = 0
    for seed in range(40):
        x = np.random.default_rng([19, seed]).standard_normal(n) + np.linspace(0.0, 10.0, n)
        history = fit_steps(x)
        found += history.drift is not None and not history.steps
    assert found >= 36, f"{found} of 40"


def test_offsets_of_days_are_no_steps() -> None:
    false = 0
    for seed in range(40):
        random = np.random.default_rng([14, seed])
        days = np.arange(60) // 5
        x = random.standard_normal(60) + 1.5 * random.standard_normal(12)[days]
        false += bool(fit_steps(x, blocks=days).steps)
    assert false <= 2


def test_an_offset_of_one_of_three_days_is_no_step_wherever_it_seems_to_begin() -> None:
    false = 0
    for seed in range(80):
        random = np.random.default_rng([17, seed])
        days = np.arange(60) // 20
        x = random.standard_normal(60) + 2.0 * random.standard_normal(3)[days]
        false += bool(fit_steps(x, blocks=days).steps)
    assert false <= 4


@pytest.mark.parametrize(("n", "at", "steps"), [(40, 20, []), (60, 33, [33])])
def test_of_few_days_a_step_within_a_day_is_one_and_another_day_is_none(
    n: int, at: int, steps: list[int]
) -> None:
    x = np.random.default_rng(15).standard_normal(n)
    x[at:] += 6.0
    found = fit_steps(x, blocks=np.arange(n) // 20)
    assert [step.at for step in found.steps] == steps
    assert found.drift is None
    assert [step.at for step in fit_steps(x).steps] == [at]


@pytest.mark.parametrize(("at", "steps"), [(85, [85]), (90, [])])
def test_a_step_between_days_needs_three_days_of_either_level(at: int, steps: list[int]) -> None:
    x = np.random.default_rng(16).standard_normal(100)
    x[at:] += 5.0
    assert [step.at for step in fit_steps(x, blocks=np.arange(100) // 5).steps] == steps


def test_blocks_of_another_number_than_the_values_are_refused() -> None:
    with pytest.raises(ValueError, match="blocks"):
        fit_steps([1.0, 2.0], blocks=[1])


def test_two_outliers_beside_each_other_are_no_step() -> None:
    x = np.random.default_rng(4).standard_normal(100)
    x[40:42] += 1000.0
    assert fit_steps(x).steps == ()


def test_a_step_of_values_that_do_not_vary_is_found_with_its_exact_size() -> None:
    (step,) = fit_steps([3.0] * 20 + [4.0] * 10).steps
    assert (step.at, step.size, step.interval.low, step.interval.high) == (20, 1.0, 1.0, 1.0)


def test_values_that_never_vary_have_one_level() -> None:
    found = fit_steps([2.5] * 50)
    assert (found.steps, found.levels, found.noise.deviation) == ((), (2.5,), 0.0)


def test_no_values_are_refused() -> None:
    with pytest.raises(ValueError, match="without values"):
        fit_steps([])


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=60))
def test_stretches_cover_any_series_in_order_and_none_is_short(x: list[float]) -> None:
    found = fit_steps(x)
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
    ones, others = fit_steps([float(v) for v in x]), fit_steps([v * unit for v in x])
    assert [s.at for s in ones.steps] == [s.at for s in others.steps]


def test_a_step_within_one_of_a_few_days_is_seen_beside_a_drift() -> None:
    n = np.arange(60)
    random = np.random.default_rng(3)
    values = 0.06 * n / 59 + 0.26 * (n >= 30) + 0.005 * random.standard_normal(60)
    found = fit_steps(values, blocks=n // 20)
    assert [step.at for step in found.steps] == [30]
    assert found.drift is None
    assert found.steps[0].interval.low > 0.2


def test_a_drift_alone_over_a_few_days_is_neither_a_drift_nor_a_step() -> None:
    n = np.arange(60)
    values = 0.06 * n / 59 + 0.002 * np.random.default_rng(3).standard_normal(60)
    found = fit_steps(values, blocks=n // 20)
    assert found.steps == ()
    assert found.drift is None


@pytest.mark.parametrize(
    ("sizes", "drift"), [((8.0, 8.0), 0.0), ((6.0, -6.0), 0.0), ((12.0,), 14.0), ((-12.0,), 14.0)]
)
def test_what_is_a_step_or_a_drift_is_no_dependence_that_hides_another(
    sizes: tuple[float, ...], drift: float
) -> None:
    found = 0
    for seed in range(30):
        random = np.random.default_rng([seed, 60])
        x = random.standard_normal(60) + np.linspace(0.0, drift, 60)
        places = [60 * k // (len(sizes) + 1) for k in range(1, len(sizes) + 1)]
        for at, size in zip(places, sizes, strict=True):
            x[at:] += size
        seen = fit_steps(x)
        near = [any(abs(step.at - at) <= 2 for step in seen.steps) for at in places]
        found += all(near) and len(seen.steps) == len(places) and (seen.drift is not None) is (drift > 0.0)
    assert found >= 26


def test_a_drift_that_may_be_a_step_names_its_place_and_a_step_that_may_be_a_drift_is_marked() -> None:
    drifts = named = steps = marked = 0
    for seed in range(80):
        random = np.random.default_rng([seed, 20])
        x = random.standard_normal(20)
        x[10:] += 2.5
        seen = fit_steps(x)
        if seen.drift is not None:
            drifts += 1
            named += any(abs(at - 10) <= 4 for at in seen.drift.or_steps)
        elif seen.steps:
            steps += 1
            marked += seen.steps[0].or_drift
    assert min(drifts, steps) >= 10
    assert named >= 0.7 * drifts
    assert marked >= 0.15 * steps


def test_large_steps_and_drifts_leave_nothing_open() -> None:
    x = np.random.default_rng(3).standard_normal(60)
    (step,) = fit_steps(x + 8.0 * (np.arange(60) >= 30)).steps
    assert not step.or_drift
    drift = fit_steps(x + np.linspace(0.0, 12.0, 60)).drift
    assert drift is not None
    assert drift.or_steps == ()
