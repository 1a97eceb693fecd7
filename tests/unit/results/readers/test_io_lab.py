"""What `io -j` and `ipc -j` print is a table: a row a sample."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etude.errors import InputError
from etude.results.readers import io_lab, read_table
from etude.results.table import Table
from support.profiles import examples
from support.sampled import DATA, check_table


def documents(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text().splitlines()]


def column(table: Table, name: str) -> list[Any]:
    return table.frame[name].to_list()


def test_each_sample_of_io_is_a_trial_of_its_buffer_size() -> None:
    table = read_table(DATA / "io-lab-io.json")
    samples = [sample for document in documents("io-lab-io.json") for sample in document["benchmark_samples"]]
    assert column(table, "test") == ["read"] * 5
    assert column(table, "buffersize") == ["65536"] * 3 + ["131072"] * 2
    assert column(table, "trial") == [1, 2, 3, 1, 2]
    assert column(table, "time") == [sample["time"] for sample in samples]
    assert column(table, "bandwidth") == [sample["bandwidth"] * 1024 for sample in samples]
    assert column(table, "system") == [sample["stime"] for sample in samples]
    assert column(table, "blocks_in") == [sample["inblock"] for sample in samples]
    assert (table.units["bandwidth"], table.kinds["bandwidth"]) == ("B/s", "rate")
    assert (table.units["time"], table.kinds["time"]) == ("s", "cost")
    assert table.warnings == ()


def test_a_counter_without_a_count_is_left_out_with_its_reason() -> None:
    table = read_table(DATA / "io-lab-ipc.json")
    assert column(table, "test") == ["2proc local"] * 3
    assert {"totalsize", "send_buffer_bytes"} <= set(table.parameters)
    assert "cycles" not in table.units
    (warning,) = (line for line in table.warnings if line.startswith("cycles"))
    assert "ENOENT" in warning
    assert "(3 times)" in warning


def test_the_labs_own_output_is_read_with_its_counters() -> None:
    table = read_table(DATA / "io-lab-2021.json")
    assert column(table, "test") == ["read", "read", "2thread pipe"]
    assert column(table, "bandwidth") == [812345.68 * 1024, 854321.09 * 1024, 402653.1 * 1024]
    assert column(table, "voluntary_switches") == [0, 0, 261]
    assert column(table, "INST_RETIRED") == [None, None, 9011223]
    assert column(table, "CYCLES_PER_INSTRUCTION") == [None, None, 2.335213]


def written(samples: Any, **asked: Any) -> str:
    return json.dumps({"benchmark_configuration": asked, "benchmark_samples": samples})


def read(text: str) -> Table:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "t.json")
        path.write_text(text)
        assert io_lab.detect(path, text.encode()[:65536])
        return io_lab.read(path)


NUMBERS = st.floats(0, 1e12, allow_nan=False) | st.integers(0, 10**9)
SAMPLES = st.lists(
    st.fixed_dictionaries({"bandwidth": NUMBERS, "time": NUMBERS}, optional={"nvcsw": NUMBERS}), max_size=5
)


@given(st.lists(SAMPLES.filter(bool), min_size=1, max_size=4), st.sampled_from(["", "\n", " \n\n"]))
@settings(max_examples=examples(50))
def test_appended_runs_are_read_one_after_the_other(runs: list[list[dict[str, Any]]], between: str) -> None:
    table = read(between.join(written(run, operation="read") for run in runs))
    check_table(table)
    flat = [sample for run in runs for sample in run]
    assert column(table, "bandwidth") == [sample["bandwidth"] * 1024 for sample in flat]
    assert column(table, "trial") == list(range(1, len(flat) + 1))


@given(SAMPLES.filter(bool), SAMPLES.filter(bool), st.floats(0, 1, exclude_max=True))
@settings(max_examples=examples(50))
def test_a_run_that_was_cut_short_is_left_out_and_said(first: Any, second: Any, share: float) -> None:
    whole, last = written(first, mode="2proc"), written(second, mode="2proc")
    cut = last[: max(1, int(share * len(last)))]
    table = read(whole + "\n" + cut)
    assert table.frame.height == len(first)
    assert any("cut short" in line for line in table.warnings)


JUNK = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["counters", "count", "a"]), inner)
    ),
    max_leaves=6,
)


@given(
    st.lists(
        st.dictionaries(st.sampled_from(["bandwidth", "time", "utime", "counters", "x", "trial"]), JUNK)
        | JUNK,
        max_size=4,
    ),
    st.dictionaries(st.sampled_from(["operation", "mode", "buffersize", "test", "time"]), JUNK),
)
@settings(max_examples=examples(100))
def test_members_of_any_type_give_a_table_or_one_line(samples: Any, asked: Any) -> None:
    said = ""
    try:
        check_table(read(written(samples, **asked)))
    except InputError as error:
        said = str(error)
    assert "\n" not in said


def test_a_description_has_no_samples_and_is_not_claimed(tmp_path: Path) -> None:
    text = '{"hw_configuration": {}, "os_configuration": {}}'
    assert not io_lab.detect(tmp_path, text.encode())
    (tmp_path / "t").write_text(text)
    with pytest.raises(InputError, match=r"/t: .*benchmark_samples"):
        io_lab.read(tmp_path / "t")


def test_a_rate_that_the_clock_could_not_tell_is_missing_and_numbers_may_be_texts() -> None:
    table = read(written([{"bandwidth": None, "time": 0}, {"bandwidth": "2.5", "time": "0.000000012"}]))
    assert column(table, "bandwidth") == [None, 2560.0]
    assert column(table, "time") == [0, 1.2e-8]
    assert [line.partition(": ")[0] for line in table.warnings] == ["bandwidth"]
