"""Simulated servers: trials that follow from a seed, and manners that last from one to the next."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.peak.harnesses.curves import (
    CURVES,
    TROUBLED,
    Curve,
    ServerBehaviour,
)
from etude.peak.harnesses.simulated import QUIET, SimulatedServer
from etude.peak.task import Criterion, Goal, Trial, TrialRequest, slo_ratio_of
from etude.peak.window import joined_windows

GOAL = Goal((Criterion("mean", 0.040),))
MM1 = CURVES["mm1"]
ALL = [*CURVES.values(), *TROUBLED.values()]


def named(curve: Curve) -> str:
    return curve.name


def never(windows):
    return False


def request(load: float = 800.0, runlength_s: float = 180.0) -> TrialRequest:
    return TrialRequest(load, runlength_s, "a test")


def mean_s(trial: Trial) -> float:
    mean = joined_windows(trial.windows).mean_s
    assert mean is not None
    return mean


@pytest.mark.parametrize("curve", ALL, ids=named)
def test_the_same_seed_gives_the_same_trials(curve):
    first, again, other = (SimulatedServer(curve, 1000, seed) for seed in (5, 5, 6))
    offers = [request(load) for load in (500, 1500, 900, 900)]
    trials = [first.run(each, never) for each in offers]
    assert trials == [again.run(each, never) for each in offers]
    assert trials != [other.run(each, never) for each in offers]
    assert trials[2] != trials[3]


@pytest.mark.parametrize("curve", ALL, ids=named)
def test_a_server_goes_on_where_it_was_stopped(curve):
    whole = SimulatedServer(curve, 1000, 5)
    offers = [request(load) for load in (500, 1500, 900, 900)]
    trials = [whole.run(each, never) for each in offers]
    resumed = SimulatedServer(curve, 1000, 5, before=trials[:2])
    assert [resumed.run(each, never) for each in offers[2:]] == trials[2:]
    assert resumed.spent_s == whole.spent_s


@given(
    st.sampled_from(ALL),
    st.integers(1, 30),
    st.floats(0.01, 3.0),
    st.floats(3.0, 250.0),
    st.sampled_from([1.0, 7.0, 10.0, 60.0]),
)
def test_a_trial_that_ends_early_is_the_beginning_of_the_whole_one(curve, after, rho, runlength_s, window_s):
    asked = request(rho * 1000, runlength_s)
    whole = SimulatedServer(curve, 1000, 5, window_s=window_s).run(asked, never)
    seen: list[int] = []

    def enough(windows):
        assert tuple(windows) == whole.windows[: len(windows)]
        seen.append(len(windows))
        return len(windows) >= after

    short = SimulatedServer(curve, 1000, 5, window_s=window_s).run(asked, enough)
    assert short.windows == whole.windows[:after]
    assert seen == list(range(1, min(after, len(whole.windows) - 1) + 1))
    assert (short.ended, whole.ended) == ("early" if after < len(whole.windows) else "whole", "whole")
    assert short.cost_s == pytest.approx(short.ran_s + 170)
    assert whole.ran_s == pytest.approx(runlength_s)
    assert all(
        w.completed > 0 and w.mean_s > 0 and w.completed + w.failed <= w.offered for w in whole.windows
    )


@pytest.mark.parametrize("curve", CURVES.values(), ids=named)
@pytest.mark.parametrize("rho", [0.3, 1.0])
def test_trials_are_right_on_average(curve, rho):
    server = SimulatedServer(curve, 1000, 11)
    means = np.array([mean_s(server.run(request(1000 * rho), never)) for _ in range(400)])
    assert means.mean() == pytest.approx(
        server.response_s(1000 * rho), abs=4 * means.std() / np.sqrt(means.size)
    )


@pytest.mark.parametrize("name", ["stalling", "stalling-rarely", "bimodal"])
@pytest.mark.parametrize("window_s", [2.0, 10.0, 45.0])
def test_stalls_and_modes_leave_the_mean_where_it_was(name, window_s):
    server = SimulatedServer(TROUBLED[name], 1000, 11, window_s=window_s)
    means = np.array([mean_s(server.run(request(1000.0, 90), never)) for _ in range(800)])
    assert means.mean() == pytest.approx(0.040, abs=4 * means.std() / np.sqrt(means.size))


def test_the_peak_is_where_the_limit_is_reached_whatever_limit_and_unit():
    server = SimulatedServer(MM1, 77.0, 1, limit_s=0.5, noise=QUIET)
    assert server.response_s(77.0) == pytest.approx(0.5)
    assert mean_s(server.run(request(77.0), never)) == pytest.approx(0.5)


def test_all_times_of_a_quicker_server_are_shorter():
    slow, quick = (
        SimulatedServer(MM1, 500.0, 3, limit_s=limit_s, window_s=250 * limit_s) for limit_s in (0.040, 0.004)
    )
    readings = [
        [window.mean_s / limit_s for window in server.run(request(450.0, 4500 * limit_s), never).windows]
        for server, limit_s in ((slow, 0.040), (quick, 0.004))
    ]
    assert readings[0] == pytest.approx(readings[1])


def test_bench_time_is_what_trials_cost():
    server = SimulatedServer(MM1, 1000, 1, fixed_cost_s=30)
    server.run(request(runlength_s=60), never)
    server.run(request(runlength_s=60), lambda windows: len(windows) == 2)
    server.drain(5.0)
    assert server.spent_s == 60 + 30 + 20 + 30 + 5


def test_a_run_length_that_is_no_multiple_of_windows_ends_in_a_short_one():
    trial = SimulatedServer(MM1, 1000, 1).run(request(load=100, runlength_s=25), never)
    assert [w.duration_s for w in trial.windows] == [10, 10, 5]
    assert [w.offered for w in trial.windows] == [1000, 1000, 500]


@pytest.mark.parametrize("name", ["mm1", "mmc", "knee", "cache", "priority", "pieces", "plateaus"])
def test_well_above_saturation_completions_lag_what_is_offered(name):
    server = SimulatedServer(CURVES[name], 1000, 1)
    beyond = server.run(request(3000), never)
    whole = joined_windows(beyond.windows)
    assert beyond.limited == "server"
    assert whole.completed < 0.7 * whole.offered
    assert slo_ratio_of(GOAL, beyond) == 50
    below = server.run(request(950), never)
    assert below.limited is None
    assert joined_windows(below.windows).completed == joined_windows(below.windows).offered


def test_a_thrashing_server_completes_less_the_more_is_asked_of_it():
    server = SimulatedServer(TROUBLED["thrashing"], 1000, 1)
    done = [joined_windows(server.run(request(load), never).windows) for load in (1000, 1500, 3000)]
    assert done[0].completed > done[1].completed > done[2].completed
    assert [whole.failed for whole in done[:1]] == [0]
    assert done[2].failed == done[2].offered - done[2].completed
    assert done[2].mean_s < 0.040


def test_a_hysteretic_server_stays_slow_after_an_overload_until_it_is_drained_or_time_passes():
    server = SimulatedServer(TROUBLED["hysteretic"], 1000, 1, noise=QUIET)
    fresh = mean_s(server.run(request(900), never))
    assert mean_s(server.run(request(900), never)) == fresh
    server.run(request(1300), never)
    slow = [mean_s(server.run(request(900), never)) for _ in range(20)]
    assert slow[0] > 1.8 * fresh
    assert slow == sorted(slow, reverse=True)
    assert slow[-1] == pytest.approx(fresh, rel=0.02)
    server.run(request(1300), never)
    server.drain()
    assert mean_s(server.run(request(900), never)) == fresh


def test_a_bimodal_server_is_in_one_of_two_modes_for_a_whole_trial():
    server = SimulatedServer(TROUBLED["bimodal"], 1000, 1, noise=QUIET)
    means = [mean_s(server.run(request(1000), never)) for _ in range(2000)]
    fast, slow = sorted({round(mean, 9) for mean in means})
    assert slow / fast == pytest.approx(1.6)
    assert np.mean(np.array(means) > 0.040) == pytest.approx(0.3, abs=0.04)


def test_a_drifting_server_loses_its_peak_with_bench_time():
    server = SimulatedServer(TROUBLED["drifting"], 1000, 1, noise=QUIET)
    server.run(request(500, 3600 - 170), never)
    assert server.peak_now == pytest.approx(800)
    assert server.peak == 1000
    assert mean_s(server.run(request(800), never)) == pytest.approx(0.040)


def test_rare_windows_carry_the_mean_of_a_stalling_server():
    server = SimulatedServer(TROUBLED["stalling"], 1000, 1)
    windows = [w.mean_s for _ in range(300) for w in server.run(request(1000), never).windows]
    assert np.median(windows) < 0.5 * np.mean(windows)
    assert np.mean(np.array(windows) > 5 * np.median(windows)) < 0.06


def test_plain_curves_have_no_manners():
    assert MM1.behaviour == ServerBehaviour()
    named_again = Curve("again", MM1.response_s, ServerBehaviour())
    trials = [SimulatedServer(curve, 1000, 1).run(request(), never) for curve in (MM1, named_again)]
    assert trials[0] == trials[1]


@pytest.mark.parametrize("bad", [request(0), request(-1), request(runlength_s=0), request(float("nan"))])
def test_an_offer_of_nothing_is_refused(bad):
    with pytest.raises(ValueError, match="above 0"):
        SimulatedServer(MM1, 1000, 1).run(bad, never)


def test_a_server_without_a_peak_is_refused():
    with pytest.raises(ValueError, match="above 0"):
        SimulatedServer(MM1, 0, 1)


def test_simulated_trials_are_plain_data():
    trial = SimulatedServer(MM1, 1000, 1).run(request(), never)
    window = trial.windows[0]
    assert {f.name: type(getattr(window, f.name)) for f in dataclasses.fields(window)} == {
        "duration_s": float,
        "offered": int,
        "under_way": type(None),
        "waited_s": type(None),
        "completed": int,
        "failed": int,
        "mean_s": float,
        "latency": type(None),
    }
