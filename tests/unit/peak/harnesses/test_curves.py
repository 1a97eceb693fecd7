"""Simulated servers have the shapes that they are said to have."""

import math
import pickle

import numpy as np
import pytest

from etude.peak.harnesses.curves import CURVES, FAMILIES, TROUBLED, Curve, saturation

ALL = [*CURVES.values(), *TROUBLED.values()]
LOADS = np.concatenate([np.linspace(0, 2, 801), np.geomspace(2, 1e6, 50)])


def named(curve: Curve) -> str:
    return curve.name


@pytest.mark.parametrize("curve", ALL, ids=named)
def test_every_server_answers_within_40_ms_at_its_peak(curve):
    assert curve.response_s(1.0) == pytest.approx(0.040, rel=1e-9)


@pytest.mark.parametrize("curve", CURVES.values(), ids=named)
def test_curves_rise_with_the_load_up_to_two_seconds(curve):
    responses = np.array([curve.response_s(rho) for rho in LOADS])
    assert np.all(np.diff(responses) >= 0)
    assert responses[0] > 0
    assert responses[-1] <= 2.0


@pytest.mark.parametrize("curve", ALL, ids=named)
def test_the_peak_is_the_highest_load_that_keeps_the_limit(curve):
    assert curve.response_s(0.99) < 0.040 < curve.response_s(1.01)


@pytest.mark.parametrize(
    ("name", "rho", "ms"),
    [
        ("mm1", 0.0, 4.24),
        ("mm1", 0.5, 1 / ((1 / 4.24 + 1 / 40) / 2)),
        ("mm1", 1.2, 2000.0),
        ("mmc", 0.0, 2.5),
        ("mmc", 1.2, 2000.0),
        ("knee", 0.5, 3.75),
        ("ramp", 0.25, 6 + 34 / 8),
        ("tail", 0.5, 1 / ((1 / 4.24 + 1 / 40) / 2)),
    ],
)
def test_the_reference_models_are_what_their_formulas_say(name, rho, ms):
    assert 1e3 * CURVES[name].response_s(rho) == pytest.approx(ms, rel=1e-6)


def test_erlangs_waiting_time_is_that_of_the_steady_state_equations():
    """M/M/4 at a utilisation found from the curve: the birth-death chain, summed."""
    curve = CURVES["mmc"]
    offered = 4 * 0.9 / saturation(curve)  # ρ = 0.9
    weights = [1.0]
    for k in range(1, 4000):
        weights.append(weights[-1] * offered / min(k, 4))
    in_system = np.arange(4000) @ np.array(weights) / np.sum(weights)
    assert 1e3 * curve.response_s(0.9) == pytest.approx(2.5 * in_system / offered, rel=2e-3)


def test_a_server_is_saturated_where_its_answers_take_two_seconds():
    assert saturation(CURVES["mm1"]) == pytest.approx((1 / 4.24 - 1 / 2000) / (1 / 4.24 - 1 / 40), rel=1e-5)
    assert saturation(CURVES["logistic"]) == math.inf
    assert saturation(TROUBLED["drifting"]) == saturation(CURVES["mm1"])


def test_at_least_four_curves_are_of_no_family_that_is_fitted():
    assert len(CURVES.keys() - set(FAMILIES)) >= 4


def worst_of_fit(curve: Curve) -> float:
    """How far 1/(a - bρ), the paper's model fitted as a line through 1 = aR - bρR, is off below the peak, relative."""
    rho = np.linspace(0.05, 1.0, 60)
    responses = np.array([curve.response_s(x) for x in rho])
    terms = np.column_stack([responses, rho * responses])
    fitted = np.linalg.lstsq(terms, np.ones_like(rho), rcond=None)[0]
    predicted = 1 / np.maximum(fitted[0] + fitted[1] * rho, 1e-3)
    return float(np.max(np.abs(predicted / responses - 1)))


@pytest.mark.parametrize("name", sorted(CURVES.keys() - set(FAMILIES)))
def test_curves_of_our_own_do_not_follow_the_papers_model(name):
    assert worst_of_fit(CURVES["mm1"]) < 1e-6
    assert worst_of_fit(CURVES[name]) > 0.10


@pytest.mark.parametrize("name", ["non-monotone", "non-monotone-low", "hump"])
def test_non_monotone_servers_fall_somewhere_below_their_peak(name):
    responses = [TROUBLED[name].response_s(rho) for rho in np.linspace(0.01, 1, 100)]
    assert min(np.diff(responses)) < 0


def test_two_of_them_break_the_limit_below_their_peak():
    assert TROUBLED["non-monotone-low"].response_s(0.02) > 0.060
    assert TROUBLED["hump"].response_s(0.55) > 0.050
    assert TROUBLED["hump"].response_s(0.8) < 0.020


def test_a_thrashing_servers_mean_looks_fine_again_far_beyond_its_peak():
    assert TROUBLED["thrashing"].response_s(1.08) > 0.120
    assert TROUBLED["thrashing"].response_s(2.0) < 0.040


@pytest.mark.parametrize("curve", ALL, ids=named)
def test_curves_travel_between_processes(curve):
    assert pickle.loads(pickle.dumps(curve)) == curve
