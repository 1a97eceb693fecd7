"""Étude's own results, in bulk."""

from __future__ import annotations

import shutil
from pathlib import Path

import orjson
import pytest

from etude.errors import InputError
from etude.experiment.plan import make_plan
from etude.experiment.run import run
from etude.results import columns
from etude.results.reader import load_results
from etude.results.readers import read_table
from etude.results.readers.own import read_own
from etude.results.shell_words import join_words
from support.builders import as_if_killed, still_machine
from support.fakes import World, around


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small experiment of two tests, as `etude bench` leaves it."""
    path = tmp_path_factory.mktemp("real") / "results"
    with pytest.MonkeyPatch.context() as patch:
        still_machine(patch)
        world = World({"a": around(0.010), "b": around(0.011)})
        run(make_plan(["a", "b"], seed=1, trials=4), directory=path, make_engine=world.make_engine)
    return path


@pytest.fixture
def copy(real: Path, tmp_path: Path) -> Path:
    shutil.copytree(real, tmp_path / "results")
    return tmp_path / "results"


def lines_of(directory: Path, test: str = "a") -> tuple[Path, list[bytes]]:
    file = directory / test / "results.jsonl"
    return file, file.read_bytes().splitlines(keepends=True)


def test_it_holds_what_load_results_holds(real: Path) -> None:
    table, results = read_table(real), load_results(real)
    measurements = [m for name in results.names() for m in results.measurements[name]]
    frame = table.frame
    assert frame["test"].to_list() == [m.test for m in measurements]
    assert frame["trial"].to_list() == [m.trial for m in measurements]
    assert frame["kept"].to_list() == [m.kept for m in measurements]
    assert frame["command"].to_list() == [join_words(m.command) for m in measurements]
    for metric in table.units:
        assert frame[metric].to_list() == [m.value(metric) for m in measurements]
    assert set(table.units) == {name for m in measurements for name in m.metrics}


def test_some_metrics_only(real: Path) -> None:
    assert tuple(read_own(real, ["elapsed", "user"]).units) == ("elapsed", "user")


def test_parameters_are_columns(copy: Path) -> None:
    document = orjson.loads((copy / "experiment.json").read_bytes())
    document["tests"][0]["parameters"] = {"elapsed": 1, "size": "4k"}
    (copy / "experiment.json").write_bytes(orjson.dumps(document))
    table = read_table(copy)
    assert table.parameters == ("elapsed (parameter)", "size")
    assert set(table.frame["size"].to_list()) == {"4k", None}


@pytest.mark.parametrize("size", [1, 100, 2**23])
def test_lines_are_the_same_however_many_are_read_at_a_time(
    real: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    whole = read_table(real).frame
    monkeypatch.setattr(columns, "_CHUNK", size)
    assert read_table(real).frame.equals(whole)


def test_a_torn_last_line_is_left_out_and_said(copy: Path) -> None:
    before = read_table(copy).frame.height
    file, lines = lines_of(copy)
    file.write_bytes(b"".join(lines)[:-10])
    table = read_table(copy)
    assert table.frame.height == before - 1
    assert table.warnings[0].startswith(f"{file}: ")
    assert "last line" in table.warnings[0]


@pytest.mark.parametrize("size", [1, 2**19])
def test_a_last_trial_that_lacks_a_line_is_left_out_and_said(
    copy: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(columns, "_CHUNK", size)
    file, lines = lines_of(copy)
    rows = [orjson.loads(line) | {"rows": 3} for line in lines]
    whole = [
        orjson.dumps(row | {"start_ns": row["start_ns"] + command}) + b"\n"
        for row in rows
        for command in range(3)
    ]
    file.write_bytes(b"".join(whole[:-1]))
    table = read_table(copy)
    assert table.frame.filter(table.frame["test"] == "a").height == len(whole) - 3
    assert any(line.startswith(f"{file}: ") and "last trial" in line for line in table.warnings)


def test_a_line_that_is_wrong_is_named(copy: Path) -> None:
    file, lines = lines_of(copy)
    for wrong, says in (
        (b"nonsense\n", "invalid literal"),
        (b"[]\n", "no JSON object"),
        (lines[1].replace(b'"kept":true', b'"kept":1'), "kept cannot be 1"),
        (lines[1].replace(b'"worker":0', b'"worker":-1'), "worker cannot be -1"),
        (lines[1].replace(b'"elapsed":[', b'"elapsed":["",'), "metric elapsed must be"),
    ):
        file.write_bytes(b"".join([lines[0], wrong, *lines[2:]]))
        with pytest.raises(InputError, match=f"results.jsonl:2: not a measurement: .*{says}"):
            read_table(copy)


def test_a_metric_that_only_some_lines_have_is_null_elsewhere(copy: Path) -> None:
    file, lines = lines_of(copy)
    last = orjson.loads(lines[-1])
    last["metrics"]["rate"] = [7.5, "B/s"]
    file.write_bytes(b"".join(lines[:-1]) + orjson.dumps(last) + b"\n")
    rate = read_table(copy).frame["rate"]
    assert rate.drop_nulls().to_list() == [7.5]
    assert rate.null_count() == len(rate) - 1


def test_one_metric_with_two_units_is_two_columns(copy: Path) -> None:
    file, lines = lines_of(copy)
    last = orjson.loads(lines[-1])
    last["metrics"]["elapsed"] = [1.5, "B"]
    file.write_bytes(b"".join(lines[:-1]) + orjson.dumps(last) + b"\n")
    table = read_table(copy)
    assert table.frame["elapsed (B)"].drop_nulls().to_list() == [1.5]
    assert any({"elapsed", "s", "B"} <= set(line.split()) for line in table.warnings)


def test_a_newer_version_is_refused(copy: Path) -> None:
    document = orjson.loads((copy / "experiment.json").read_bytes()) | {"version": 99}
    (copy / "experiment.json").write_bytes(orjson.dumps(document))
    with pytest.raises(InputError, match="use a newer"):
        read_table(copy)


def test_a_directory_without_a_measurement_says_so(copy: Path) -> None:
    for file in copy.glob("*/results.jsonl"):
        file.unlink()
    as_if_killed(copy)
    with pytest.raises(InputError, match="holds no measurement"):
        read_table(copy)


def test_metrics_whose_names_meet_are_refused(copy: Path) -> None:
    file, lines = lines_of(copy)
    last = orjson.loads(lines[-1])
    last["metrics"] |= {"test": [1, "s"], "test (metric)": [2, "s"]}
    file.write_bytes(b"".join(lines[:-1]) + orjson.dumps(last) + b"\n")
    with pytest.raises(InputError, match=f"{file.parent.parent}.*one name"):
        read_table(copy)
