"""Whatever happened to a file, reading it gives a table of what is whole in it, or one line that says what is wrong."""

from __future__ import annotations

import codecs
import contextlib
import json
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etude.errors import InputError
from etude.results.readers import formats_of, read_table
from etude.results.readers.source import UNFITTING
from etude.results.table import MAX_COLUMNS, Table
from support.profiles import examples
from support.sampled import DATA, MODULES, SAMPLES, check_table, format_of, module

NAMES = sorted(MODULES)
BITS = [b"\n", b"\t", b" ", b",", b'"', b":", b"0", b"9", b"-", b"e9", b"1e999", b"NaN", b"Infinity", b"null"]
BITS += [
    b"[",
    b"]",
    b"{}",
    b"[]",
    b'"x"',
    b"true",
    b"\\ud800",
    b"\xff",
    b"\0",
    b"99999999999999999999",
    b".",
    b"%",
]
EDITS = st.lists(
    st.tuples(
        st.floats(0, 1, exclude_max=True),
        st.sampled_from(["replace", "insert", "delete"]),
        st.binary(min_size=1, max_size=3) | st.sampled_from(BITS),
    ),
    min_size=1,
    max_size=4,
)


def edited(content: bytes, edits: list[tuple[float, str, bytes]]) -> bytes:
    for share, how, by in edits:
        place = int(share * len(content))
        rest = place + (0 if how == "insert" else len(by))
        content = content[:place] + (b"" if how == "delete" else by) + content[rest:]
    return content


