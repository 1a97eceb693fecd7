"""Rows that something else has disturbed are found, others seldom are, and none hides another."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from etude.stats import outlying
from etude.stats.outlying import LEVEL, MOST_OF, outlying_rows


@pytest.mark.parametrize(("rows", "columns"), [(5, 1), (10, 20), (30, 20)])
def test_normal_rows_have_outliers_as_seldom_as_the_level_says(rows: int, columns: int) -> None:
    drawn = np.random.default_rng(1)
    tables = 2000
    found = sum(bool(outlying_rows(drawn.normal(size=(rows, columns))).any()) for _ in range(tables))
    assert found / tables <= LEVEL + 3 * (LEVEL / tables) ** 0.5


ROSNER = """
-0.25 0.68 0.94 1.15 1.20 1.26 1.26 1.34 1.38 1.43 1.49 1.49 1.55 1.56 1.58 1.65 1.69 1.70 1.76 1.77 1.81 1.91 1.94
1.96 1.99 2.06 2.09 2.10 2.14 2.15 2.23 2.24 2.26 2.35 2.37 2.40 2.47 2.54 2.62 2.64 2.90 2.92 2.92 2.93 3.21 3.26
3.30 3.59 3.68 4.30 4.64 5.34 5.42 6.01"""


def test_rosners_example_has_three_outliers_that_hide_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """NIST/SEMATECH e-Handbook, 1.3.5.17.3: at 5 % the first two deviates are too small, and the third is not."""
    monkeypatch.setattr(outlying, "LEVEL", 0.1)  # the only column is the sum as well
    values = np.array(ROSNER.split(), float)
    found = outlying_rows(values[:, None])
    assert values[found].tolist() == [5.34, 5.42, 6.01]
    assert outlying._critical(54, 2) == pytest.approx(3.158794, abs=1e-5)


def test_outliers_do_not_hide_each_other() -> None:
    table = np.random.default_rng(2).normal(size=(20, 4))
    table[[3, 7, 11], 2] += 40.0
    assert np.flatnonzero(outlying_rows(table)).tolist() == [3, 7, 11]


def test_a_value_in_a_column_of_zeros_is_no_outlier_unless_the_sum_is() -> None:
    table = np.random.default_rng(3).normal(size=(20, 2))
    table[:, 1] = 0.0
    table[5, 1] = 1.0
    assert not outlying_rows(table).any()
    table[5, 1] = 100.0
    assert np.flatnonzero(outlying_rows(table)).tolist() == [5]


@given(arrays(float, st.tuples(st.integers(1, 12), st.integers(1, 3)), elements=st.floats(-1e6, 1e6)))
def test_few_rows_of_any_table_are_outliers(table: np.ndarray) -> None:
    found = outlying_rows(table)
    assert found.shape == (len(table),)
    assert found.sum() <= max(1, len(table) // MOST_OF)
