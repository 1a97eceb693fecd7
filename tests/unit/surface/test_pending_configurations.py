"""What cells under way take away: the same whether they are taken at once, in turn, or measured in earnest."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etude.surface import plans
from etude.surface.factors import Configuration, Factor, Space, distance, farthest_configuration
from etude.surface.plans import expected_cost, next_sample
from etude.surface.samples import KnownResponses, Sample
from etude.surface.surrogates import selection
from etude.surface.surrogates.process import Data, Gaussian, GpLinearMean, Process
from etude.surface.surrogates.selection import SelectedSurrogate, subsample
from support.profiles import examples

GRID = Space(
    (
        Factor("a", "linear", tuple(float(n) for n in range(7))),
        Factor("b", "log", (1.0, 2.0, 4.0, 8.0)),
        Factor("kind", "categorical", ("x", "y")),
    )
)
CELLS = list(GRID)
VARIANCE = 0.03**2


def known_of(cells: list[Configuration]) -> KnownResponses:
    logs = np.array([0.3 * cell[0] - 0.1 * cell[1] * cell[0] + 0.5 * cell[2] for cell in cells])
    return KnownResponses(tuple(cells), logs, np.full(len(cells), VARIANCE))


def fit_of(cells: list[Configuration]) -> GpLinearMean:
    fit = Gaussian().fit(GRID, known_of(cells))
    assert fit is not None
    return fit


def also(fit: GpLinearMean, cells: list[Configuration]) -> GpLinearMean:
    """The same process, with these cells measured as well."""
    data, known = fit.process.data, known_of([*fit.process.data.known.cells, *cells])
    again = Data(GRID, known, np.append(data.rest, np.zeros(len(cells))), fit.straight(known.cells)[1])
    return GpLinearMean(fit.name, Process(again, fit.process.logs), fit.straight, fit.without)


some = st.permutations(range(len(CELLS))).map(lambda order: [CELLS[at] for at in order])


@settings(max_examples=examples(15))
@given(some, st.integers(1, 12), st.integers(0, 12))
def test_cells_taken_in_turn_at_once_or_measured_leave_the_same_variances(
    order: list[Configuration], count: int, before: int
) -> None:
    fit, pending, left = fit_of(order[:10]), order[10 : 10 + count], order[10:]
    at_once, in_turn = fit.information_gains(left, left), fit.information_gains(left, left)
    at_once.take(pending)
    in_turn.take(pending[:before])
    for cell in pending:
        in_turn.take([cell, *pending[:before]])
    np.testing.assert_allclose(at_once.worth(), in_turn.worth(), rtol=1e-6, atol=1e-9)
    rest = order[10 + count :]
    measured = also(fit, pending).alone(rest).sd ** 2
    np.testing.assert_allclose(at_once.variance[count:], measured, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(
        fit.sd_after(rest, pending) / fit.sd_after(rest, []), np.sqrt(measured) / fit.alone(rest).sd
    )


def test_lessons_go_on_only_to_what_they_can_take() -> None:
    information_gains = fit_of(CELLS[:10]).information_gains(CELLS[10:30], CELLS[10:])
    assert information_gains.follows([])
    information_gains.take([CELLS[11], CELLS[12]])
    assert information_gains.follows([CELLS[12], CELLS[13], CELLS[11]])
    assert not information_gains.follows([CELLS[11], CELLS[13]]), "one that was taken is under way no more"
    assert not information_gains.follows([CELLS[11], CELLS[12], CELLS[40]]), "it does not know that one"


@settings(max_examples=examples(10))
@given(some, st.integers(0, 2**32))
def test_a_choice_does_not_hang_on_what_was_asked_before_or_in_which_order(
    order: list[Configuration], seed: int
) -> None:
    """A controller that begins anew with cells under way chooses as the one that began them would have."""
    fit, known = fit_of(order[:8]), known_of(order[:8])
    begun: list[Configuration] = []
    while len(begun) < 6:
        begun.append(next_sample(GRID, fit, known, None, begun))
    again = next_sample(
        GRID, fit_of(order[:8]), known, None, sorted(begun[:5], key=lambda cell: hash((seed, cell)))
    )
    assert again == begun[5]


def test_of_cells_that_teach_alike_the_first_is_chosen_whatever_the_order_of_those_under_way() -> None:
    square = Space(tuple(Factor(name, "linear", tuple(float(n) for n in range(9))) for name in "abc"))
    corners = [(a, b, c) for a in (0, 8) for b in (0, 8) for c in (0, 8)]
    known = KnownResponses(tuple(corners), np.zeros(8), np.full(8, VARIANCE))
    begun = [(4, 4, 4), (0, 4, 4), (8, 4, 4), (4, 0, 4), (4, 8, 4), (4, 4, 0), (4, 4, 8)]
    chosen = set()
    for turned in range(7):
        fit = Gaussian().fit(square, known)
        chosen.add(next_sample(square, fit, known, None, begun[turned:] + begun[:turned]))
    assert len(chosen) == 1


def test_more_cells_under_way_than_candidates_are_no_hindrance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "CANDIDATES", 3)
    fit, known, begun = fit_of(CELLS[:8]), known_of(CELLS[:8]), []
    while len(begun) < len(CELLS) - 8:
        begun.append(next_sample(GRID, fit, known, None, begun))
    assert sorted(begun) == CELLS[8:]


def test_few_of_many_samples_are_the_newest_and_such_as_lie_apart() -> None:
    wide = Space((Factor("n", "linear", tuple(float(n) for n in range(1000))),))
    cells: list[Configuration] = [(at,) for at in range(900)]
    known = KnownResponses(tuple(cells), np.arange(900.0), np.full(900, VARIANCE))
    kept = subsample(wide, known, 60, 20)
    places = [cell[0] for cell in kept.cells]
    assert len(places) == 60
    assert places == sorted(places)
    assert places[-20:] == list(range(880, 900))
    assert max(np.diff([0, *places])) <= 900 / 40 * 2
    assert list(kept.log) == places
    assert subsample(wide, known, 900) is known


def test_a_surrogate_is_fitted_to_few_of_many_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection.subsample, "__defaults__", (20, 5))
    fit = SelectedSurrogate().fit(GRID, known_of(CELLS))
    assert fit is not None
    assert len(fit.known.cells) == len(fit.left_out.log) == 20


def test_levels_of_a_category_are_farther_apart_than_the_ends_of_a_factor() -> None:
    places = GRID.coded([(0, 0, 0), (6, 0, 0), (0, 0, 1), (6, 3, 1)])
    assert list(distance(GRID, places, places[0])) == [0.0, 4.0, 9.0, 17.0]


@given(st.lists(st.lists(st.sampled_from(CELLS), max_size=8), max_size=5))
def test_the_farthest_cell_does_not_hang_on_what_was_asked_before(asked: list[list[Configuration]]) -> None:
    places = GRID.coded(CELLS)
    for taken in asked:
        nearest = [
            min(distance(GRID, GRID.coded(taken), place)) if taken else (place**2).sum() for place in places
        ]
        assert farthest_configuration(GRID, taken) == CELLS[int(np.argmax(nearest))]


def test_the_cost_of_a_cell_is_expected_from_what_others_took() -> None:
    def sample(cell: Configuration, cost_s: float) -> Sample:
        return Sample(cell, "measured", 1.0, 0.9, 1.1, 0.95, cost_s)

    samples = [sample(cell, 100.0 * 2 ** cell[0] * (3 if cell[2] else 1)) for cell in CELLS[::5]]
    expected_s = expected_cost(GRID, samples)
    assert expected_s is not None
    assert expected_s((6, 0, 0)) > 4 * expected_s((1, 0, 0))
    assert expected_s((3, 1, 1)) > 1.5 * expected_s((3, 1, 0))
    assert expected_cost(GRID, samples[:3]) is None