def table_or_line(name: str, path: Path, content: bytes) -> Table | None:
    """The table that a format's own reader gives; none for an error, which is one line that begins with the file."""
    path.write_bytes(content)
    assert module(name).detect(path, content[:65536]) in (True, False)
    try:
        table = module(name).read(path)
    except InputError as error:
        said = str(error)
    else:
        check_table(table)
        return table
    assert "\n" not in said
    assert said.startswith(str(path))
    return None


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
@given(EDITS)
@settings(max_examples=examples(25))
def test_an_edited_sample(path: Path, edits: list[tuple[float, str, bytes]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        table_or_line(format_of(path), Path(directory, path.name), edited(path.read_bytes(), edits))


@pytest.mark.parametrize("name", NAMES)
@given(st.binary(max_size=200))
@settings(max_examples=examples(20))
def test_arbitrary_bytes(name: str, content: bytes) -> None:
    with tempfile.TemporaryDirectory() as directory:
        table_or_line(name, Path(directory, "t"), content)
        with contextlib.suppress(InputError):
            check_table(read_table(Path(directory, "t")))


NAMES_IN_JSON = (
    "results benchmarks metadata runs values warmups command times measurements exit_codes memory_usage_byte mean "
    "parameters value unit stats data params fullname name group result_columns result samples commit_hash jobs "
    "jobname read write clat_ns percentile error entries Suite benches commit id tool context run_type run_name "
    "real_time time_unit iterations aggregate_name counter-value event interval test trial worker kept metrics "
    "exit_status signal benchmark_configuration benchmark_samples bandwidth counters reason mode "
    "start end test_start sum_sent sum_received bits_per_second streams sender cpu_utilization_percent "
    "iters point_estimate standard_error primaryMetric secondaryMetrics rawData rawDataHistogram score scoreUnit "
    "Action Output Package"
)
KEYS = NAMES_IN_JSON.split()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["", "s", "x", "\ud800", "1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)
BY_JSON = [
    "asv",
    "criterion",
    "fio",
    "github-action-benchmark",
    "google-benchmark",
    "hyperfine",
    "io-lab",
    "iperf3",
    "pyperf",
    "pytest-benchmark",
]


@pytest.mark.parametrize("name", [*BY_JSON, "etude", "perf"])
@given(st.dictionaries(st.sampled_from(KEYS), JSON, max_size=5))
@settings(max_examples=examples(40))
def test_json_of_wrong_types(name: str, document: dict[str, object]) -> None:
    content = json.dumps(({"fio version": "fio-3"} if name == "fio" else {}) | document).encode()
    with tempfile.TemporaryDirectory() as directory:
        table_or_line(name, Path(directory, "t"), content + b"\n")


@pytest.mark.parametrize("name", ["jmh", "go"])
@given(st.lists(st.dictionaries(st.sampled_from(KEYS), JSON, max_size=5), max_size=4))
@settings(max_examples=examples(40))
def test_lists_and_lines_of_json_of_wrong_types(name: str, documents: list[dict[str, object]]) -> None:
    """A list of JMH, where a score is always there; events of Go, a line each."""
    if name == "jmh":
        content = json.dumps([{"benchmark": "a", "primaryMetric": {}} | each for each in documents])
    else:
        content = "".join(
            json.dumps({"Action": "output"} | each, separators=(",", ":")) + "\n" for each in documents
        )
    with tempfile.TemporaryDirectory() as directory:
        table_or_line(name, Path(directory, "t"), content.encode())


def rows_of(table: Table) -> list[set[tuple[str, object]]]:
    """Each row's test and metrics: whatever of them has a value."""
    named = table.frame.select("test", *(["metric"] if table.summary_only else []), *numbers(table))
    return [{(n, v) for n, v in row.items() if v is not None} for row in named.iter_rows(named=True)]


def numbers(table: Table) -> list[str]:
    return [name for name, kind in table.frame.schema.items() if str(kind) == "Float64"]


@pytest.mark.parametrize("path", [p for p in SAMPLES if format_of(p) != "csv"], ids=lambda path: path.name)
@given(share=st.floats(0, 1, exclude_max=True))
@settings(max_examples=examples(40))
def test_a_truncated_sample_has_no_value_that_the_whole_one_lacks(path: Path, share: float) -> None:
    content = path.read_bytes()
    with tempfile.TemporaryDirectory() as directory:
        cut = table_or_line(format_of(path), Path(directory, path.name), content[: int(share * len(content))])
        whole = table_or_line(format_of(path), Path(directory, path.name), content)
    assert whole is not None
    if cut is not None and cut.summary_only == whole.summary_only:
        there = rows_of(whole)
        assert all(any(row <= other for other in there) for row in rows_of(cut))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("content", [b"", b"\n", b"\0\1\2\xff" * 50, b"{}", b"[]", b"nothing of interest\n"])
def test_what_is_no_results_file_is_one_line(tmp_path: Path, name: str, content: bytes) -> None:
    assert table_or_line(name, tmp_path / "t", content) is None


@pytest.mark.parametrize("name", [*BY_JSON, "etude", "perf"])
@pytest.mark.parametrize("bomb", [b"[", b'{"results":', b'{"benchmarks":[', b'{"a":'])
def test_nesting_bombs(tmp_path: Path, name: str, bomb: bytes) -> None:
    for start in (b"", b'{"fio version": "3", "x":', b"NaN"):
        assert table_or_line(name, tmp_path / "t", start + bomb * 100_000) is None


@pytest.mark.more
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("csv", b",".join(b"c%d" % i for i in range(10**5)) + b"\n" + b",".join([b"1"] * 10**5) + b"\n"),
        ("go", b"BenchmarkX 1" + b"".join(b" 1 u%d" % i for i in range(10**5)) + b"\n"),
        ("google-benchmark", b'{"benchmarks":[{"name":"x",'
         + b",".join(b'"c%d":1' % i for i in range(10**5)) + b"}]}"),
        ("etude", b'{"test":"a","trial":1,"worker":0,"command":[],"kept":true,"exit_status":0,"signal":null,'
         + b'"metrics":{' + b",".join(b'"c%d":[1,"s"]' % i for i in range(10**5)) + b"}}\n"),
        ("getstats", b"epoch elapsed " + b" ".join(b"c%d" % i for i in range(10**5)) + b"\n1 1\n"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_hundred_thousand_columns(tmp_path: Path, name: str, content: bytes) -> None:
    assert table_or_line(name, tmp_path / "t", content) is None


def test_many_rows_with_columns_of_their_own_are_too_many(tmp_path: Path) -> None:
    lines = [f"BenchmarkX 1 1 u{i}" for i in range(MAX_COLUMNS + 1)]
    (tmp_path / "t").write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError, match=f"/t: .*{MAX_COLUMNS}"):
        read_table(tmp_path / "t")


def test_values_that_are_not_finite_are_left_out_and_said(tmp_path: Path) -> None:
    (tmp_path / "t").write_text(
        '{"results": [{"command": "a", "times": [NaN, 1.0, -Infinity, 1e999, true, "2"]}]}'
    )
    table = read_table(tmp_path / "t")
    assert table.frame["elapsed"].to_list() == [None, 1.0, None, None, None, None]
    (warning,) = table.warnings
    assert warning.startswith("elapsed: ")
    assert "(5 times)" in warning


def test_mixed_units_are_one_or_stand_apart(tmp_path: Path) -> None:
    (tmp_path / "t").write_text(
        "BenchmarkX 1 1 sec/op\nBenchmarkX 1 500000000 ns/op\nBenchmarkX 1 5 B/s 1 x\n"
    )
    assert read_table(tmp_path / "t").frame["elapsed"].to_list() == [1.0, 0.5, None]
    bench = '{"name": "a", "value": 1, "unit": "%s"}'
    (tmp_path / "t").write_text(
        '{"lastUpdate": 1, "entries": {"s": [{"benches": ['
        + ", ".join(bench % unit for unit in ("apples", "pears"))
        + "]}]}}"
    )
    table = read_table(tmp_path / "t")
    assert table.units == {"value": "apples", "value (pears)": "pears"}
    (warning,) = table.warnings
    assert {"value", "apples", "pears"} <= set(warning.split())


def test_a_parameter_and_a_metric_of_one_name_stand_apart(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("x: a\nx (text): b\nelapsed: c\ntest: d\nBenchmarkA 1 1 x 1 ns/op 3 test\n")
    table = read_table(tmp_path / "t")
    check_table(table)
    assert table.parameters == ("x (text)", "elapsed (text)", "test (theirs) (text)")
    assert tuple(table.units) == ("iterations", "x", "elapsed", "test (theirs)")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("gnu-time", b"1" * 300_000),
        ("go", b"BenchmarkX" + b"-1" * 100_000 + b" 1"),
        ("perf", b"1 " * 200_000),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_long_lines_take_no_longer_than_their_length(tmp_path: Path, name: str, content: bytes) -> None:
    assert table_or_line(name, tmp_path / "t", content + b"\n") is None


def test_json_beside_a_nan_is_read_with_the_same_care(tmp_path: Path) -> None:
    """The parser that takes NaN also takes what the other refuses: huge numbers, halves of pairs, deep nesting."""
    huge = b"1" + b"0" * 400
    (tmp_path / "t").write_bytes(
        b'{"results": [{"command": "\\ud800", "times": [NaN, %s, 2], "mean": 1}]}' % huge
    )
    table = read_table(tmp_path / "t")
    assert table.frame["elapsed"].to_list() == [None, None, 2.0]
    assert table.frame["test"].to_list() == ["?"] * 3
    assert table_or_line("hyperfine", tmp_path / "t", b'{"results": [NaN,' + b"[" * 100_000) is None


def test_a_report_of_postmark_that_lacks_a_line_is_left_out(tmp_path: Path) -> None:
    sample = next(path for path in SAMPLES if path.name == "postmark-verbose.txt")
    lines = sample.read_text().splitlines(keepends=True)
    lacking = [line for line in lines[: len(lines) // 2] if "appended" not in line]
    (tmp_path / "t").write_text("".join(lines + lacking))
    table = read_table(tmp_path / "t")
    assert table.frame.height == 2
    (warning,) = table.warnings
    assert "cut short" in warning


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_a_byte_order_mark_changes_nothing(path: Path, tmp_path: Path) -> None:
    marked = tmp_path / path.name
    marked.write_bytes(codecs.BOM_UTF8 + path.read_bytes())
    assert formats_of(marked) == formats_of(path)
    if formats_of(path) != ["etude"]:
        assert read_table(marked).frame.equals(read_table(path).frame)


PERF = "\n Performance counter stats for 'true':\n\n{}\n\n       {} seconds time elapsed\n\n"


@pytest.mark.parametrize(
    ("counted", "seconds"),
    [
        ("    12.345      page-faults", "0.359006044"),
        (" 1.234.567      cycles   #  0,977 GHz", "0.359006044"),
        ("    350,96 msec task-clock", "0.359006044"),
        ("1.350,96 msec task-clock", "0.359006044"),
        ("1’234’567      cycles", "0.359006044"),
        ("        12      page-faults", "0,359006044"),
        ("        12      page-faults", "0,35 +- 0,01"),
    ],
)
def test_the_text_of_perf_in_another_locale_is_refused(counted: str, seconds: str, tmp_path: Path) -> None:
    path = tmp_path / "perf.txt"
    path.write_text(PERF.format(counted, seconds))
    with pytest.raises(InputError, match="LC_ALL=C"):
        read_table(path)


@pytest.mark.parametrize(
    ("counted", "seconds"),
    [("1,234,567      cycles", "1.234"), ("     49.33 msec task-clock", "1.234 +- 0.123")],
)
def test_the_text_of_perf_has_commas_between_thousands(counted: str, seconds: str, tmp_path: Path) -> None:
    path = tmp_path / "perf.txt"
    path.write_text(PERF.format(counted, seconds))
    assert len(read_table(path).frame) >= 1


@pytest.mark.parametrize(
    "line",
    [
        "0,62,msec,task-clock,624024,100,00,0,054,CPUs utilized",
        "CPU0,51,92,msec,cpu-clock,51919370,100.00,1.000,CPUs utilized",
        "S0-D0-C0,1,51,93,msec,cpu-clock,51934383,100.00,1.000,CPUs utilized",
        "     0.100149136,0,59,msec,task-clock,593909,100.00,0.006,CPUs utilized",
    ],
)
def test_a_counter_that_a_decimal_comma_cuts_in_two_has_no_value(line: str, tmp_path: Path) -> None:
    path = tmp_path / "perf.csv"
    path.write_text(f"# started on Sat Nov 21 12:46:11 2026\n\n{line}\n7,,page-faults,624024,100.00,,\n")
    table = module("perf").read(path)
    assert not {"task_clock", "cpu_clock"} & set(table.frame.columns)
    assert any("LC_ALL=C" in warning for warning in table.warnings)


@pytest.mark.parametrize(
    "name", ["jmh.csv", "google-benchmark.csv", "google-benchmark-aggregates.csv", "hyperfine.csv"]
)
def test_a_row_with_more_cells_than_names_is_left_out(name: str, tmp_path: Path) -> None:
    [sample] = [path for path in SAMPLES if path.name == name]
    lines = sample.read_text().splitlines()
    last = next(line for line in reversed(lines) if re.search(r"[0-9]\.[0-9]", line))
    above = [line for line in lines if line is not last]
    path = tmp_path / name
    path.write_text("\n".join([*above, re.sub(r"([0-9])\.([0-9])", r"\1,\2", last)]) + "\n")
    shorter = tmp_path / "shorter" / name
    shorter.parent.mkdir()
    shorter.write_text("\n".join(above) + "\n")
    table = read_table(path)
    assert table.frame.equals(read_table(shorter).frame)
    assert UNFITTING in table.warnings


def test_a_cut_line_of_aggregates_is_told(tmp_path: Path) -> None:
    [sample] = [path for path in SAMPLES if path.name == "google-benchmark-aggregates.csv"]
    path = tmp_path / sample.name
    path.write_bytes(sample.read_bytes()[:-3])
    assert len(read_table(path).warnings) == len(read_table(sample).warnings) + 1


def test_a_line_of_a_go_benchmark_that_output_cut_in_two_is_told(tmp_path: Path) -> None:
    path = tmp_path / "go.txt"
    path.write_text("BenchmarkA-8   \t 100\t  5 ns/op\nBenchmarkB-8   \tlogged\n     100\t  7 ns/op\n")
    table = read_table(path)
    assert table.frame["test"].to_list() == ["A"]
    assert any("BenchmarkB-8" in warning for warning in table.warnings)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("hyperfine-pipe.md", " ± ", "x ± "),
        ("hyperfine.csv", "0.0", "0,0"),
        ("hyperfine.csv", ",0.0", ",nan0"),
        ("stress-ng.yaml", "bogo-ops-per-second-real-time: 9", "bogo-ops-per-second-real-time: ,9"),
        ("fio-terse5.txt", ";0;0;", ";nan;0;"),
    ],
)
def test_what_is_lost_of_a_damaged_figure_is_told(name: str, old: str, new: str, tmp_path: Path) -> None:
    sample = DATA / name
    path = tmp_path / name
    text = sample.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    table = module(format_of(sample)).read(path)
    assert set(table.warnings) - set(read_table(sample).warnings)


def test_a_table_of_which_no_row_fits_is_refused_with_that_reason(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(re.sub(r"([0-9])\.([0-9])", r"\1,\2", (DATA / "hyperfine.csv").read_text()))
    with pytest.raises(InputError, match=UNFITTING):
        read_table(path)


@pytest.mark.parametrize("name", ["b.tar.gz", "b.tar.zst"])
def test_a_bundle_is_named_as_one_and_not_as_a_compressed_file(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"\x1f\x8b" if name.endswith("gz") else b"\x28\xb5\x2f\xfd")
    with pytest.raises(InputError, match=f"{name}: is a bundle"):
        read_table(str(tmp_path / name))


@pytest.mark.parametrize(
    "text", ["test,delta\na,1\na,2\na,x3\n", "delta\n1\n2\nx3\n", "os,delta\nl,1\nl,2\nm,x3\n"]
)
def test_a_cell_that_spoils_the_only_column_of_numbers_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(InputError, match=r"a\.csv.*row 4"):
        read_table(tmp_path / "a.csv")


def test_a_spoilt_column_beside_others_is_text(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("test,delta,ms\na,1,3\na,x,4\n")
    assert {"ms", "delta"} <= set(read_table(tmp_path / "a.csv").frame.columns)
