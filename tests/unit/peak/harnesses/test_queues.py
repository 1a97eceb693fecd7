"""What is known of queues agrees with formulas, with tables, and with simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.peak.harnesses.known_server import Queue, crommelin, drawn, erlang_c
from etude.peak.task import Criterion

MEAN = Criterion("mean", 0.040)
P95 = Criterion("percentile", 0.100, 95)


@given(load=st.floats(0.05, 0.999))
def test_one_worker_waits_as_pollaczek_and_khinchine_say(load: float) -> None:
    assert crommelin(1, load) == pytest.approx(load / (2 * (1 - load)), rel=1e-6)
    assert erlang_c(1, load) == pytest.approx(load)
    assert Queue(1, "exponential", 0.01).mean_response_s(100 * load).value == pytest.approx(0.01 / (1 - load))


@given(load=st.floats(0.05, 1.96))
def test_two_exponential_workers_wait_as_the_closed_form_says(load: float) -> None:
    response = Queue(2, "exponential", 1.0).mean_response_s(load).value
    assert response == pytest.approx(1 / (1 - (load / 2) ** 2))


def test_constant_services_wait_half_as_long_near_saturation() -> None:
    for workers in (2, 8, 25):
        load = 0.999 * workers
        halved = erlang_c(workers, load) / (workers - load) / 2
        assert crommelin(workers, load) == pytest.approx(halved, rel=0.01)


@pytest.mark.parametrize(("law", "workers"), [("exponential", 4), ("constant", 3)])
def test_simulation_agrees_with_what_is_exact(law: str, workers: int) -> None:
    exact = Queue(workers, law, 0.02)
    rate = 0.85 * exact.capacity
    # Another name for the same law: no formula is known of it by that.
    simulated = Queue(workers, {"exponential": "erlang:1", "constant": "erlang:1000000"}[law], 0.02)
    found = simulated.mean_response_s(rate)
    assert 0 < found.error < 0.02 * found.value
    assert found.value == pytest.approx(exact.mean_response_s(rate).value, abs=4 * found.error)
    if law == "exponential":
        p95 = simulated.percentile_s(rate, 95)
        assert p95.value == pytest.approx(exact.percentile_s(rate, 95).value, abs=4 * p95.error)


@given(workers=st.integers(1, 30), share=st.floats(0.05, 0.99), percent=st.floats(1, 99.9))
def test_a_percentile_of_exponential_services_is_exceeded_by_its_share(
    workers: int, share: float, percent: float
) -> None:
    queue = Queue(workers, "exponential", 1.0)
    load = share * workers
    time = queue.percentile_s(load, percent).value
    wait, spare = erlang_c(workers, load), workers - load
    # P(T > t) integrated over the wait, which is exponential of rate c - a where there is one.
    grid = np.linspace(0, time, 20_001)
    inside = np.trapezoid(wait * spare * np.exp(-spare * grid) * np.exp(-(time - grid)), grid)
    tail = (1 - wait) * math.exp(-time) + inside + wait * math.exp(-spare * time)
    assert tail == pytest.approx(1 - percent / 100, abs=2e-5)


@pytest.mark.parametrize("criterion", [MEAN, P95], ids=["mean", "p95"])
def test_the_criterion_is_met_at_the_peak_exactly(criterion: Criterion) -> None:
    queue = Queue(4, "exponential", 0.01)
    peak = queue.peak(criterion)
    assert queue.response_s(peak.value, criterion).value == pytest.approx(criterion.limit, rel=1e-2)
    assert peak.error == 0
    assert queue.peak(criterion, overhead_s=0.002).value < peak.value


@pytest.mark.more
def test_a_simulated_peak_has_an_error_and_variable_services_a_lower_peak() -> None:
    even, uneven = (Queue(4, law, 0.01).peak(MEAN) for law in ("constant", "hyperexponential:2"))
    assert even.error == 0 < uneven.error < 0.01 * uneven.value
    assert uneven.value < Queue(4, "exponential", 0.01).peak(MEAN).value < even.value


def test_what_has_no_peak_is_said() -> None:
    queue = Queue(4, "exponential", 0.05)
    with pytest.raises(ValueError, match="services alone"):
        queue.peak(MEAN)
    with pytest.raises(ValueError, match=r"99\.5%"):
        queue.peak(Criterion("mean", 100.0))
    with pytest.raises(ValueError, match="percentile"):
        queue.peak(Criterion("errors", 0.01))
    with pytest.raises(ValueError, match="80/s"):
        queue.mean_response_s(80)
    with pytest.raises(ValueError, match="no law"):
        drawn("normal", np.random.default_rng(0), (1,))


@pytest.mark.parametrize(
    ("law", "variation"),
    [
        ("constant", 0.0),
        ("exponential", 1.0),
        ("erlang:4", 0.5),
        ("lognormal:1.5", 1.5),
        ("hyperexponential:2", 2.0),
    ],
)
def test_laws_have_a_mean_of_one_and_the_variation_of_their_name(law: str, variation: float) -> None:
    times = drawn(law, np.random.default_rng(5), (400_000,))
    assert times.mean() == pytest.approx(1, abs=0.012)
    assert times.std() / times.mean() == pytest.approx(variation, rel=0.05)
