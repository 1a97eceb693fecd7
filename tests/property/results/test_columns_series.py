"""Series made of columns at once are those made of measurements one by one."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from etude.results.columns import read_columns
from etude.results.model import Measurement, is_printed
from etude.results.series import Series
from etude.results.trial_join import NONE, why_not_joined
from etude.results.trials import series_of_columns
from support.builders import line, measurement, results_directory, series_of_rows

VALUES = st.floats(-1e9, 1e9) | st.integers(0, 2**40)
METRICS = {"elapsed": "s", "user": "s", "peak_memory": "B", "orphans": "1", "cycles": "1", "mine": "x"}
ENDINGS = (
    {"exit_status": 0},
    {"exit_status": 3},
    {"exit_status": None},
    {"exit_status": None, "signal": 9},
    {"exit_status": 137, "signal": 9},
    {"exit_status": None, "timed_out": True, "signal": 15},
    {"exit_status": 0, "cancelled": True},
    {"exit_status": None, "error": "no such file", "start": None, "start_ns": None},
    {"exit_status": 0, "error": "told by another"},
)


@st.composite
def metrics(draw: st.DrawFn) -> dict[str, list[object]]:
    found: dict[str, list[object]] = {}
    for name in draw(st.lists(st.sampled_from(sorted(METRICS)), unique=True)):
        value = draw(st.none() | VALUES)
        reason = [] if value is not None else [draw(st.sampled_from(["no such event", 'why "not"\n']))]
        found[name] = [value, METRICS[name], *reason]
    return found


@st.composite
def rows(draw: st.DrawFn, single: bool = False) -> list[Measurement]:
    """Lines of some tests, in any order; what a trial shares is the same in all its lines."""
    found = []
    for test in draw(st.lists(st.sampled_from(["a", "b b", "ü", 'q"\\']), unique=True, min_size=1)):
        for trial in draw(st.lists(st.integers(0, 6), unique=True, min_size=1)):
            kept = draw(st.booleans())
            shared = {
                "kept": kept,
                "why": None if kept else draw(st.sampled_from(["first run", "failed"])),
                "block": draw(st.integers(0, 2**62)),
                "sitting": draw(st.integers(1, 3)),
                "boot_id": draw(st.sampled_from(["boot 1", "boot 2"])),
                "inner": draw(st.integers(1, 3)),
            }
            for worker in [0] if single else draw(st.lists(st.integers(0, 3), min_size=1, max_size=6)):
                own = {
                    "worker": worker,
                    "metrics": draw(metrics()),
                    "host": draw(st.sampled_from(["here", "there"])),
                }
                # No two lines of one worker begin at one instant.
                own |= {"start_ns": draw(st.integers(0, 2**53 - 1)) * 1024 + len(found)} | draw(
                    st.sampled_from(ENDINGS)
                )
                found.append(measurement(test, trial, **(shared | own)))
    return found if single else draw(st.permutations(found))


def of_columns(measurements: Sequence[Measurement]) -> list[Series]:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "results.jsonl")
        path.write_bytes(b"".join(map(line, measurements)))
        return list(series_of_columns(read_columns(path)))


def one_by_one(measurements: Sequence[Measurement]) -> list[Series]:
    tests = dict.fromkeys(m.test for m in measurements)
    return [series_of_rows([m for m in measurements if m.test == test]) for test in tests]


def check_equal(found: Series, expected: Series) -> None:
    assert found.test == expected.test
    for name in ("trials", "kept", "blocks", "sittings"):
        assert getattr(found, name).tolist() == getattr(expected, name).tolist(), name
    assert found.labels == expected.labels
    np.testing.assert_array_equal(found.spans, expected.spans)
    assert list(found.why) == list(expected.why)
    assert tuple(found.failures) == tuple(expected.failures)
    assert found.inner == expected.inner
    assert set(found.columns) == set(expected.columns)
    for name, column in expected.columns.items():
        ours = found.columns[name]
        assert (ours.unit, ours.kind) == (column.unit, column.kind)
        np.testing.assert_allclose(ours.values, column.values, rtol=1e-12, atol=1e-6, err_msg=name)
        assert (ours.reason is None) <= (not np.isnan(column.values).all())


def check_reasons(found: Series, measurements: Sequence[Measurement]) -> None:
    """The reason is why values are not joined, or that of a first line, if there is none in the first trial."""
    for name, column in found.columns.items():
        lines = [m.metrics[name] for m in measurements if m.test == found.test and name in m.metrics]
        first = next((line[2] for line in lines if line[0] is None), None)
        first = first if np.isnan(column.values[0]) else None
        assert column.reason == (why_not_joined(asked=is_printed(name)) if column.joined == NONE else first)


@given(rows())
def test_several_workers_commands_and_missing_values(measurements: list[Measurement]) -> None:
    for found, expected in zip(of_columns(measurements), one_by_one(measurements), strict=True):
        check_equal(found, expected)
        check_reasons(found, measurements)


@given(rows(single=True))
def test_trials_of_one_line_each(measurements: list[Measurement]) -> None:
    for found, expected in zip(of_columns(measurements), one_by_one(measurements), strict=True):
        check_equal(found, expected)


def test_commands_come_first_then_workers() -> None:
    """The longest worker is the one whose commands took longest together; CPU time is summed."""

    def row(worker: int, elapsed: float, user: float, start_ns: int = 1) -> Measurement:
        metrics = {"elapsed": [elapsed, "s"], "user": [user, "s"]}
        return measurement(worker=worker, start_ns=start_ns, metrics=metrics)

    (series,) = of_columns([row(0, 3.0, 1.0), row(1, 2.0, 1.0), row(1, 2.0, 1.0, start_ns=2)])
    assert series.columns["elapsed"].values.tolist() == [4.0]
    assert series.columns["user"].values.tolist() == [3.0]


def test_parameters_are_those_of_the_test(tmp_path: Path) -> None:
    rows = {"a": [measurement()], "b": [measurement("b")]}
    entry = {"directory": "a", "role": "test"}
    tests = [{"name": "a", "parameters": {"size": 4}} | entry]
    tests.append({"name": "b", "parameters": {}} | entry | {"directory": "b"})
    directory = results_directory(tmp_path / "r", rows, tests=tests)
    a, b = series_of_columns(read_columns(directory))
    assert (a.parameters, b.parameters) == ({"size": "4"}, {})
