"""What predictions are believed, and when cells are left unmeasured."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.surface.factors import Configuration, Factor, Space
from etude.surface.map_store import MapStore, define_map, open_map, surface_result_of
from etude.surface.next_configuration import (
    LEAST_WIDENING,
    MapComplete,
    Rules,
    Visit,
    Wait,
    contradiction,
    decide,
    fit_surrogate,
    predict_configurations,
    predicted_samples,
    well_predicted,
    widening_of,
)
from etude.surface.response import ConfigurationRequest, Tell
from etude.surface.run_map import Display, MapBudget, forecast_of, run_map
from etude.surface.samples import Sample, known_samples

SPACE = Space((Factor("disks", "linear", (1, 2, 3, 4)), Factor("nfsds", "log", (1, 2, 4, 8, 16, 32))))
SD = 0.01


def peak(cell: Configuration) -> float:
    disks, nfsds = (float(factor.levels[at]) for factor, at in zip(SPACE.factors, cell, strict=True))
    return float(((170 * disks) ** -4 + (60 * nfsds) ** -4) ** -0.25)


def sample(cell: Configuration, value: float, sd: float = SD) -> Sample:
    away = math.exp(1.959964 * sd)
    return Sample(cell, "measured", value, value / away, value * away, 0.95, cost_s=60.0, trials=3)


def measured(count: int = 12, off: float = 0.0, spread: float | None = 0.03) -> tuple[Sample, ...]:
    """`off`: of each from what was predicted, in standard deviations of the prediction."""
    order = np.random.default_rng(1).permutation(SPACE.size)[:count]
    cells = [list(SPACE)[at] for at in order]
    found = [sample(cell, peak(cell)) for cell in cells]
    if spread is None:
        return tuple(found)
    return tuple(
        replace(each, expected=(each.value or 0) * math.exp(off * spread), spread=spread) for each in found
    )


def test_what_was_expected_teaches_nothing_twice() -> None:
    one = sample((0, 0), 105.0, 0.03)
    told = replace(one, expected=100.0, spread=0.05, counted=True)
    assert one.alone == (math.log(105.0), one.variance)
    assert replace(told, counted=False).alone == one.alone
    log, variance = told.alone
    assert math.log(105.0) < log < math.log(108.0)
    assert one.variance < variance < 2 * one.variance
    assert known_samples([told]).log[0] == log


def test_a_poor_prediction_counts_for_little() -> None:
    one = replace(sample((0, 0), 200.0, 0.03), expected=100.0, spread=0.05, counted=True)
    log, variance = one.alone
    assert log == pytest.approx(math.log(200.0), abs=0.01)
    assert variance == pytest.approx(one.variance, rel=0.01)


@given(st.floats(0.5, 2.0), st.floats(0.02, 0.5), st.floats(0.005, 0.3))
def test_a_measurement_by_itself_is_known_less_well_and_lies_beyond(
    ratio: float, spread: float, sd: float
) -> None:
    one = replace(sample((0, 0), 100.0 * ratio, sd), expected=100.0, spread=spread, counted=True)
    log, variance = one.alone
    assert variance >= one.variance * (1 - 1e-9) or one.variance > 0.1**2
    assert abs(log - math.log(100)) >= abs(math.log(ratio)) * (1 - 1e-9)
    assert (log - math.log(100)) * math.log(ratio) >= 0


def test_predictions_that_came_true_are_believed_as_they_are() -> None:
    assert widening_of(SPACE, measured(off=0.5)) == LEAST_WIDENING
    assert widening_of(SPACE, ()) == LEAST_WIDENING


def test_predictions_that_were_off_widen_those_to_come() -> None:
    wide = widening_of(SPACE, measured(16, off=3.0))
    assert 2 < wide < 3
    samples = measured(16, off=3.0)
    fit = fit_surrogate(SPACE, samples)
    left = [cell for cell in SPACE if cell not in known_samples(samples).cells]
    told = predict_configurations(SPACE, samples, left)
    assert fit is not None
    assert told is not None
    np.testing.assert_allclose(told.sd, fit.predict(left).sd * wide)
    for each, sd in zip(predicted_samples(SPACE, samples, 0.95), told.sd, strict=True):
        assert math.log(each.high / each.low) == pytest.approx(2 * 1.959964 * sd)


def test_few_predictions_do_not_decide() -> None:
    few, many = (widening_of(SPACE, measured(count, off=2.0)) for count in (5, 20))
    assert few < 1.4 < many


def test_a_single_prediction_is_never_counted_as_farther_off_than_8() -> None:
    samples = list(measured(5))
    samples[4] = replace(samples[4], expected=(samples[4].value or 0) * 100)
    assert widening_of(SPACE, tuple(samples)) == pytest.approx(math.sqrt((4 + 64) / 5))


def test_the_first_samples_prove_nothing() -> None:
    assert widening_of(SPACE, measured(4, off=5.0)) == LEAST_WIDENING


def test_a_surrogate_is_asked_what_it_would_have_said_where_that_was_not_kept() -> None:
    samples = measured(12, spread=None)
    fit = fit_surrogate(SPACE, samples[:11])
    assert fit is not None
    told = fit.predict([samples[11].cell])
    kept = replace(samples[11], expected=math.exp(told.log[0]), spread=float(told.sd[0]))
    assert widening_of(SPACE, (*samples[:11], kept)) == pytest.approx(widening_of(SPACE, samples))


def mapped(rules: Rules, noise: float) -> list[Sample]:
    samples: list[Sample] = []
    rng = np.random.default_rng(3)
    while isinstance(visit := decide(SPACE, rules, samples), Visit):
        value = peak(visit.cell) * math.exp(noise * rng.standard_normal())
        samples.append(forecast_of(sample(visit.cell, value), visit))
    assert isinstance(visit, MapComplete)
    return samples


def test_cells_are_left_out_where_predictions_come_true_and_not_where_they_do_not() -> None:
    assert len(mapped(Rules(skip=True), 0.005)) < SPACE.size
    assert len({each.cell for each in mapped(Rules(skip=True), 0.3)}) == SPACE.size


def test_what_is_sure_is_left_out_though_other_cells_are_not_and_one_agreeing_trial_does_for_those() -> None:
    samples: list[Sample] = []
    rng, trusted = np.random.default_rng(3), 0
    rules = Rules(skip=True)
    while isinstance(visit := decide(SPACE, rules, samples), Visit):
        told = predict_configurations(SPACE, tuple(samples), [visit.cell])
        trusted += visit.proven
        if visit.proven:
            assert told is not None
            assert not any(well_predicted(told, rules)), visit
        value = peak(visit.cell) * math.exp(0.03 * rng.standard_normal())
        samples.append(forecast_of(sample(visit.cell, value, 0.03), visit))
    assert trusted > 0
    assert not any(
        visit.proven for visit in [decide(SPACE, Rules(), samples[:10])] if isinstance(visit, Visit)
    )


def test_predictions_that_were_far_off_are_not_trusted_by_a_small_spread() -> None:
    good = measured(18, off=0.2)
    decision = decide(SPACE, Rules(skip=True), good)
    assert isinstance(decision, MapComplete)
    bad = [replace(each, expected=(each.value or 0) * 1.08, spread=0.01) for each in good]
    assert isinstance(decide(SPACE, Rules(skip=True), bad), Visit)


class Cells:
    """A response that takes no time."""

    name, unit, better, text = "peak rate", "1/s", "higher", "made"

    def learn(self, place: object) -> None:
        """Nothing."""

    def measure(self, asked: ConfigurationRequest, tell: Tell) -> Sample:
        """With an error that no surrogate knows."""
        rough = np.random.default_rng(sum(asked.visit.cell) * 7 + asked.visit.cell[0]).standard_normal()
        return sample(asked.visit.cell, peak(asked.visit.cell) * math.exp(0.05 * rough))


def test_what_was_predicted_is_kept_and_shown_intervals_are_as_wide(tmp_path: object) -> None:
    what = define_map("made", SPACE, Rules(count=14), Cells(), "")
    with open_map(f"{tmp_path}/map", what) as kept:
        run_map(kept, Cells(), MapBudget({}), Display())
        samples = kept.samples()
    again = MapStore(f"{tmp_path}/map")
    assert again.samples() == samples
    assert sum(each.expected is not None for each in samples) >= 8
    shown = surface_result_of(again)
    told = predict_configurations(SPACE, tuple(samples), shown.unmeasured)
    assert told is not None
    np.testing.assert_array_equal(shown.predicted.sd, told.sd)


def test_a_cell_that_its_neighbours_contradict_is_measured_again_and_then_believed() -> None:
    samples = list(measured(14, spread=None))
    wrong = samples[9].cell
    samples[9] = sample(wrong, peak(wrong) / 20)
    visit = decide(SPACE, Rules(count=14), samples)
    assert isinstance(visit, Visit)
    assert visit.cell == wrong
    assert visit.expected == pytest.approx(peak(wrong), rel=0.5)
    assert isinstance(decide(SPACE, Rules(count=14), samples, [wrong]), Wait)
    samples.append(forecast_of(sample(wrong, peak(wrong)), visit))
    assert isinstance(decide(SPACE, Rules(count=14), samples), MapComplete)


@pytest.mark.parametrize(
    ("count", "size", "refused"), [(400, 50_000, False), (401, 50_000, True), (9000, 9000, True)]
)
def test_a_design_that_takes_minutes_to_plan_is_refused_with_the_largest(
    count: int, size: int, refused: bool
) -> None:
    found = contradiction(Rules("d-optimal", count), size)
    assert (found is not None) == refused
    if found is not None:
        assert found[0] == "count"
        assert f"{size:,} configurations has {20_000_000 // size:,} at most" in found[1]
