"""Surrogates know the surfaces that they are made for, and how little they know of others."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etude.surface.factors import Factor, Space
from etude.surface.plans import CovarianceFit, next_sample
from etude.surface.samples import KnownResponses
from etude.surface.simulated import REFERENCE, SimulatedSurface
from etude.surface.surrogates import Predicted
from etude.surface.surrogates.process import Data, Gaussian, Prior, _regret, fitted, widened
from etude.surface.surrogates.quadratic import Quadratic, terms
from etude.surface.surrogates.selection import SelectedSurrogate, cross_validate
from etude.surface.surrogates.softmin import Limits, SoftMinimum
from support.profiles import examples

GRID = Space((Factor("a", "log", (1, 2, 4, 8, 16)), Factor("b", "linear", (1, 2, 3, 4, 5))))
MIXED = Space(
    (
        Factor("a", "log", (1, 2, 4, 8)),
        Factor("kind", "categorical", ("x", "y", "z")),
        Factor("grade", "ordered", ("low", "mid", "high")),
    )
)
ALL = [Quadratic(), Quadratic(logs=True), Gaussian(), SoftMinimum(), SelectedSurrogate()]


def named(surrogate):
    return surrogate.name


def known_of(cells, logs, sd=1e-3):
    return KnownResponses(tuple(cells), np.asarray(logs, dtype=float), np.full(len(cells), sd**2))


def drawn(space, of, count, seed=1, sd=1e-3):
    """Samples of a function of cells, at random places."""
    cells = list(space)
    order = np.random.default_rng(seed).permutation(len(cells))[:count]
    return known_of([cells[at] for at in order], [of(cells[at]) for at in order], sd)


def limits_log(cell):
    """The soft minimum of 100·a^0.9, 150·b and 500, of sharpness 4."""
    a, b = GRID.factors[0].levels[cell[0]], GRID.factors[1].levels[cell[1]]
    return -math.log(sum(x**-4 for x in (100 * a**0.9, 150 * b, 500.0))) / 4


def adaptive(surface, surrogate, count, seed):
    """Truth by cell, and the fit after so many samples, measured to 1 %."""
    cells = list(surface.space)
    truth = np.log([surface.peak(cell) for cell in cells])
    measured = dict(
        zip(cells, truth + 0.01 * np.random.default_rng(seed).standard_normal(len(cells)), strict=True)
    )
    known, fit = known_of([], []), None
    for _ in range(count):
        chosen = [*known.cells, next_sample(surface.space, fit, known)]
        known = known_of(chosen, [measured[cell] for cell in chosen], 0.01)
        fit = surrogate.fit(surface.space, known)
    return truth, known, fit


def mape(truth, found):
    return 100 * float(np.mean(np.abs(np.expm1(found - truth))))


@pytest.mark.parametrize("surrogate", ALL, ids=named)
def test_a_surrogate_has_no_fit_to_too_few_samples(surrogate):
    assert surrogate.fit(GRID, known_of([], [])) is None
    assert surrogate.fit(GRID, known_of([(0, 0)], [1.0])) is None


@pytest.mark.parametrize("surrogate", ALL, ids=named)
def test_a_fit_says_something_of_every_cell_of_mixed_factors(surrogate):
    known = drawn(MIXED, lambda cell: 5 + 0.3 * cell[0] - 0.4 * (cell[1] == 2), 20)
    found = surrogate.fit(MIXED, known).predict(list(MIXED))
    assert found.log.shape == found.sd.shape == (36,)
    assert np.all(np.isfinite(found.log))
    assert np.all(found.sd > 0)


@pytest.mark.parametrize("surrogate", ALL, ids=named)
def test_a_fit_follows_from_the_samples_alone(surrogate):
    known = drawn(GRID, limits_log, 12)
    one, other = (surrogate.fit(GRID, known).predict(list(GRID)) for _ in range(2))
    assert np.array_equal(one.log, other.log)
    assert np.array_equal(one.sd, other.sd)


def test_the_terms_are_those_of_a_full_quadratic():
    assert terms(GRID, list(GRID)).shape == (25, 6)
    # 1, a, two kinds, grade; a², grade²; a × kinds, a × grade, kinds × grade
    assert terms(MIXED, list(MIXED)).shape[1] == 1 + 1 + 2 + 1 + 2 + 2 + 1 + 2
    assert terms(MIXED, list(MIXED), products=False).shape[1] == 1 + 1 + 2 + 1 + 2 + 1
    assert np.linalg.matrix_rank(terms(MIXED, list(MIXED))) == 12


@pytest.mark.parametrize("logs", [False, True])
def test_a_quadratic_is_found_exactly(logs):
    def quadratic(cell):
        a, b = GRID.coded([cell])[0]
        value = 5 + 0.8 * a + 0.5 * b + 0.3 * a * b - 0.4 * a**2 + 0.1 * b**2
        return value if logs else math.log(value)

    fit = Quadratic(logs).fit(GRID, drawn(GRID, quadratic, 12))
    truth = [quadratic(cell) for cell in GRID]
    assert fit.predict(list(GRID)).log == pytest.approx(truth, abs=1e-9)
    assert mape(fit.known.log, fit.left_out.log) < 1e-6


def test_quadratic_residuals_without_a_sample_are_those_of_a_fit_without_it():
    known = drawn(GRID, lambda cell: limits_log(cell) + 0.1 * math.sin(7 * cell[0] + cell[1]), 14)
    left = Quadratic(logs=True).fit(GRID, known).left_out
    for at, cell in enumerate(known.cells):
        again = Quadratic(logs=True).fit(GRID, known.without(at)).predict([cell])
        assert left.log[at] == pytest.approx(again.log[0], abs=1e-9)


def test_a_quadratic_with_as_many_terms_as_samples_claims_nothing():
    known = known_of([(0, 0), (4, 0), (0, 4), (4, 4), (2, 2), (2, 3)], [1.0, 2.0, 1.5, 2.2, 2.1, 1.2])
    fit = Quadratic().fit(GRID, known)
    assert np.all(np.isinf(fit.predict(list(GRID)).sd))
    assert cross_validate("quadratic", fit, known).error == math.inf


def test_a_raw_quadratic_never_says_less_than_nothing():
    known = drawn(GRID, lambda cell: math.log(1 + 1000 * (cell == (2, 2))), 25)
    assert np.all(np.isfinite(Quadratic().fit(GRID, known).predict(list(GRID)).log))


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=examples(20))
def test_the_gradient_of_a_process_is_that_of_its_density(seed):
    rng = np.random.default_rng(seed)
    known = drawn(MIXED, lambda cell: float(rng.normal()), 9, seed % 1000, sd=0.05)
    data = Data(MIXED, known, known.log, np.ones((9, 1)))
    medians, spreads = Prior().medians(3), Prior().spreads(3)
    at = medians + 0.5 * rng.standard_normal(medians.size)
    _, gradient = _regret(at, data, medians, spreads)
    for place in range(at.size):
        step = 1e-5 * (np.arange(at.size) == place)
        slope = (
            _regret(at + step, data, medians, spreads)[0] - _regret(at - step, data, medians, spreads)[0]
        ) / 2e-5
        assert gradient[place] == pytest.approx(slope, rel=1e-4, abs=1e-4)


def test_leaving_out_at_once_is_leaving_out_one_by_one():
    known = drawn(GRID, limits_log, 9, sd=0.02)
    data = Data(GRID, known, known.log - 5, np.ones((9, 1)))
    process = fitted(data, Prior())
    for at, cell in enumerate(known.cells):
        rest = known.without(at)
        without = type(process)(Data(GRID, rest, rest.log - 5, np.ones((8, 1))), process.logs)
        found = without.predict([cell], np.full(1, 5.0), np.ones((1, 1)))
        assert process.left_out.log[at] == pytest.approx(found.log[0], abs=1e-8)
        assert process.left_out.sd[at] ** 2 == pytest.approx(found.sd[0] ** 2 + 0.02**2, rel=1e-6)


def test_a_process_is_sure_of_what_was_measured_and_not_of_a_neighbour():
    known = drawn(GRID, limits_log, 10, sd=0.005)
    fit = Gaussian().fit(GRID, known)
    there = fit.predict(known.cells)
    assert there.log == pytest.approx(known.log, abs=0.02)
    assert there.sd.max() < 0.012
    fresh = [cell for cell in GRID if cell not in known.cells]
    assert fit.predict(fresh).sd.min() > 0.02


def test_what_is_noisy_is_followed_less():
    logs = [limits_log(cell) for cell in GRID]
    logs[12] += 0.5
    trusted = known_of(list(GRID), logs, 0.01)
    doubted = KnownResponses(trusted.cells, trusted.log, np.where(np.arange(25) == 12, 0.5**2, 0.01**2))
    off = [
        abs(Gaussian().fit(GRID, each).predict([(2, 2)]).log[0] - limits_log((2, 2)))
        for each in (trusted, doubted)
    ]
    assert off[0] > 0.4
    assert off[1] < 0.1


def test_errors_of_left_out_samples_widen_what_is_said():
    known = known_of([(0, 0)] * 10, np.zeros(10))
    calm, wild = (Predicted(np.full(10, off), np.full(10, 0.01)) for off in (0.005, 0.05))
    assert 1.0 < widened(known, calm) < 1.15
    assert widened(known, wild) > 3.5


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=examples(20))
def test_the_slopes_of_limits_are_those_of_their_values(seed):
    rng = np.random.default_rng(seed)
    limits = Limits(MIXED)
    at = rng.normal(1.0, 0.7, limits.size)
    _, slopes = limits.value(at, list(MIXED))
    for place in range(limits.size):
        step = 1e-6 * (np.arange(limits.size) == place)
        found = (limits.value(at + step, list(MIXED))[0] - limits.value(at - step, list(MIXED))[0]) / 2e-6
        assert slopes[:, place] == pytest.approx(found, abs=1e-6)


def test_a_soft_minimum_is_found_from_eight_samples():
    known = drawn(GRID, limits_log, 8, seed=3)
    found = SoftMinimum().fit(GRID, known).predict(list(GRID))
    assert mape(np.array([limits_log(cell) for cell in GRID]), found.log) < 4


def test_a_limit_may_fall_with_its_factor():
    def falling(cell):
        return -math.log((300 * 0.6 ** cell[0]) ** -4 + (120.0 * (1 + cell[1])) ** -4) / 4

    truth = np.array([falling(cell) for cell in GRID])
    for seed in range(5):
        found = SoftMinimum().fit(GRID, drawn(GRID, falling, 6, seed)).predict(list(GRID))
        assert mape(truth, found.log) < 12


@pytest.mark.parametrize(("name", "count", "limit"), [("DB_TP", 6, 6.0), ("Web", 6, 5.0), ("Mail", 6, 4.0)])
def test_six_samples_tell_a_monotone_surface(name, count, limit):
    errors = []
    for seed in range(2):
        truth, _, fit = adaptive(SimulatedSurface(REFERENCE[name], seed), SelectedSurrogate(), count, seed)
        errors.append(mape(truth, fit.predict(list(REFERENCE[name].space)).log))
    assert np.mean(errors) < limit


@pytest.mark.more
def test_what_is_said_to_be_uncertain_covers_the_truth():
    inside = []
    for name, count in (("DB_TP", 8), ("DB_TP-thrash", 10), ("Web", 8)):
        law = REFERENCE[name]
        for seed in range(2):
            truth, known, fit = adaptive(SimulatedSurface(law, seed), SelectedSurrogate(), count, seed)
            found = fit.predict(list(law.space))
            fresh = np.array([cell not in known.cells for cell in law.space])
            inside += list((np.abs(found.log - truth) < 1.96 * found.sd)[fresh])
    assert np.mean(inside) >= 0.93


def test_the_surrogate_with_the_least_error_on_left_out_samples_is_chosen():
    limited = SelectedSurrogate().fit(GRID, drawn(GRID, limits_log, 12, seed=5))
    assert limited.name == min(limited.judged, key=lambda each: each.error).name == "softmin"

    def wavy(cell):
        return 5 + 0.8 * math.sin(1.7 * cell[0]) * (1 + 0.3 * cell[1])

    assert SelectedSurrogate().fit(GRID, drawn(GRID, wavy, 18)).name == "gp"
    assert [each.name for each in limited.judged] == ["gp", "softmin", "log-quadratic", "quadratic"]
    assert all(each.spread >= 0 for each in limited.judged)


def test_the_process_stands_where_no_other_can_be_judged():
    fit = SelectedSurrogate().fit(GRID, known_of([(0, 0), (4, 4), (0, 4)], [1.0, 2.0, 1.5]))
    assert fit.name == "gp"
    assert [bool(each.why) for each in fit.judged] == [False, True, True, True]


def test_a_choice_passes_on_how_cells_hang_together():
    fit = SelectedSurrogate().fit(GRID, drawn(GRID, limits_log, 8))
    assert isinstance(fit, CovarianceFit)
    information_gains = fit.information_gains(list(GRID), list(GRID))
    first = information_gains.worth()
    information_gains.take([list(GRID)[int(first.argmax())]])
    again = information_gains.worth()
    assert again[int(first.argmax())] < 0.5 * first.max()
