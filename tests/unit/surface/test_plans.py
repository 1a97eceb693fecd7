"""Plans ask for cells that are there, each once, and for those that teach."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etude.surface import plans
from etude.surface.factors import Factor, Space
from etude.surface.plans import START, d_optimal, full, next_sample, one_factor
from etude.surface.samples import KnownResponses
from etude.surface.surrogates import Predicted
from etude.surface.surrogates.process import Gaussian
from etude.surface.surrogates.quadratic import terms
from support.profiles import examples

GRID = Space(
    (Factor("a", "log", (1, 2, 4, 8)), Factor("b", "linear", (1, 2, 3))), without=frozenset({(3, 2), (0, 1)})
)
LINE = Space((Factor("a", "linear", tuple(range(1, 12))),))
NOTHING = KnownResponses((), np.zeros(0), np.zeros(0))


def information(space, cells):
    rows = terms(space, cells)
    return np.linalg.slogdet(rows.T @ rows)[1]


def known_of(*cells):
    return KnownResponses(
        tuple(cells), np.array([1.0 + 0.1 * sum(cell) for cell in cells]), np.full(len(cells), 1e-4)
    )


def test_a_full_plan_has_every_cell_once_in_an_order_by_seed():
    assert sorted(full(GRID, 1)) == list(GRID)
    assert full(GRID, 1) == full(GRID, 1) != full(GRID, 2)


def test_one_factor_at_a_time_leaves_the_base_in_one():
    assert one_factor(GRID, (1, 1)) == ((1, 1), (2, 1), (3, 1), (1, 0), (1, 2))
    with pytest.raises(ValueError, match="no configuration"):
        one_factor(GRID, (3, 2))


def test_a_d_optimal_design_of_a_small_space_is_the_best_of_all():
    space = Space((Factor("a", "linear", (1, 2, 3)), Factor("b", "linear", (1, 2, 3))))
    best = max(information(space, design) for design in itertools.combinations(space, 6))
    assert information(space, d_optimal(space, 6, (), 1)) == pytest.approx(best, abs=0.01)


def test_exchanges_find_the_best_design_from_whatever_start(monkeypatch):
    monkeypatch.setattr(plans, "STARTS", 1)
    space = Space((Factor("a", "linear", tuple(range(1, 8))), Factor("b", "linear", tuple(range(1, 8)))))
    found = [information(space, d_optimal(space, 8, (), seed)) for seed in range(12)]
    assert min(found) > max(found) - 0.2


def test_a_design_for_a_line_is_its_ends_and_its_middle():
    assert d_optimal(LINE, 3, (), 1) == ((0,), (5,), (10,))


@given(st.integers(0, 8), st.integers(0, 100))
@settings(max_examples=examples(30))
def test_a_design_has_as_many_cells_as_asked_for_none_of_them_fixed(count, seed):
    fixed = [(0, 0), (2, 2)]
    design = d_optimal(GRID, count, fixed, seed)
    assert len(set(design)) == count
    assert not set(design) & set(fixed)
    assert set(design) <= set(GRID)
    assert design == d_optimal(GRID, count, fixed, seed)


def test_fixed_cells_are_not_measured_again_in_kind():
    assert d_optimal(LINE, 2, [(0,)], 1) == ((5,), (10,))
    assert d_optimal(LINE, 1, [(0,), (10,)], 1) == ((5,),)


def test_more_cells_than_there_are_cannot_be_designed():
    with pytest.raises(ValueError, match="the space has 10"):
        d_optimal(GRID, 9, [(0, 0), (2, 2)], 1)


def test_the_first_samples_are_far_from_each_other():
    known = NOTHING
    for _ in range(START):
        known = known_of(*known.cells, next_sample(Space(GRID.factors), None, known))
    assert set(known.cells) == {(0, 0), (3, 0), (0, 2), (3, 2)}


def test_the_first_samples_have_each_level_of_a_categorical_factor():
    space = Space((Factor("a", "linear", (1, 2)), Factor("kind", "categorical", ("x", "y", "z"))))
    known = NOTHING
    for _ in range(3):
        known = known_of(*known.cells, next_sample(space, None, known))
    assert {kind for _, kind in known.cells} == {0, 1, 2}


def test_the_next_sample_is_between_those_that_are_known():
    known = known_of((0,), (1,), (2,), (3,), (10,))
    assert next_sample(LINE, Gaussian().fit(LINE, known), known) in {(6,), (7,), (8,)}


def test_a_sample_that_costs_more_has_to_teach_more():
    known = known_of((0,), (1,), (2,), (3,), (10,))
    fit = Gaussian().fit(LINE, known)
    assert next_sample(LINE, fit, known, lambda cell: 100.0 if cell[0] > 4 else 1.0) == (4,)


def test_what_is_pending_is_neither_asked_for_again_nor_its_neighbour():
    known = known_of((0,), (10,), (4,), (5,), (6,))
    fit = Gaussian().fit(LINE, known)
    first = next_sample(LINE, fit, known)
    second = next_sample(LINE, fit, known, pending=[first])
    assert (first[0] < 4) != (second[0] < 4)


class Plain:
    """A fit that only knows how little it knows."""

    name = "plain"

    def __init__(self, sd):
        self.sd = np.asarray(sd, dtype=float)

    def predict(self, cells):
        return Predicted(np.zeros(len(cells)), self.sd[[cell[0] for cell in cells]])


def test_a_plain_fit_is_asked_where_it_knows_least_and_not_beside_what_is_pending():
    known = known_of((0,), (4,), (8,), (10,))
    sd = [0, 1, 1, 1, 0, 1, 3, 2.9, 0, 2, 0]
    assert next_sample(LINE, Plain(sd), known) == (6,)
    assert next_sample(LINE, Plain(sd), known, pending=[(6,)]) == (9,)
    assert next_sample(LINE, Plain([np.inf if at == 2 else 1.0 for at in range(11)]), known) == (2,)


def test_nothing_is_left_to_measure_when_all_is_known():
    known = known_of(*GRID)
    with pytest.raises(ValueError, match="measured"):
        next_sample(GRID, None, known)
    with pytest.raises(ValueError, match="measured"):
        next_sample(GRID, None, NOTHING, pending=list(GRID))
    rest = known_of(*list(GRID)[1:])
    assert next_sample(GRID, Gaussian().fit(GRID, rest), rest) == next(iter(GRID))
