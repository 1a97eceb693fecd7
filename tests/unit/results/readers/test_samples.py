"""What stands in the sample files is what the tables hold."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from etude.errors import InputError
from etude.results import readers
from etude.results.readers import read_table
from etude.results.table import Table
from support.sampled import DATA, MODULES, SAMPLES, check_table, format_of, module


def sample(name: str) -> Table:
    return read_table(DATA / name)


def column(table: Table, name: str) -> list[Any]:
    return table.frame[name].to_list()


def near(values: list[float]) -> Any:
    return pytest.approx(values, rel=1e-12, abs=0)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_a_sample_is_claimed_by_its_own_format_only(path: Path) -> None:
    head = path.read_bytes()[:65536]
    claims = [name for name in MODULES if module(name).detect(path, head)]
    general = [name for name in claims if getattr(module(name), "GENERAL", False)]
    assert (sorted(set(claims) - set(general)) or general) == [format_of(path)]


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_a_sample_is_a_tidy_table(path: Path) -> None:
    table = read_table(path)
    check_table(table)
    assert table.label == str(path)


def test_every_format_has_a_sample_and_is_known_by_its_name() -> None:
    assert {format_of(path) for path in SAMPLES} == set(MODULES)
    assert set(readers._points()) >= set(MODULES)
    assert {name: module(name).NAME for name in MODULES} == {name: name for name in MODULES}


def test_gnu_time_says_times_in_hundredths_and_memory_in_kibibytes() -> None:
    table = sample("time-default.txt")
    assert column(table, "elapsed") == [0.01, 0.01, 0.0, 0.0]
    assert column(table, "peak_memory") == [1660 * 1024, 1700 * 1024, 1008 * 1024, 1632 * 1024]
    assert column(table, "cpu") == [8, 0, 86, 0]
    assert column(table, "minor_faults") == [99, 98, 73, 85]
    assert column(table, "status") == [0, 0, 1, 137]
    assert column(table, "kept") == [True, True, False, False]
    assert any(line.startswith("time-default: ") and "status 137" in line for line in table.warnings)


def test_gnu_time_with_v_and_p() -> None:
    verbose, posix = sample("time-v.txt"), sample("time-p.txt")
    assert column(verbose, "command") == ["sleep 0.01", "sleep 0.01", "sh -c exit 3"]
    assert column(verbose, "trial") == [1, 2, 1]
    assert column(verbose, "status") == [0, 0, 3]
    assert column(verbose, "voluntary_switches") == [2, 2, 1]
    assert column(posix, "elapsed") == [0.02, 0.01, 0.0]
    assert posix.units == {"elapsed": "s", "user": "s", "system": "s"}


def test_long_times_of_gnu_time_have_minutes_and_hours(tmp_path: Path) -> None:
    line = "1.50user 2.25system {}elapsed 0%CPU (0avgtext+0avgdata 4maxresident)k\n"
    line += "1inputs+2outputs (3major+4minor)pagefaults 0swaps\n"
    (tmp_path / "t").write_text(line.format("1:02:03") + line.format("62:03.50") + line.format("0:00.00"))
    assert column(read_table(tmp_path / "t"), "elapsed") == [3723.0, 3723.5, 0.0]


def test_postmark_reports() -> None:
    verbose, terse = sample("postmark-verbose.txt"), sample("postmark-terse.txt")
    assert column(verbose, "created") == [157, 157]
    assert column(verbose, "created_alone") == [50, 50]
    assert column(verbose, "deleted_mixed") == [93, 93]
    assert column(verbose, "bytes_read") == near([588.12 * 1024] * 2)
    assert column(verbose, "written_throughput") == near([1.02 * 1024**2] * 2)
    assert column(terse, "transactions_rate") == [200, 200]
    assert column(terse, "written_throughput") == [1067399, 1067399]
    assert set(terse.units) < set(verbose.units)
    assert verbose.units["bytes_read"] == "B"
    assert verbose.kinds["transactions_rate"] == "rate"


def test_hyperfine_1_has_a_row_for_each_time() -> None:
    table = sample("hyperfine-1-parameters.json")
    document = json.loads((DATA / "hyperfine-1-parameters.json").read_text())
    assert column(table, "elapsed") == [t for r in document["results"] for t in r["times"]]
    assert column(table, "status") == [c for r in document["results"] for c in r["exit_codes"]]
    assert set(column(table, "ms")) == {"0.001", "0.002"}
    assert table.parameters == ("ms",)
    assert column(table, "kept") == [c == 0 for c in column(table, "status")]
    assert "user" not in table.units


def test_hyperfine_2_has_a_measurement_for_each_run() -> None:
    table = sample("hyperfine-2.json")
    assert column(table, "elapsed") == [0.0112, 0.0115]
    assert column(table, "user") == [0.0004, 0.0005]
    assert column(table, "peak_memory") == [1765376, 1769472]
    assert column(table, "ms") == ["10", "10"]
    assert column(table, "kept") == [True, False]


def test_without_single_times_hyperfine_is_a_table_of_summaries() -> None:
    table = sample("hyperfine-summaries.json")
    assert table.summary_only
    row = table.frame.row(0, named=True)
    assert row == {
        "test": "make",
        "metric": "elapsed",
        "count": 3,
        "mean": 2.5,
        "deviation": 0.25,
        "median": 2.4,
        "minimum": 2.25,
        "maximum": 3.0,
    }


def test_pyperf_values_are_kept_and_warm_ups_are_not() -> None:
    table = sample("pyperf.json")
    document = json.loads((DATA / "pyperf.json").read_text())
    runs = [run for b in document["benchmarks"] for run in b["runs"] if "values" in run]
    kept = table.frame.filter(table.frame["kept"])
    assert kept["elapsed"].to_list() == [value for run in runs for value in run["values"]]
    assert table.frame.height == kept.height + sum(len(run["warmups"]) for run in runs)
    assert kept["test"].unique(maintain_order=True).to_list() == ["join", "split"]
    assert sample("pyperf-memory.json").units == {"memory": "B"}


def test_pytest_benchmark_rounds_or_summaries() -> None:
    table, summaries = sample("pytest-benchmark.json"), sample("pytest-benchmark-summaries.json")
    document = json.loads((DATA / "pytest-benchmark.json").read_text())
    assert column(table, "elapsed") == [v for b in document["benchmarks"] for v in b["stats"]["data"]]
    assert column(table, "n") == ["10"] * 4 + ["20"] * 4
    assert summaries.summary_only
    document = json.loads((DATA / "pytest-benchmark-summaries.json").read_text())
    assert summaries.frame["deviation"].to_list() == [b["stats"]["stddev"] for b in document["benchmarks"]]


def test_asv_has_samples_and_values_by_parameter() -> None:
    table = sample("asv.json")
    frame = table.frame.filter(table.frame["test"] == "b.Suite.track_length")
    assert frame["value"].to_list() == [10, 10, 20, 20]
    assert frame["param1"].to_list() == ["10", "10", "20", "20"]
    assert frame["param2"].to_list() == ["'a'", "'b'", "'a'", "'b'"]
    assert table.units == {"elapsed": "s", "value": "1", "memory": "B", "peak_memory": "B"}
    assert table.frame.filter(table.frame["test"] == "b.time_fails")["kept"].to_list() == [False]


def test_asv_of_version_1() -> None:
    table = sample("asv-1.json")
    assert (
        column(table, "test") == ["suite.time_plain"] + ["suite.track_size"] * 2 + ["suite.time_sampled"] * 2
    )
    assert column(table, "elapsed") == [0.25, None, None, 0.5, 0.75]
    assert column(table, "value") == [None, 10, None, None, None]


def test_google_benchmark_repetitions_are_trials_and_aggregates_are_not() -> None:
    table = sample("google-benchmark.json")
    document = json.loads((DATA / "google-benchmark.json").read_text())
    single = [b for b in document["benchmarks"] if b["run_type"] == "iteration" and "real_time" in b]
    scale = {"ns": 1e9, "us": 1e6}
    expected = [b["real_time"] / scale[b["time_unit"]] for b in single if not b.get("error_occurred")]
    assert table.frame.filter(table.frame["kept"])["elapsed"].to_list() == expected
    assert column(table, "trial")[:3] == [1, 2, 3]
    assert column(table, "waste")[0] == 0.25
    assert table.units["bytes_per_second"] == "B/s"
    assert any(line.startswith("Broken: ") and line.endswith(": no device") for line in table.warnings)


def test_google_benchmark_with_aggregates_only_is_a_table_of_summaries() -> None:
    table = sample("google-benchmark-aggregates.json")
    assert table.summary_only
    document = json.loads((DATA / "google-benchmark-aggregates.json").read_text())
    by = {
        b["aggregate_name"]: b["cpu_time"] / 1e9
        for b in document["benchmarks"]
        if b["run_name"].startswith("Copy/64/")
    }
    frame = table.frame.filter(
        (table.frame["metric"] == "cpu_time") & (table.frame["test"] == "Copy/64/repeats:3")
    )
    row = frame.row(0, named=True)
    assert [row["mean"], row["median"], row["deviation"]] == [by["mean"], by["median"], by["stddev"]]
    assert row["count"] == 3


def test_go_lines_have_any_pairs_of_value_and_unit() -> None:
    table = sample("go.txt")
    assert column(table, "test") == ["Join/words=small"] * 3 + ["Join/words=large"] * 3 + ["Nothing"] * 3
    assert column(table, "elapsed")[:2] == [637.8 / 1e9, 663.4 / 1e9]
    assert column(table, "throughput")[0] == 94.07e6
    assert column(table, "allocated")[:2] == [133, 128]
    assert column(table, "hits/op")[0] == 0.5
    assert column(table, "gomaxprocs") == ["2"] * 9
    assert column(table, "words")[0] == "small"
    assert column(table, "pkg")[0] == "example.org/parts"


def test_the_history_of_github_action_benchmark() -> None:
    table = sample("github-action-benchmark-data.js")
    assert column(table, "test") == ["join", "size", "join", "score"]
    assert column(table, "trial") == [1, 1, 2, 1]
    assert column(table, "elapsed") == [1.5e-6, None, 1.25e-6, None]
    assert column(table, "memory") == [None, 2.5e6, None, None]
    assert column(table, "commit") == ["aaaa", "aaaa", "bbbb", "bbbb"]
    assert table.units["value"] == "points"
    assert table.kinds["value"] == "rate"


def test_fio_has_a_row_a_job() -> None:
    table = sample("fio.json")
    document = json.loads((DATA / "fio.json").read_text())
    mix = document["jobs"][1]
    assert column(table, "test") == ["write", "mix"]
    assert column(table, "read_iops") == [None, mix["read"]["iops"]]
    assert column(table, "write_throughput") == [job["write"]["bw_bytes"] for job in document["jobs"]]
    assert column(table, "read_completion_p99")[1] == mix["read"]["clat_ns"]["percentile"]["99.000000"] / 1e9
    assert column(table, "read_latency_mean")[1] == mix["read"]["lat_ns"]["mean"] / 1e9
    assert column(table, "elapsed") == [job["job_runtime"] / 1e3 for job in document["jobs"]]
    assert column(table, "bs") == ["64k", "4k"]
    assert not [name for name in table.units if name.startswith("trim")]


def test_fio_json_is_found_after_its_normal_output() -> None:
    assert column(sample("fio-normal-and-json.txt"), "read_operations") == [64]
    assert column(sample("fio-json-plus.json"), "read_operations") == [64]


def test_pgbench_logs() -> None:
    plain, tries = sample("pgbench.log"), sample("pgbench-tries.log")
    assert column(plain, "elapsed") == [t / 1e6 for t in (1994, 5737, 798, 646, 1208, 1224)]
    assert plain.units == {"elapsed": "s"}
    assert column(tries, "kept") == [True] * 7 + [False, False, True]
    assert column(tries, "schedule_lag")[:2] == [108 / 1e6, 155 / 1e6]
    assert column(tries, "client")[2] == "1"
    intervals = sample("pgbench-intervals-throttled.log")
    assert column(intervals, "transactions") == [38, 92]
    assert column(intervals, "latency_mean") == [120609 / 38 / 1e6, 267250 / 92 / 1e6]
    assert column(intervals, "lag_maximum") == [1859 / 1e6, 2388 / 1e6]
    assert "lag_sum" not in sample("pgbench-intervals.log").units


def test_the_printed_summary_of_pgbench() -> None:
    table = sample("pgbench-summary.txt")
    assert column(table, "tps") == [708.325476, 60.909501]
    assert column(table, "latency_mean") == [2.824 / 1e3, 4.227 / 1e3]
    assert column(table, "number_of_clients") == ["2", "1"]
    assert table.kinds["tps"] == "rate"


def test_sysbench_runs() -> None:
    cpu, memory, files = (sample(f"sysbench-{name}.txt") for name in ("cpu", "memory", "fileio"))
    assert column(cpu, "elapsed") == [2.004]
    assert column(cpu, "events") == [4891]
    assert column(cpu, "latency_p99") == [12.52 / 1e3]
    assert column(cpu, "threads") == ["2"]
    assert column(memory, "throughput") == [3056.18 * 2**20]
    assert column(files, "fsync_rate") == [342.62]
    assert column(files, "latency_p95") == [0.01 / 1e3]


def test_perf_stat_fields_with_any_separator() -> None:
    intervals, single = sample("perf-x-intervals.csv"), sample("perf-x.csv")
    assert column(intervals, "task_clock") == [0.59 / 1e3, None, 0.04 / 1e3]
    assert column(intervals, "interval_end") == [0.100149136, 0.200419687, 0.250521355]
    assert column(intervals, "page_faults") == [74, None, 0]
    (warning,) = (line for line in intervals.warnings if line.startswith("cycles: "))
    assert "<not supported>" in warning
    assert "(3 times)" in warning
    assert column(single, "task_clock") == [0.62 / 1e3]
    assert column(sample("perf-x-per-cpu.csv"), "place") == ["CPU0", "CPU1"]
    assert column(sample("perf-x-per-cpu.csv"), "context_switches") == [30, 58]
    assert column(sample("perf-x-per-core.csv"), "cpu_clock") == [51.93 / 1e3, 51.94 / 1e3]


def test_perf_stat_as_json_says_the_same() -> None:
    assert sample("perf-j-intervals.json").units == sample("perf-x-intervals.csv").units
    table = sample("perf-j-repeated.json")
    assert table.summary_only
    assert column(table, "mean") == [0.744362 / 1e3, 1, 0, 77]
    assert column(table, "error") == [2.14, 120.19, 0, 0.87]
    assert column(sample("perf-x-repeated.csv"), "error") == [5.70, 66.67, 0, 1.62]


def test_an_event_with_commas_is_one_event(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("12,,cpu/event=0x1,umask=0x2/u,100,50.00,,\n34,,cycles:u,100,100.00,,\n")
    table = read_table(tmp_path / "t")
    assert column(table, "cpu/event=0x1,umask=0x2/u") == [12]
    assert column(table, "cycles:u") == [34]
    assert [line.partition(": ")[0] for line in table.warnings] == ["cpu/event=0x1,umask=0x2/u"]


def test_filebench_summaries() -> None:
    new, old = sample("filebench-1.5.txt"), sample("filebench-1.4.txt")
    assert column(new, "operation_rate") == [200.5, 210.0]
    assert column(new, "throughput") == [12.5 * 2**20, 13 * 2**20]
    assert column(new, "latency_mean") == [0.25 / 1e3, 0.125 / 1e3]
    assert column(old, "cpu_per_operation") == [1201 / 1e6]


def test_tables_of_other_programs() -> None:
    table = sample("table.csv")
    assert column(table, "test") == ["tar"] * 3
    assert column(table, "trial") == [1, 2, 3]
    assert column(table, "time") == [1.25, 1.3, 0.4505]
    assert column(table, "peak_memory") == [2048 * 1024, 2049 * 1024, None]
    assert table.parameters == ("file system", "note")
    assert any(line.startswith("peak_memory_kib: 1 of 3 ") for line in table.warnings)
    tabs = sample("table.tsv")
    assert column(tabs, "worker") == [0, 1, 0, 1]
    assert column(tabs, "system") == [0.25, 0.25, 0.5, 0.25]
    assert column(tabs, "status") == [0, 0, 2, 0]


def test_dumps_of_getstats() -> None:
    table = sample("getstats-dump.txt")
    assert column(table, "test") == ["ext4.res", "ext4.res", "xfs.res"]
    assert column(table, "trial") == [1, 2, 1]
    assert column(table, "wait") == [7, 7, 6]
    assert column(table, "cpu") == [44, 45.1, 47.83]
    assert table.units["cpu"] == "%"


def test_auto_pilot_and_our_own() -> None:
    res, own = sample("autopilot.res"), sample("etude-results.jsonl")
    assert column(res, "worker") == [0, 1]
    assert column(res, "elapsed") == [12.5, 12.75]
    assert column(res, "peak_memory") == [4096, 8192]
    assert column(own, "status") == [0, 137]
    assert column(own, "command") == ["sh -c 'make -j2'"] * 2
    assert column(own, "elapsed") == [1.5, 0.25]
    assert column(own, "cycles") == [None, None]
    assert own.units["rate"] == "MB/s"


def test_the_samples_say_where_they_are_from() -> None:
    text = (DATA / "README.md").read_text()
    assert [path.name for path in SAMPLES if not re.search(rf"`{re.escape(path.name)}`", text)] == []


def first(table: Table) -> dict[str, Any]:
    return {name: value for name, value in table.frame.row(0, named=True).items() if value is not None}


def test_ab_prints_milliseconds_and_kibibytes() -> None:
    table = sample("ab.txt")
    row = first(table)
    assert (row["path"], row["concurrency"]) == ("/index.html", "4")
    assert (row["elapsed"], row["requests"], row["request_rate"]) == (0.19, 200, 1053.63)
    assert row["throughput"] == 4308.15 * 1024
    assert row["latency_mean"] == 3.796 / 1e3
    assert (row["latency_p95"], row["latency_maximum"]) == (9 / 1e3, 20 / 1e3)
    assert column(table, "bad_responses") == [None, 50]
    percentiles = first(sample("ab-percentiles.csv"))
    assert (percentiles["latency_p50"], percentiles["latency_maximum"]) == (2.406 / 1e3, 19.849 / 1e3)
    assert table.kinds["bad_responses"] == "cost"


def test_wrk_and_wrk2_print_units_with_each_figure() -> None:
    row = first(sample("wrk.txt"))
    assert (row["latency_mean"], row["latency_p99"]) == (10.09 / 1e3, 143.52 / 1e3)
    assert (row["requests"], row["request_rate"], row["elapsed"]) == (2423, 1206.78, 2.01)
    assert row["throughput"] == 4.82 * 2**20
    assert column(sample("wrk.txt"), "bad_responses") == [None, 2678]
    row = first(sample("wrk2.txt"))
    assert (row["latency_p50"], row["latency_p99.99"]) == (1.60 / 1e3, 11.57 / 1e3)
    assert row["throughput"] == 819.14 * 1024


def test_hey_prints_seconds() -> None:
    table = sample("hey.txt")
    row = first(table)
    assert (row["elapsed"], row["request_rate"], row["latency_p95"]) == (0.3171, 630.6174, 0.0163)
    assert len(table.warnings) == 1  # the second run had no answer
    requests = sample("hey-requests.csv")
    assert requests.frame.height == 20
    assert column(requests, "elapsed")[:3] == [0.0024, 0.0024, 0.0012]
    assert requests.attributes == ("http_status",)


def test_requests_of_hey_that_were_refused_are_not_kept(tmp_path: Path) -> None:
    text = (DATA / "hey-requests.csv").read_text().replace(",200,", ",503,", 2)
    (tmp_path / "t").write_text(text)
    assert column(read_table(tmp_path / "t"), "kept").count(False) == 2


def test_iperf3_counts_bits_and_is_read_in_bytes() -> None:
    tcp, udp, both = (sample(f"iperf3-{name}.json") for name in ("tcp", "udp", "bidir"))
    end = json.loads((DATA / "iperf3-tcp.json").read_text())["end"]
    assert column(tcp, "throughput") == [end["sum_received"]["bits_per_second"] / 8]
    assert column(tcp, "sent_retransmits") == [end["sum_sent"]["retransmits"]]
    assert column(tcp, "num_streams") == ["2"]
    assert column(udp, "jitter") == pytest.approx([0.028815759700950256 / 1e3])
    assert [line for line in udp.warnings if "Connection refused" in line]
    assert column(both, "reverse_throughput")[0] > 0


def test_stress_ng_has_a_row_a_stressor() -> None:
    table = sample("stress-ng.yaml")
    assert column(table, "test") == ["cpu", "matrix", "cpu"]
    assert column(table, "trial") == [1, 1, 2]
    assert column(table, "operation_rate") == [392.838717, 933.940547, 721.713777]
    assert column(table, "peak_memory")[0] == 6452 * 1024
    assert table.units["prod_matrix_ops_per_sec"] == "1/s"
    assert table.kinds["operation_rate"] == "rate"


@pytest.mark.parametrize("version", [2, 3, 4, 5])
def test_terse_lines_of_fio(version: int) -> None:
    table = sample(f"fio-terse{version}.txt")
    fields = (DATA / f"fio-terse{version}.txt").read_text().partition("\n")[0].split(";")
    row, at = first(table), 4 if version == 2 else 5
    direction = "write" if version == 3 else "read"
    at += 41 if version == 3 else 0
    assert row[f"{direction}_bytes"] == int(fields[at]) * 1024
    assert row[f"{direction}_throughput"] == int(fields[at + 1]) * 1024
    assert row[f"{direction}_iops"] == int(fields[at + 2])
    assert row[f"{direction}_completion_mean"] == float(fields[at + 10]) / 1e6
    assert row[f"{direction}_completion_p99"] == float(fields[at + 24].split("=")[1]) / 1e6
    assert column(table, "worker") == list(range(2 if version == 5 else 1))
    assert "trim_iops" not in row


def test_the_normal_output_of_fio() -> None:
    table = sample("fio-text.txt")
    row = first(table)
    assert (row["read_iops"], row["write_iops"]) == (16.5e3, 15.5e3)
    assert row["read_throughput"] == 64.5 * 2**20
    assert row["read_completion_mean"] == 47815.46 / 1e9
    assert (row["read_operations"], row["write_operations"]) == (132, 124)
    assert (row["read_runtime"], row["status"], row["kept"]) == (8 / 1e3, 0, True)
    assert (column(table, "trial"), column(table, "status")) == ([1, 2], [0, 22])
    assert column(table, "kept") == [True, False]
    assert column(table, "read_completion_maximum")[1] == 6209.1e3 / 1e9


def test_logs_of_fio_are_told_by_their_names(tmp_path: Path) -> None:
    latencies, bandwidths = sample("fio_clat.2.log"), sample("fio_bw.log")
    assert column(latencies, "completion")[:2] == [3787024 / 1e9, 153083 / 1e9]
    assert column(latencies, "direction")[2:5] == ["read", "write", "read"]
    assert set(column(latencies, "worker")) == {1}
    assert column(bandwidths, "throughput")[0] == 1081 * 1024
    (tmp_path / "log").write_bytes((DATA / "fio_bw.log").read_bytes())
    with pytest.raises(InputError, match=r"/log: .*_clat\.log"):
        read_table(tmp_path / "log")
    (tmp_path / "old_lat.log").write_text("1, 250, 0, 4096\n")
    assert column(read_table(tmp_path / "old_lat.log"), "elapsed") == [250 / 1e6]


def test_perf_stat_for_people_says_the_same() -> None:
    table = sample("perf-text.txt")
    assert column(table, "task_clock") == [0.96 / 1e3] * 2
    assert column(table, "elapsed") == [0.000006044, 0.005421443]
    assert column(table, "user") == [0.0, 0.001851]
    repeated = sample("perf-text-r.txt").frame
    assert repeated["mean"].to_list() == [0.85 / 1e3, 0, 0, 50, 0.00235]
    assert repeated["error"].to_list() == [4.65, 0, 0, 0.67, 68.34]
    assert repeated["count"].to_list() == [3] * 5
    assert column(sample("perf-text-I.txt"), "interval_end") == [0.100160387, 0.20389826, 0.260258912]
    assert column(sample("perf-text-A.txt"), "context_switches")[:2] == [191, 240]


def test_counts_of_perf_with_commas_and_shares_of_the_time(tmp_path: Path) -> None:
    (tmp_path / "t").write_text(
        " Performance counter stats for 'true':\n\n"
        "     1,234,567      cycles:u       #    2.1 GHz       (83.30%)\n"
        "       12,345.67 msec task-clock   #    1.000 CPUs utilized\n"
    )
    table = read_table(tmp_path / "t")
    assert first(table)["cycles:u"] == 1234567
    assert first(table)["task_clock"] == 12345.67 / 1e3
    assert [line.partition(":")[0] for line in table.warnings] == ["cycles"]


def test_markdown_of_hyperfine_is_a_table_of_summaries() -> None:
    table = sample("hyperfine-pipe.md").frame
    assert table["test"].to_list() == ["true", "sleep 0.002 | cat"]
    assert table["mean"].to_list() == [0.5 / 1e3, 5.0 / 1e3]
    assert table["deviation"].to_list() == [0.7 / 1e3, 1.1 / 1e3]
    assert sample("hyperfine-p.csv").frame["d"].unique(maintain_order=True).to_list() == ["1", "2", "3"]


def test_google_benchmark_as_csv_says_what_its_json_says() -> None:
    table, summaries = sample("google-benchmark.csv"), sample("google-benchmark-aggregates.csv")
    kept = table.frame.filter(table.frame["kept"])
    names = ["Copy/64", "Copy/512", "Th/threads:1", "Th/threads:2", "Tm/repeats:2"]
    assert kept["test"].unique(maintain_order=True).to_list() == names
    assert kept["elapsed"].to_list()[0] == 112.113 / 1e9
    assert kept["elapsed"].to_list()[-1] == 1.77062e-06 / 1e3
    assert kept["bytes_per_second"][0] == 3.20798e09
    assert table.frame.filter(~table.frame["kept"])["test"].to_list() == ["Broken"] * 3
    assert summaries.summary_only


def test_go_test_as_json_says_what_its_text_says() -> None:
    table = sample("go-json.txt")
    assert column(table, "elapsed")[:3] == [87.96 / 1e9, 60.87 / 1e9, 94.56 / 1e9]
    assert set(column(table, "pkg")) == {"example.org/parts", "example.org/parts/sub"}
    assert column(table, "test").count("Join/words=20") == 3


def test_the_directory_of_criterion_holds_its_benchmarks(tmp_path: Path) -> None:
    for name in ("sum", "sorts/stable/10"):
        place = tmp_path / name / "new"
        place.mkdir(parents=True)
        (place / "sample.json").write_bytes((DATA / "criterion-sample.json").read_bytes())
        (place / "benchmark.json").write_text(json.dumps({"full_id": name}))
    assert column(read_table(tmp_path), "test") == ["sum"] * 10 + ["sorts/stable/10"] * 10
    estimates = sample("criterion-estimates.json").frame
    assert estimates["metric"].to_list() == ["elapsed", "slope"]
    assert estimates["mean"][0] == 165.10390370486602 / 1e9


def test_jmh_has_a_row_an_iteration_or_a_sample() -> None:
    table, sampled, scores = sample("jmh.json"), sample("jmh-sampled.json"), sample("jmh.csv")
    document = json.loads((DATA / "jmh.json").read_text())
    raw = [v * 1e3 for b in document[:2] for fork in b["primaryMetric"]["rawData"] for v in fork]
    assert [v for v in column(table, "operation_rate") if v is not None] == pytest.approx(raw)
    assert table.units["gc.alloc.rate.norm"] == "B"
    (benchmark,) = json.loads((DATA / "jmh-sampled.json").read_text())
    pairs = [p for f in benchmark["primaryMetric"]["rawDataHistogram"] for i in f for p in i]
    assert sampled.frame.height == sum(count for _, count in pairs)
    assert sum(column(sampled, "elapsed")) == pytest.approx(sum(v * n for v, n in pairs) / 1e6)
    assert scores.summary_only
    assert scores.frame["mean"].to_list() == [84012.373286 * 1e3, 22.741677 / 1e9]
