"""Series: the same trials whether they come from measurements or from a table of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.experiment.progress import trials_of
from etude.results.columns import read_columns
from etude.results.model import Measurement
from etude.results.reader import load_results
from etude.results.readers import read_table
from etude.results.series import Failure, Series, series_of_table
from etude.results.trials import read_trials, series_of_columns
from support.builders import measurement, results_directory, series_of_rows

VALUES = st.none() | st.floats(0.0, 1e6)


@st.composite
def rows(draw: st.DrawFn) -> list[Measurement]:
    """Trials of one to three workers, each with one or two commands, some values missing."""
    found = []
    for trial in range(draw(st.integers(1, 4))):
        kept = draw(st.booleans())
        for worker in range(draw(st.integers(1, 3))):
            for _ in range(draw(st.integers(1, 2))):
                metrics = {
                    name: [value, unit, *join] if value is not None else [None, unit, "not there", *join]
                    for name, unit, *join in (
                        ("elapsed", "s"),
                        ("user", "s"),
                        ("peak_memory", "B"),
                        ("orphans", "1"),
                        ("rate", "1/s"),
                        ("latency_p99", "s"),
                        ("seen", "1"),
                        ("low", "1/s", "min"),
                        ("middle", "s", "mean"),
                    )
                    if (value := draw(VALUES)) is not None or draw(st.booleans())
                }
                found.append(
                    measurement(
                        trial=trial, worker=worker, kept=kept, why=None if kept else "failed", metrics=metrics
                    )
                )
    return found


def same(a: Series, b: Series) -> None:
    assert a.trials.tolist() == b.trials.tolist()
    assert a.kept.tolist() == b.kept.tolist()
    for metric in a.columns:
        if np.isfinite(a.columns[metric].values).any():
            assert a.columns[metric].unit == b.columns[metric].unit
            assert a.columns[metric].kind == b.columns[metric].kind
            np.testing.assert_allclose(a.columns[metric].values, b.columns[metric].values)
        if metric in b.columns:
            assert a.columns[metric].joined == b.columns[metric].joined
            assert a.columns[metric].workers == b.columns[metric].workers


@given(rows())
def test_a_column_holds_what_each_trial_says(measurements: list[Measurement]) -> None:
    trials = trials_of(measurements)
    series = series_of_rows(measurements)
    for metric, column in series.columns.items():
        said = [trial.value(metric) for trial in trials]
        expected = [np.nan if value is None else value for value in said]
        np.testing.assert_allclose(column.values, expected, rtol=1e-12)


@given(rows())
def test_a_table_gives_the_same_series_as_the_measurements(
    tmp_path_factory: pytest.TempPathFactory, measurements: list[Measurement]
) -> None:
    rows_of = {t: sum(m.trial == t for m in measurements) for t in {m.trial for m in measurements}}
    whole = [m._replace(rows=rows_of[m.trial]) for m in measurements]
    directory = results_directory(tmp_path_factory.mktemp("r") / "x", {"a": whole})
    of_results = series_of_rows(load_results(directory).measurements["a"])
    (of_table,) = series_of_table(read_table(directory))
    same(of_results, of_table)
    (of_columns,) = series_of_columns(read_columns(directory))
    same(of_results, of_columns)
    (of_trials,) = series_of_columns(read_trials(directory).columns)
    same(of_results, of_trials)


def test_a_sample_is_of_kept_trials_and_names_their_places() -> None:
    made = [
        measurement(trial=0, elapsed_s=9.0, kept=False, why="first run"),
        measurement(trial=1, elapsed_s=1.0),
        measurement(trial=2, elapsed_s=None),
        measurement(trial=3, elapsed_s=3.0, exit_status=2),
    ]
    series = series_of_rows(made)
    assert series.sample("elapsed").tolist() == [1.0, 3.0]
    assert series.places("elapsed").tolist() == [1, 3]
    assert series.sample("nosuch").size == series.places("nosuch").size == 0
    assert series.failures == (Failure(3, 0, "exit status 2"),)
    assert series.why == ["first run", None, None, None]


def test_only_the_metrics_that_are_wanted_are_read() -> None:
    made = [measurement(metrics={"elapsed": [1.0, "s"], "user": [0.5, "s"], "system": [0.1, "s"]})]
    series = series_of_rows(made, ("user", "nosuch"))
    assert list(series.columns) == ["elapsed", "user"]


def test_a_programs_own_metric_has_the_kind_of_its_unit() -> None:
    made = [measurement(metrics={"speed": [5.0, "B/s"], "hits": [0.5, "%"], "cost": [1.0, "J"]})]
    series = series_of_rows(made)
    assert {name: c.kind for name, c in series.columns.items()} == {
        "speed": "rate",
        "hits": "count",
        "cost": "cost",
    }


def test_tests_of_a_table_are_told_apart_by_their_parameters(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("test,mode,elapsed (ms)\nx,cold,5\nx,warm,6\nx,cold,7\n")
    found = series_of_table(read_table(file))
    assert {series.test: series.sample("elapsed").tolist() for series in found} == {
        "x (mode=cold)": [0.005, 0.007],
        "x (mode=warm)": [0.006],
    }
