"""What curves over buffers look like, as data."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from etude.iolab.points import Points, Swept
from etude.iolab.shapes import growth_of, partings_of, shape_of

SIZES = [2.0**n for n in range(6, 22)]


def points(name: str, rate: Any) -> Points:
    return Points(name, np.array(SIZES), tuple(rate(n) * np.array([0.99, 1.0, 1.0, 1.01]) for n in SIZES))


def test_a_shape_has_peak_plateau_half_and_steps() -> None:
    found = shape_of(
        points("touched", lambda n: 1.0 / (100e-9 / n + 1 / 8e9) * (1.0 if n <= 1 << 20 else 0.25))
    )
    assert found.peak_at == 1 << 20
    assert found.high == 1 << 20
    assert found.low == 1 << 14, "100 ns are less than 5 % of 2 us"
    assert found.half_at == pytest.approx(800, rel=0.05)
    (step,) = found.steps
    assert (step.first, step.second) == (1 << 20, 1 << 21)
    assert step.ratio == pytest.approx(0.25, rel=0.01)
    assert json.loads(json.dumps(asdict(found)))["steps"][0]["first"] == 1 << 20


def test_growth_ends_where_no_larger_size_is_five_percent_faster() -> None:
    found = growth_of(points("touched", lambda n: 1.0 / (100e-9 / n + 1 / 8e9)))
    assert (found.at, found.low) == (1 << 14, 1 << 14)
    assert found.high in (1 << 14, 1 << 15), (
        "16 KiB reach 95.3 % of the rate: medians drawn anew are at the bound"
    )
    assert (found.first, found.last) == (SIZES[0], SIZES[-1])
    falling = growth_of(points("untouched", lambda n: 1e9 / n))
    assert falling.at == SIZES[0]
    growing = growth_of(points("untouched", lambda n: 1e9 * n))
    assert (growing.at, growing.high) == (SIZES[-1], SIZES[-1])


def test_growth_that_noise_hides_has_a_wide_interval_and_that_of_few_trials_none() -> None:
    noise = np.random.default_rng(2)
    samples = tuple(1e9 * noise.lognormal(0.0, 0.2, 6) for _ in SIZES)
    found = growth_of(Points("untouched", np.array(SIZES), samples))
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.high
    assert found.low <= found.at <= found.high
    few = growth_of(Points("untouched", np.array(SIZES), tuple(values[:3] for values in samples)))
    assert (few.low, few.high) == (None, None)


def test_a_parting_has_its_interval() -> None:
    curves = (points("untouched", lambda n: 1e9 / (1.0 + n / 2**20)), points("touched", lambda n: 1e9))
    (found,) = partings_of(Swept("buffer", "bandwidth", curves, None, {}))
    assert (found.curve, found.size, found.ratio) == ("touched", SIZES[-1], pytest.approx(3.0))
    assert None not in (found.low, found.at, found.high)
    assert found.low <= found.at <= found.high  # type: ignore[operator]
    assert found.at == pytest.approx(0.05 * 2**20, rel=0.25)
    assert partings_of(Swept("buffer", "bandwidth", curves[1:], None, {})) == ()
