"""Rows that are not those which were written: lost, doubled, or of another test."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from etude.analysis.subject import session_notes
from etude.errors import InputError
from etude.present.sentences.result_notes import note_text
from etude.results.columns import read_columns
from etude.results.model import Measurement
from etude.results.reader import load_results
from etude.results.trials import read_trials, series_of_columns, trials_of_results
from support.builders import document, line, measurement, results_directory

ROWS = [measurement(trial=trial, start_ns=1000 + trial) for trial in range(4)]
PAIRS = [measurement(trial=trial, worker=w, start_ns=10 * trial + w) for trial in range(3) for w in (0, 1)]
READERS: list[Callable[[Path], object]] = [load_results, read_columns, read_trials]
WHOLE: list[Callable[[Path], object]] = [load_results, read_trials]
"""Those that look at the document, too."""


def entry(**members: Any) -> dict[str, Any]:
    return {"name": "a", "directory": "a", "role": "test", "parameters": {}} | members


def laid_out(
    directory: Path, rows: Sequence[Measurement], how_ended: str | None = "complete", **members: Any
) -> Path:
    sittings = [document()["sittings"][0] | {"how_ended": how_ended}]
    return results_directory(directory, {"a": rows}, tests=[entry(**members)], sittings=sittings)


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("left", [0, 1, 3])
def test_lines_that_were_lost_since_are_missed(
    tmp_path: Path, read: Callable[[Path], object], left: int
) -> None:
    laid_out(tmp_path, ROWS[:left], lines=4)
    with pytest.raises(InputError, match=rf"a/results\.jsonl: holds {left} of the 4 lines") as error:
        read_trials(tmp_path) if read is read_columns and not left else read(tmp_path)
    assert "\n" not in str(error.value)


def test_a_file_that_is_gone_is_missed(tmp_path: Path) -> None:
    laid_out(tmp_path, ROWS, lines=4)
    (tmp_path / "a" / "results.jsonl").unlink()
    for read in READERS:
        with pytest.raises(InputError, match="holds 0 of the 4 lines"):
            read(tmp_path)


def test_a_trial_that_was_cut_short_at_the_end_is_no_lost_line(tmp_path: Path) -> None:
    laid_out(tmp_path, PAIRS, workers=2, lines=6)
    file = tmp_path / "a" / "results.jsonl"
    whole = file.read_bytes()
    file.write_bytes(whole[:-5])
    assert load_results(tmp_path).measurements["a"] == tuple(PAIRS[:4])
    assert read_trials(tmp_path).columns.rows == 4
    file.write_bytes(b"".join(map(line, PAIRS[:3])))
    for read in WHOLE:
        with pytest.raises(InputError, match="holds 2 of the 6 lines"):
            read(tmp_path)


def test_a_session_that_was_killed_has_recorded_nothing(tmp_path: Path) -> None:
    for lines in (2, 7):
        place = laid_out(tmp_path / str(lines), ROWS, None, lines=lines)
        assert len(load_results(place).measurements["a"]) == read_columns(place).rows == 4
        assert read_trials(place).columns.rows == 4


@pytest.mark.parametrize(
    "rows",
    [[*ROWS, *ROWS], [row for row in ROWS for _ in range(2)], [*ROWS, ROWS[1]]],
    ids=("all", "each", "one"),
)
def test_lines_that_stand_there_again_count_once_and_are_told(
    tmp_path: Path, rows: list[Measurement]
) -> None:
    results = load_results(laid_out(tmp_path, rows))
    file = str(tmp_path / "a" / "results.jsonl")
    assert results.measurements["a"] == tuple(ROWS)
    assert results.repeated == {file: len(rows) - 4}
    trials = read_trials(tmp_path)
    assert trials.repeated == trials_of_results(results).repeated == results.repeated
    assert any(file in note_text(note) for note in session_notes(trials, ()))
    assert trials.columns.start_ns.tolist() == [row.start_ns for row in ROWS]
    columns = read_columns(tmp_path)
    assert columns.trial.tolist() == [0, 1, 2, 3]
    assert columns.metrics["elapsed"].values.size == columns.rows == 4
    assert len(columns.warnings) > len(read_columns(laid_out(tmp_path / "whole", ROWS)).warnings)


def test_workers_and_commands_of_one_trial_are_no_repetition(tmp_path: Path) -> None:
    assert load_results(laid_out(tmp_path / "w", PAIRS, workers=2)).repeated == {}
    assert read_columns(tmp_path / "w").rows == 6
    commands = [measurement(trial=1, start_ns=n, rows=3) for n in (1, 2, 3)]
    assert len(load_results(laid_out(tmp_path / "c", commands)).measurements["a"]) == 3


@pytest.mark.parametrize(
    ("rows", "workers"),
    [([*ROWS, measurement(trial=2, start_ns=7)], 1), ([*PAIRS[:1], *PAIRS[2:]], 2)],
    ids=("another of that number", "a worker's line is gone"),
)
@pytest.mark.parametrize("read", WHOLE)
def test_a_trial_with_another_number_of_lines_is_refused(
    tmp_path: Path, read: Callable[[Path], object], rows: list[Measurement], workers: int
) -> None:
    with pytest.raises(InputError, match=r"a/results\.jsonl: lines of trial"):
        read(laid_out(tmp_path, rows, workers=workers))


@pytest.mark.parametrize("read", WHOLE)
def test_a_row_of_another_test_is_refused(tmp_path: Path, read: Callable[[Path], object]) -> None:
    laid_out(tmp_path, [*ROWS[:2], measurement(test="b", trial=2), ROWS[3]])
    with pytest.raises(InputError, match=r"results\.jsonl:3: is of test 'b'"):
        read(tmp_path)


@pytest.mark.parametrize("read", WHOLE)
def test_a_row_of_a_session_that_is_not_recorded_is_refused(
    tmp_path: Path, read: Callable[[Path], object]
) -> None:
    with pytest.raises(InputError, match=r"results\.jsonl:2: is of session 7"):
        read(laid_out(tmp_path, [ROWS[0], measurement(trial=1, sitting=7)]))


@pytest.mark.parametrize(
    "value", [[-0.5, "s"], [1.0, "ms"], [None, "B", "not measured"]], ids=("negative", "ms", "B")
)
def test_a_metric_of_the_engine_is_not_negative_and_in_its_unit(tmp_path: Path, value: list[Any]) -> None:
    laid_out(tmp_path, [ROWS[0], measurement(trial=1, metrics={"elapsed": value})])
    for read in WHOLE:
        with pytest.raises(InputError, match=r"results\.jsonl:2: not a measurement: metric elapsed"):
            read(tmp_path)


@pytest.mark.parametrize("read", WHOLE)
@pytest.mark.parametrize(
    "members",
    [{"kernel": [7]}, {"accepted": 256}, {"throttled": -1}, {"command_text": "a\nb"}, {"offset_ns": "1"}],
    ids=json.dumps,
)
def test_members_that_few_lines_have_are_checked(
    tmp_path: Path, read: Callable[[Path], object], members: dict[str, Any]
) -> None:
    laid_out(tmp_path, [ROWS[0], measurement(trial=1, **members)])
    with pytest.raises(InputError, match=rf"results\.jsonl:2: not a measurement: {next(iter(members))}"):
        read(tmp_path)


@pytest.mark.parametrize("in_memory", [True, False])
def test_a_value_in_another_unit_than_the_first_is_no_value(tmp_path: Path, in_memory: bool) -> None:
    def sample(path: Path) -> list[float]:
        trials = trials_of_results(load_results(path)) if in_memory else read_trials(path)
        return series_of_columns(trials.columns)[0].sample("own").tolist()

    units = ("ms", "ms", "B", "ms")
    rows = [measurement(trial=n, metrics={"own": [5.0, unit]}) for n, unit in enumerate(units)]
    assert sample(laid_out(tmp_path / "1", rows)) == [5.0, 5.0, 5.0]
    pairs = [row._replace(worker=w) for row in rows for w in (0, 1)]
    assert len(sample(laid_out(tmp_path / "2", pairs, workers=2))) == 3


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 0},
        {"version": True},
        {"version": "1"},
        {"tests": [entry(workers=0)]},
        {"tests": [entry(workers="2")]},
        {"tests": [entry(workers=None)]},
        {"tests": [entry(lines=-1)]},
        {"tests": [entry(), entry(directory="b")]},
        {"tests": [entry(), entry(name="b")]},
        {"plan": {"tests": [{"name": []}]}},
        {"plan": {"tests": {"a": 1}}},
        {"plan": {"tests": 7}},
    ],
    ids=json.dumps,
)
def test_an_experiment_that_was_edited_is_one_line(tmp_path: Path, changes: dict[str, Any]) -> None:
    results_directory(tmp_path, {"a": ROWS})
    (tmp_path / "experiment.json").write_text(json.dumps(document() | changes))
    with pytest.raises(InputError, match=r"experiment\.json") as error:
        load_results(tmp_path)
    assert "\n" not in str(error.value)
