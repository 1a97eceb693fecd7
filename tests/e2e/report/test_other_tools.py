"""Tools are run, and what they write is read: each figure is compared with another output of the same run."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from etude.results.readers import formats_of, read_table
from etude.results.table import Table
from support.sampled import check_table

pytestmark = pytest.mark.beside

BODY = b"x" * 1000


class Answer(BaseHTTPRequestHandler):
    """Every path but /missing has a body."""

    def do_GET(self) -> None:
        self.send_response(404 if self.path == "/missing" else 200)
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as found:
        thread = threading.Thread(target=found.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{found.server_port}"
        found.shutdown()


def run(place: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def read(path: Path, name: str, text: str | None = None) -> Table:
    if text is not None:
        path.write_text(text)
    assert formats_of(str(path)) == [name]
    table = read_table(path)
    check_table(table)
    return table


@pytest.mark.needs_program("ab", package="apache2-utils")
def test_ab(tmp_path: Path, server: str) -> None:
    printed = run(
        tmp_path, "ab", "-q", "-n", "60", "-c", "3", "-g", "each.tsv", "-e", "shares.csv", f"{server}/"
    )
    report, requests = read(tmp_path / "t", "ab", printed), read(tmp_path / "each.tsv", "ab")
    shares = read(tmp_path / "shares.csv", "ab")
    (row,) = report.frame.to_dicts()
    assert row["requests"] == requests.frame.height == 60
    assert row["concurrency"] == "3"
    assert requests.frame["elapsed"].max() == pytest.approx(row["latency_maximum"], abs=1.1e-3)
    assert requests.frame["elapsed"].mean() == pytest.approx(row["latency_mean"], abs=2e-3)
    assert shares.frame["latency_maximum"][0] == pytest.approx(row["latency_maximum"], abs=1.1e-3)


@pytest.mark.needs_program("wrk")
def test_wrk(tmp_path: Path, server: str) -> None:
    printed = "".join(
        run(tmp_path, "wrk", "-t1", "-c2", "-d1s", "--latency", f"{server}/{path}")
        for path in ("", "missing")
    )
    rows = read(tmp_path / "t", "wrk", printed).frame.to_dicts()
    assert [row["connections"] for row in rows] == ["2", "2"]
    for row in rows:
        assert row["requests"] / row["elapsed"] == pytest.approx(row["request_rate"], rel=0.02)
        assert row["transferred"] / row["elapsed"] == pytest.approx(row["throughput"], rel=0.02)
        assert row["latency_p50"] <= row["latency_p99"] <= row["latency_maximum"] * 1.001
    assert rows[0]["bad_responses"] is None
    assert rows[1]["bad_responses"] == rows[1]["requests"]


@pytest.mark.needs_program("hey")
def test_hey(tmp_path: Path, server: str) -> None:
    (row,) = read(tmp_path / "t", "hey", run(tmp_path, "hey", "-n", "60", "-c", "3", server)).frame.to_dicts()
    assert row["status_200"] == 60
    assert 60 / row["elapsed"] == pytest.approx(row["request_rate"], rel=0.01)
    each = run(tmp_path, "hey", "-n", "20", "-c", "2", "-o", "csv", f"{server}/missing")
    requests = read(tmp_path / "each", "hey", each).frame
    assert requests["kept"].to_list() == [False] * 20


@pytest.mark.needs_program("iperf3")
def test_iperf3(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = ["iperf3", "-s", "-1", "-p", port, "--forceflush"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as listening:
        assert listening.stdout is not None
        next(line for line in listening.stdout if "Server listening" in line)
        printed = run(tmp_path, "iperf3", "-c", "127.0.0.1", "-p", port, "-t", "1", "-J")
    (row,) = read(tmp_path / "t", "iperf3", printed).frame.to_dicts()
    assert row["bytes"] / row["elapsed"] == pytest.approx(row["throughput"], rel=1e-3)
    assert row["protocol"] == "TCP"


@pytest.mark.needs_program("stress-ng")
def test_stress_ng(tmp_path: Path) -> None:
    options = ("--cpu", "1", "--cpu-ops", "20", "--metrics", "-Y", "t.yaml")
    run(tmp_path, "stress-ng", *options)
    (row,) = read(tmp_path / "t.yaml", "stress-ng").frame.to_dicts()
    assert row["test"] == "cpu"
    assert row["operations"] >= 20
    assert row["operations"] / row["elapsed"] == pytest.approx(row["operation_rate"], rel=1e-3)


@pytest.mark.needs_program("fio")
def test_the_outputs_of_one_run_of_fio_say_the_same(tmp_path: Path) -> None:
    job = ("--name=mix", "--rw=randrw", "--bs=4k", "--size=1M", f"--filename={tmp_path}/data", "--randseed=1")
    log = ("--write_lat_log=ops", "--output-format=normal,json,terse")
    printed = run(tmp_path, "fio", *job, *log)
    start, end = printed.index("{\n"), printed.rindex("}\n") + 2
    terse = re.search(r"(?m)^3;fio-.*$", printed)
    assert terse is not None
    document = json.loads(printed[start:end])
    (expected,) = read(tmp_path / "j", "fio", printed[start:end]).frame.to_dicts()
    (short,) = read(tmp_path / "s", "fio", terse[0] + "\n").frame.to_dicts()
    text = printed[:start] + printed[end:].replace(terse[0], "")
    (rounded,) = read(tmp_path / "n", "fio", text).frame.to_dicts()
    for name in (
        "read_throughput",
        "write_iops",
        "read_completion_mean",
        "write_bytes",
        "write_latency_maximum",
    ):
        assert short[name] == pytest.approx(expected[name], rel=0.02, abs=1e-6), name
        assert rounded[name] == pytest.approx(expected[name], rel=0.02, abs=1e-6), name
    operations = read(tmp_path / "ops_clat.1.log", "fio").frame
    reads = operations.filter(operations["direction"] == "read")
    assert reads.height == document["jobs"][0]["read"]["total_ios"]
    assert reads["completion"].mean() == pytest.approx(expected["read_completion_mean"], rel=1e-3)


@pytest.mark.needs_program("hyperfine")
def test_the_exports_of_one_run_of_hyperfine_say_the_same(tmp_path: Path) -> None:
    exports = ("--export-json", "t.json", "--export-csv", "t.csv", "--export-markdown", "t.md")
    run(tmp_path, "hyperfine", "-N", "-r", "3", *exports, "sleep 0.01", "true")
    each = read(tmp_path / "t.json", "hyperfine").frame
    table, rounded = (read(tmp_path / f"t.{ending}", "hyperfine").frame for ending in ("csv", "md"))
    means = [each.filter(each["test"] == test)["elapsed"].mean() for test in ("sleep 0.01", "true")]
    assert table.filter(table["metric"] == "elapsed")["mean"].to_list() == pytest.approx(means)
    assert rounded["mean"].to_list() == pytest.approx(means, abs=1e-4)


@pytest.mark.needs_program("perf", package="linux-perf")
def test_perf_stat(tmp_path: Path) -> None:
    events = ("-e", "task-clock,page-faults,duration_time")
    run(tmp_path, "perf", "stat", *events, "-o", "text", "true")
    run(tmp_path, "perf", "stat", *events, "-x", ";", "-o", "fields", "true")
    text, fields = (read(tmp_path / name, "perf") for name in ("text", "fields"))
    assert set(fields.units) <= set(text.units)
    assert {"task_clock", "page_faults", "elapsed"} <= set(text.units)
    assert text.frame["page_faults"][0] == pytest.approx(fields.frame["page_faults"][0], abs=20)
    run(tmp_path, "perf", "stat", *events, "-r", "3", "-o", "repeated", "true")
    assert set(read(tmp_path / "repeated", "perf").frame["count"]) == {3}


@pytest.mark.needs_program("go", package="golang-go")
def test_go_test(tmp_path: Path) -> None:
    (tmp_path / "go.mod").write_text("module example.org/m\ngo 1.18\n")
    (tmp_path / "m_test.go").write_text(
        'package m\nimport "testing"\nfunc BenchmarkA(b *testing.B) { for i := 0; i < b.N; i++ {} }\n'
    )
    options = ("-bench", ".", "-count", "2", "-benchtime", "100x")
    text = read(tmp_path / "text", "go", run(tmp_path, "go", "test", *options))
    events = read(tmp_path / "events", "go", run(tmp_path, "go", "test", "-json", *options))
    assert text.units == events.units
    assert text.frame.select("test", "trial", "pkg").equals(events.frame.select("test", "trial", "pkg"))
