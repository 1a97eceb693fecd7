"""What is believed before any trial."""

from __future__ import annotations

import math

import numpy as np
import pytest

from etude.peak.policies.belief.curves import family
from etude.peak.policies.belief.evidence import Evidence
from etude.peak.policies.belief.grid import Seed, posterior_of
from support.policy_simulator import mm1, task


def test_a_prediction_is_believed_about_as_far_as_it_says() -> None:
    for spread in (0.05, 0.2):
        belief = posterior_of(task(seed_load=400.0, seed_spread=spread), [])
        assert belief.quantile(0.5) == pytest.approx(400, rel=0.02)
        half = math.log(belief.quantile(0.84) / belief.quantile(0.16)) / 2
        assert half == pytest.approx(spread, rel=0.4)


def test_a_poor_prediction_is_allowed_for() -> None:
    far = np.array([math.log(4000.0)])
    seed = Seed(400.0, 0.05)
    assert math.exp(seed.log_prior(far)[0]) == pytest.approx(0.05 / 5.0, rel=0.01)
    assert math.exp(Seed(400.0, None).log_prior(far)[0]) > 0.3 / 5.0


def test_without_a_seed_all_rates_are_alike() -> None:
    assert not Seed(None, None).log_prior(np.linspace(3, 9, 5)).any()


def test_shapes_of_similar_configurations_are_believed_but_not_alone() -> None:
    names = family().names
    weights = Seed(None, None, (("mm1 0.15", 0.6), ("no such shape", 0.2))).shape_weights()
    assert weights.sum() == pytest.approx(1)
    assert weights[names.index("mm1 0.15")] > 0.9
    others = np.delete(weights, names.index("mm1 0.15"))
    assert others.min() > 0.01 * family().weights.min()
    for told in ((), (("no such shape", 1.0),), (("mm1 0.15", 0.0),)):
        assert (Seed(None, None, told).shape_weights() == family().weights).all()


def test_what_a_belief_says_of_shapes_can_be_a_seed() -> None:
    known = [
        Evidence(load, math.log(mm1(load / 400)), 0.001, 10, at) for at, load in enumerate((200, 380, 420))
    ]
    shapes = posterior_of(task(), known).shapes()
    assert len(shapes) < len(family().names)
    assert [weight for _, weight in shapes] == sorted((weight for _, weight in shapes), reverse=True)
    assert min(weight for _, weight in shapes) > 1e-3
