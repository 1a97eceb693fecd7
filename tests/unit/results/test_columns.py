"""Columns as the engine leaves them: the examples that its own tests read as well, and what is said of bad files."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from etude.errors import InputError, MachineRefuses
from etude.results import columns as columns_module
from etude.results.columns import Coded, Columns, read_columns
from etude.results.shell_words import join_words
from support.builders import document, line, measurement, results_directory
from support.places import DATA

VECTORS = [json.loads(text) for text in (DATA / "vectors" / "columns.jsonl").read_text().splitlines()]


def laid_out(directory: Path, files: list[Mapping[str, Any]]) -> Path:
    """A results directory that holds the files of a vector."""
    tests = []
    for number, file in enumerate(files):
        name = f"t{number}"
        (directory / name).mkdir(parents=True)
        (directory / name / "results.jsonl").write_bytes(file["text"].encode())
        entry = {"name": name, "directory": name, "role": "test", "parameters": {}}
        tests.append(entry | {"workers": file.get("workers", 1)})
    (directory / "experiment.json").write_text(json.dumps(document(tests=tests)))
    return directory


def plain(columns: Columns, name: str) -> list[Any]:
    found = getattr(columns, name)
    return found.list() if isinstance(found, Coded) else found.tolist()


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["what"])
def test_the_engine_and_this_side_agree(tmp_path: Path, vector: Mapping[str, Any]) -> None:
    path, expected = laid_out(tmp_path / "r", vector["files"]), vector["expect"]
    if "wrong" in expected:
        wrong = expected["wrong"]
        file = path / f"t{wrong['file']}" / "results.jsonl"
        with pytest.raises(InputError) as caught:
            read_columns(path, vector["metrics"])
        said = str(caught.value)
        assert said.startswith(f"{file}:{wrong['line']}: not a measurement: ")
        assert "\n" not in said
        return
    if not expected["rows"]:
        with pytest.raises(InputError, match="holds no measurement"):
            read_columns(path, vector["metrics"])
        return
    found = read_columns(path, vector["metrics"])
    assert found.rows == expected["rows"]
    for name, values in expected.get("columns", {}).items():
        values = [join_words(json.loads(words)) for words in values] if name == "command" else values
        assert plain(found, name) == values
    if "metrics" in expected:
        there = {(name.removesuffix(f" ({m.unit})"), m.unit): m.values for name, m in found.metrics.items()}
        assert list(there) == [(name, unit) for name, unit, _ in expected["metrics"]]
        for name, unit, values in expected["metrics"]:
            np.testing.assert_array_equal(there[name, unit], np.array(values, dtype=np.float64))
    if "joins" in expected:
        joins = [[name.partition(" ")[0], m.join, m.values] for name, m in found.metrics.items()]
        for (name, join, values), (wanted, way, numbers) in zip(joins, expected["joins"], strict=True):
            assert (name, join) == (wanted, way)
            np.testing.assert_array_equal(values, np.array(numbers, dtype=np.float64))
    for name, pairs in expected.get("reasons", {}).items():
        told = {found.test.texts[code]: why for code, why in found.metrics[name].reasons.items()}
        assert told == dict(pairs)
    lacking = [why for why in found.warnings if "lacks lines" in why or "cut short" in why]
    assert len(lacking) == sum(expected.get("torn", [])) + sum(map(bool, expected.get("left_out", [])))


def test_arrays_are_not_copied(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(line(measurement()))
    found = read_columns(path)
    assert not found.trial.flags.owndata
    assert not found.metrics["elapsed"].values.flags.writeable


def test_names_are_those_of_the_table(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    metrics = {"block": [1, "x"], "elapsed": [1, "s"]}
    path.write_bytes(
        line(measurement(metrics=metrics)) + line(measurement(trial=2, metrics={"elapsed": [2, "B"]}))
    )
    found = read_columns(path)
    assert list(found.metrics) == ["block (metric)", "elapsed", "elapsed (B)"]
    (warning,) = found.warnings
    assert {"elapsed", "s", "B"} <= set(warning.split())


def test_files_of_a_name_that_is_no_text(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff x"))
    assert read_columns(results_directory(path, {"a": [measurement()]})).rows == 1


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"nothing: .*{os.strerror(errno.ENOENT)}"):
        read_columns(tmp_path / "nothing")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match=r"pipe: .*regular"):
        read_columns(tmp_path / "pipe")
    with pytest.raises(InputError, match="zero byte"):
        read_columns(Path("a\0b"))


def test_an_engine_that_is_of_another_version_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "results.jsonl").write_bytes(line(measurement()))
    monkeypatch.setattr(columns_module, "VERSION", 99)
    with pytest.raises(MachineRefuses, match="reinstall"):
        read_columns(tmp_path / "results.jsonl")
    monkeypatch.setenv("ETUDE_ENGINE", "/bin/false")
    with pytest.raises(MachineRefuses, match="/bin/false"):
        read_columns(tmp_path / "results.jsonl")
    monkeypatch.setenv("ETUDE_ENGINE", "/no/such/engine")
    with pytest.raises(MachineRefuses, match="No such file"):
        read_columns(tmp_path / "results.jsonl")


@pytest.mark.parametrize("leads_to", ["results.jsonl", "gone"])
def test_a_file_that_is_a_link_to_nowhere_is_an_error(leads_to: str, tmp_path: Path) -> None:
    file = (
        results_directory(tmp_path, {"a": [measurement()], "b": [measurement("b")]}) / "a" / "results.jsonl"
    )
    file.unlink()
    file.symlink_to(leads_to)
    with pytest.raises(InputError, match=r"a/results\.jsonl: cannot be read"):
        read_columns(tmp_path)
