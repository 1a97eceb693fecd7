"""Cells that are measured again."""

from __future__ import annotations

import numpy as np
import pytest

from etude.surface.next_configuration import outlier_index, outlier_indices
from etude.surface.samples import Sample, known_samples
from etude.surface.surrogates import Predicted
from etude.surface.surrogates.selection import Choice

CELLS = [(n,) for n in range(10)]
TRUE = 100.0


class LeftOut:
    """Each cell as all others are."""

    name = "made"
    left_out = Predicted(np.full(10, np.log(TRUE)), np.full(10, 0.05))

    def predict(self, cells: object) -> Predicted:
        raise AssertionError(cells)


def sample(cell: tuple[int, ...], value: float) -> Sample:
    return Sample(cell, "measured", value, 0.98 * value, 1.02 * value, 0.95)


def asked(*more: float, first: float = 5.0, besides: tuple[tuple[int, ...], ...] = ()) -> int | None:
    """Of ten cells, of which the fourth read `first`, and `more` when it was measured again."""
    samples = [sample(cell, first if cell == (3,) else TRUE * (1 + 0.02 * cell[0])) for cell in CELLS]
    samples += [sample((3,), value) for value in more]
    return outlier_index(Choice(LeftOut(), (), known_samples(samples)), samples, besides)


def test_a_cell_far_off_what_the_others_predict_is_measured_again() -> None:
    assert asked() == 3
    assert asked(first=130.0) is None
    assert asked(besides=((3,),)) is None


@pytest.mark.parametrize(
    ("more", "again"),
    [
        ([101.0], False),  # the first was disturbed
        ([5.1], False),  # so it is
        ([20.0], True),
        ([20.0, 40.0], False),  # no fourth
    ],
)
def test_it_is_believed_once_two_measurements_agree_or_the_others_do(more: list[float], again: bool) -> None:
    assert (asked(*more) is not None) == again


def test_where_all_cells_are_badly_predicted_none_is_far_off() -> None:
    rough = np.log(np.array([0.5, 2.0, 0.6, 1.7, 0.4, 2.4, 0.55, 1.9]))
    assert outlier_indices(rough) == []
    assert outlier_indices(np.append(0.1 * rough, 1.0)) == [8]
