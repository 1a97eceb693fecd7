"""A sample as a line of bars."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from etude.analysis.subject import subject_of_table
from etude.analysis.verdict import verdict
from etude.analysis.verdict_options import VerdictOptions
from etude.present.sections.stats import bar_lines
from etude.present.table_layout import BARS, sparkline
from etude.results.readers import read_table

VALUES = st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=300)


def test_bars_go_from_the_lowest_to_the_highest() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7.0], (), 80) == (BARS, "", 1)


def test_an_outlier_is_marked_and_does_not_flatten_the_rest() -> None:
    bars, marks, _ = sparkline([1.0, 2.0, 1000.0, 1.0, -1000.0], {2, 4}, 80)
    assert (bars, marks) == ("▁██▁▁", "  ^ ^")


def test_values_that_are_all_alike_are_a_flat_line() -> None:
    assert sparkline([5.0] * 4, (), 80)[0] == "▄▄▄▄"


def test_more_values_than_columns_share_bars_and_the_outlier_is_seen() -> None:
    values = [1.0, 2.0] * 50
    values[57] = 99.0
    bars, marks, each = sparkline(values, {57}, 20)
    assert (len(bars), each) == (20, 5)
    assert marks == " " * 11 + "^"
    assert bars[11] == "█"


@given(VALUES, st.integers(1, 100))
def test_it_fits_whatever_the_values(values: list[float], most: int) -> None:
    bars, marks, each = sparkline(values, {0}, most)
    assert 1 <= len(bars) <= most
    assert len(bars) == -(-len(values) // each)
    assert marks == "^"


def test_it_says_which_trials_are_outliers(tmp_path) -> None:  # type: ignore[no-untyped-def]
    values = np.random.default_rng(1).normal(1.0, 0.01, 20)
    values[6] = 3.0
    path = tmp_path / "t.csv"
    path.write_text("elapsed\n" + "".join(f"{v}\n" for v in values))
    found = verdict(subject_of_table(read_table(str(path))))
    series, m = found.subject.tests[0], found.tests[0].metric("elapsed")
    assert m is not None
    told, bars, marks = bar_lines("elapsed", series, m, VerdictOptions(), 80)
    assert told.startswith("elapsed: 20 trials ")
    assert told.endswith("; ^ outlier: trial 7 (3.000 s)")
    assert marks == " " * 6 + "^"
    assert bars[6] == "█"
