"""What was measured comes back as it was written."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from etude.results.model import CACHE_WAYS, Measurement, from_line, to_line
from etude.results.reader import load_results, read_measurements
from etude.results.writer import ResultsWriter, replace_json
from support.builders import document, measurement
from support.profiles import examples

text = st.text(max_size=20)
count = st.integers(0, 2**63 - 1)
number = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**63), 2**63 - 1)
metric = st.tuples(number, text).map(list) | st.tuples(st.none(), text, text).map(list)
captured = st.none() | st.fixed_dictionaries({"bytes": count, "sha256": text, "tail": text})
way = st.sampled_from(CACHE_WAYS)
cache = st.none() | st.fixed_dictionaries({"declared": way, "performed": st.none() | way})

measurements = st.builds(
    Measurement,
    test=st.just("a"),
    trial=count,
    block=count,
    order=count,
    worker=count,
    host=text,
    sitting=count,
    boot_id=text,
    command=st.lists(text, min_size=1, max_size=3),
    start=text,
    start_ns=count,
    inner=st.integers(1, 2**40),
    exit_status=st.none() | st.integers(0, 255),
    signal=st.none() | st.integers(1, 64),
    timed_out=st.booleans(),
    cancelled=st.booleans(),
    error=st.none() | text,
    kept=st.booleans(),
    why=st.none() | text,
    metrics=st.dictionaries(text, metric, max_size=4),
    cache=cache,
    stdout=captured,
    stderr=captured,
    notes=st.none() | st.lists(text, max_size=2),
    windows=st.none(),
    rows=st.none() | st.integers(1, 2**63 - 1),
    kernel=st.none()
    | st.lists(
        st.fixed_dictionaries({"ns": st.integers(0, 2**62), "level": st.integers(0, 7), "text": text}),
        max_size=2,
    ),
    throttled=st.none() | st.integers(1, 2**31),
    offset_ns=st.none() | st.integers(-(2**62), 2**62),
    offset_error_ns=st.none() | count,
    command_text=st.none() | text.filter(lambda each: "\n" not in each),
    accepted=st.none() | st.integers(1, 255),
)


@given(measurements)
def test_a_measurement_survives_its_line(row: Measurement) -> None:
    assert from_line(json.loads(json.dumps(to_line(row)))) == row


@settings(max_examples=examples(60))
@given(st.lists(st.lists(measurements, min_size=1, max_size=3), max_size=4))
def test_what_the_writer_wrote_the_reader_reads(trials: list[list[Measurement]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        writer = ResultsWriter(Path(directory), {"a": "dir"})
        for rows in trials:
            writer.append("a", rows)
        writer.close()
        read, whole = read_measurements(Path(directory) / "dir" / "results.jsonl")
    assert whole
    assert list(read) == [row for rows in trials for row in rows]


@settings(max_examples=examples(60))
@given(measurements)
def test_every_line_is_strict_json_in_utf_8(row: Measurement) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    with tempfile.TemporaryDirectory() as directory:
        writer = ResultsWriter(Path(directory), {"a": "a"})
        writer.append("a", [row])
        writer.close()
        data = (Path(directory) / "a" / "results.jsonl").read_bytes()
    assert data.count(b"\n") == 1
    json.loads(data.decode("utf-8"), parse_constant=refuse)


@given(st.dictionaries(text, text | number | st.none(), max_size=4))
def test_an_experiment_document_survives_its_file(members: dict[str, object]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "experiment.json"
        replace_json(path, members)
        assert json.loads(path.read_text(encoding="utf-8")) == members


def test_what_is_not_utf_8_never_makes_a_file_unreadable(tmp_path: Path) -> None:
    replace_json(tmp_path / "experiment.json", document(command_line=["bench", "-o", "\udcff"]))
    writer = ResultsWriter(tmp_path, {"a": "a"})
    writer.append("a", [measurement("a", command=("cat", "\udcff", "\ud800"))])
    writer.log("a", "0001-0.stdout", "\udcff \ud800")
    writer.close()
    assert load_results(tmp_path).measurements["a"][0].trial == 1


def test_members_of_a_later_version_are_ignored() -> None:
    later = to_line(measurement()) | {"colour": "blue"}
    assert from_line(later) == measurement()


def test_a_metric_without_a_value_keeps_its_reason() -> None:
    row = measurement(metrics={"cycles": [None, "1", "no such event"]})
    assert to_line(row)["metrics"] == {"cycles": [None, "1", "no such event"]}
    assert from_line(to_line(row)).metrics["cycles"] == [None, "1", "no such event"]


def test_absent_streams_windows_notes_rows_and_messages_are_left_out_of_the_line() -> None:
    assert not {"stdout", "stderr", "windows", "notes", "rows", "kernel", "throttled"} & set(
        to_line(measurement())
    )
    assert to_line(measurement(rows=3))["rows"] == 3


def test_a_frame_has_one_row_a_measurement_and_one_column_a_member_and_metric(tmp_path: Path) -> None:
    replace_json(tmp_path / "experiment.json", document(("a", "b")))
    writer = ResultsWriter(tmp_path, {"a": "a", "b": "b"})
    writer.append("a", [measurement("a", metrics={"elapsed": [1, "s"], "cycles": [None, "1", "no"]})])
    writer.append("b", [measurement("b", metrics={"elapsed": [0.5, "s"]})])
    writer.close()
    frame = load_results(tmp_path).frame()
    assert frame["test"].to_list() == ["a", "b"]
    assert frame["elapsed"].to_list() == [1.0, 0.5]
    assert frame["cycles"].to_list() == [None, None]
    assert frame["command"].to_list() == [["a"], ["b"]]
    assert {"trial", "block", "sitting", "kept", "exit_status"} <= set(frame.columns)


def test_a_metric_or_parameter_called_like_a_member_has_a_column_of_its_own(tmp_path: Path) -> None:
    """Fuzzing found a traceback of a metric called `command`."""
    told = document(("a", "b"))
    told["tests"][0]["parameters"] = {"trial": "first", "level": "9"}
    replace_json(tmp_path / "experiment.json", told)
    writer = ResultsWriter(tmp_path, {"a": "a", "b": "b"})
    writer.append("a", [measurement("a", metrics={"elapsed": [1, "s"], "command": [2, "s"]})])
    writer.append("b", [measurement("b", metrics={"elapsed": [0.5, "s"], "level": [3, "1"]})])
    writer.close()
    frame = load_results(tmp_path).frame()
    assert frame["command"].to_list() == [["a"], ["b"]]
    assert frame["command (metric)"].to_list() == [2.0, None]
    assert (frame["level"].to_list(), frame["level (metric)"].to_list()) == (["9", None], [None, 3.0])
    assert (frame["trial"].to_list(), frame["trial (parameter)"].to_list()) == ([1, 1], ["first", None])


def test_the_frame_of_no_measurements_is_empty(tmp_path: Path) -> None:
    replace_json(tmp_path / "experiment.json", document())
    assert load_results(tmp_path).frame().height == 0
