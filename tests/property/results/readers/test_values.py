"""What a format's values say is what the table says: each format is written with values, and read back."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etude.results.readers import read_table
from etude.results.table import Table
from support.profiles import examples

Values = list[float]
TIMES = st.lists(st.floats(1e-9, 1e6, allow_nan=False), min_size=1, max_size=6)
COUNTS = st.lists(st.integers(1, 10**9), min_size=1, max_size=6)
HUNDREDTHS = st.lists(st.integers(0, 10**7).map(lambda n: n / 100), min_size=1, max_size=6)


def hyperfine(values: Values) -> str:
    return json.dumps({"results": [{"command": "a", "mean": 1, "times": values}]})


def hyperfine_2(values: Values) -> str:
    runs = [{"time_wall_clock": {"value": v, "unit": "second"}, "exit_code": 0} for v in values]
    return json.dumps({"results": [{"command": "a", "measurements": runs}]})


def pyperf(values: Values) -> str:
    return json.dumps(
        {"benchmarks": [{"metadata": {"name": "a"}, "runs": [{"values": values}]}], "version": "1.0"}
    )


def pytest_benchmark(values: Values) -> str:
    return json.dumps({"machine_info": {}, "benchmarks": [{"fullname": "a", "stats": {"data": values}}]})


def asv(values: Values) -> str:
    columns = ["result", "params", "samples"]
    results = {"a.time_a": [[values[0]], [], [values]]}
    return json.dumps({"commit_hash": "a", "env_name": "a", "result_columns": columns, "results": results})


def google(values: Values) -> str:
    rows = [
        {
            "name": "a",
            "run_name": "a",
            "run_type": "iteration",
            "real_time": v,
            "cpu_time": v,
            "time_unit": "ms",
        }
        for v in values
    ]
    return json.dumps({"context": {"num_cpus": 1}, "benchmarks": rows})


def github(values: Values) -> str:
    commits = [
        {"commit": {"id": "a"}, "benches": [{"name": "a", "value": v, "unit": "us/iter"}]} for v in values
    ]
    return "window.BENCHMARK_DATA = " + json.dumps({"lastUpdate": 1, "entries": {"s": commits}})


def fio(values: Values) -> str:
    return "\n".join(
        json.dumps({"fio version": "fio-3.33", "jobs": [{"jobname": "a", "error": 0, "job_runtime": v}]})
        for v in values
    )


def go(values: Values) -> str:
    return "".join(f"BenchmarkA-2 \t 10\t {v!r} ns/op\t 1 B/op\n" for v in values)


def google_csv(values: Values) -> str:
    heading = "name,iterations,real_time,cpu_time,time_unit,bytes_per_second,items_per_second,label\n"
    return heading + "".join(f'"a",10,{v!r},1,us,,,"label {n}"\n' for n, v in enumerate(values))


def go_json(values: Values) -> str:
    event = {"Action": "output", "Package": "p"}
    pieces = [piece for v in values for piece in ("BenchmarkA-2 \t", f" 10\t {v!r} ns/op\n")]
    lines = [json.dumps(event | {"Output": piece}, separators=(",", ":")) for piece in pieces]
    return "\n".join(lines) + "\n"


def criterion(values: Values) -> str:
    heading = (
        "group,function,value,throughput_num,throughput_type,sample_measured_value,unit,iteration_count\n"
    )
    return heading + "".join(f"g,f,1,,,{v!r},ns,4\n" for v in values)


def jmh(values: Values) -> str:
    metric = {"score": 1, "scoreUnit": "us/op", "rawData": [values[:1], values[1:]]}
    return json.dumps([{"benchmark": "a", "mode": "avgt", "primaryMetric": metric}])


def iperf3(values: Values) -> str:
    runs = [
        {"start": {"version": "iperf 3.1"}, "end": {"sum_received": {"seconds": 1, "bits_per_second": v}}}
        for v in values
    ]
    return "\n".join(map(json.dumps, runs))


def stress_ng(values: Values) -> str:
    head = "---\nsystem-info:\n      stress-ng-version: 0.15\nmetrics:\n"
    return "".join(f"{head}    - stressor: cpu\n      wall-clock-time: {v:.2f}\n\n...\n" for v in values)


def ab(values: Values) -> str:
    """One a second: within one their order is not known."""
    lines = [f"Mon\t{n}\t0\t0\t{v!r}\t0\n" for n, v in enumerate(values)]
    return "starttime\tseconds\tctime\tdtime\tttime\twait\n" + "".join(lines)


def hey(values: Values) -> str:
    heading = "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset\n"
    return heading + "".join(f"{v:.2f},0,0,0,0,0,200,{n}\n" for n, v in enumerate(values))


def wrk(values: Values) -> str:
    return "".join(
        f"Running 1s test @ http://a\n  Latency  {v:.2f}ms  1.00us  2.00s  50.00%\nRequests/sec:  1.0\n"
        for v in values
    )


def perf_text(values: Values) -> str:
    return "".join(f" Performance counter stats for 'a':\n\n  {v:.2f} msec task-clock\n" for v in values)


def table(values: Values) -> str:
    return "name,time [ns]\n" + "".join(f"a,{v!r}\n" for v in values)


def time_default(values: Values) -> str:
    return "".join(
        f"1.00user 0.50system {elapsed(v)}elapsed 1%CPU (0avgtext+0avgdata 8maxresident)k\n"
        "0inputs+0outputs (0major+1minor)pagefaults 0swaps\n"
        for v in values
    )


def time_verbose(values: Values) -> str:
    return "".join(
        f'\tCommand being timed: "a: b"\n\tUser time (seconds): 1.00\n'
        f"\tElapsed (wall clock) time (h:mm:ss or m:ss): {elapsed(v)}\n\tExit status: 0\n"
        for v in values
    )


def time_posix(values: Values) -> str:
    return "".join(f"real {v:.2f}\nuser 0.25\nsys 0.50\n" for v in values)


def elapsed(value: float) -> str:
    """As GNU time prints it: hundredths below an hour, whole seconds from there on."""
    hundredths = round(value * 100)
    seconds, rest = divmod(hundredths, 100)
    if seconds >= 3600:
        return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{seconds // 60}:{seconds % 60:02}.{rest:02}"


def printed(value: float) -> float:
    return float(math.floor(value + 1e-9)) if round(value * 100) >= 360_000 else value


def pgbench(values: Values) -> str:
    return "".join(f"0 {n} {int(v)} 0 1700000000 1\n" for n, v in enumerate(values))


def perf(values: Values) -> str:
    return "".join(f"# started on Monday\n\n{v!r};msec;task-clock;100;100.00;;\n" for v in values)


def perf_json(values: Values) -> str:
    line = '{{"counter-value" : "{!r}", "unit" : "msec", "event" : "task-clock", "pcnt-running" : 100.00}}\n'
    return "".join(line.format(v) for v in values)


def filebench(values: Values) -> str:
    return "".join(f"1.0: IO Summary: 10 ops {v:.2f} ops/s 1/2 rd/wr 3.0mb/s 4.0ms/op\n" for v in values)


def postmark(values: Values) -> str:
    return "".join("1 2 " + " ".join([f"{v:.2f}"] * 11) + "\n" for v in values)


def sysbench(values: Values) -> str:
    return "".join(
        f"sysbench 1.0.20\n\nNumber of threads: 1\nLatency (ms):\n  min: {v:.2f}\n\n"
        "Threads fairness:\n    execution time (avg/stddev): 1/0\n"
        for v in values
    )


def res(values: Values) -> str:
    block = "[measurement]\nthread = 1\nepoch = {}\ncommand = a\nelapsed = {!r}\nstatus = 0\n"
    return "".join(block.format(n, v) for n, v in enumerate(values, 1))


def dump(values: Values) -> str:
    return "a.res\nepoch elapsed\n" + "".join(f"{n} {v!r}\n" for n, v in enumerate(values, 1))


def own(values: Values) -> str:
    line = {
        "test": "a",
        "block": 1,
        "order": 0,
        "worker": 0,
        "host": "h",
        "sitting": 1,
        "boot_id": "b",
        "inner": 1,
    }
    line |= {
        "command": ["a"],
        "start": None,
        "start_ns": None,
        "exit_status": 0,
        "signal": None,
        "error": None,
    }
    line |= {"timed_out": False, "cancelled": False, "kept": True, "why": None}
    rows = [line | {"trial": n, "metrics": {"elapsed": [v, "s"]}} for n, v in enumerate(values, 1)]
    return "".join(json.dumps(row) + "\n" for row in rows)


same: Callable[[float], float] = lambda v: v  # noqa: E731
CASES: list[tuple[Callable[[Values], str], Any, str, str, Callable[[float], float]]] = [
    (hyperfine, TIMES, "elapsed", "s", same),
    (hyperfine_2, TIMES, "elapsed", "s", same),
    (pyperf, TIMES, "elapsed", "s", same),
    (pytest_benchmark, TIMES, "elapsed", "s", same),
    (asv, TIMES, "elapsed", "s", same),
    (google, TIMES, "elapsed", "s", lambda v: v / 1e3),
    (github, TIMES, "elapsed", "s", lambda v: v / 1e6),
    (fio, COUNTS, "elapsed", "s", lambda v: v / 1e3),
    (go, TIMES, "elapsed", "s", lambda v: v / 1e9),
    (google_csv, TIMES, "elapsed", "s", lambda v: v / 1e6),
    (go_json, TIMES, "elapsed", "s", lambda v: v / 1e9),
    (criterion, TIMES, "elapsed", "s", lambda v: v / 4 / 1e9),
    (jmh, TIMES, "elapsed", "s", lambda v: v / 1e6),
    (iperf3, TIMES, "throughput", "B/s", lambda v: v / 8),
    (stress_ng, HUNDREDTHS, "elapsed", "s", same),
    (ab, TIMES, "elapsed", "s", lambda v: v / 1e3),
    (hey, HUNDREDTHS, "elapsed", "s", same),
    (wrk, HUNDREDTHS, "latency_mean", "s", lambda v: v / 1e3),
    (perf_text, HUNDREDTHS, "task_clock", "s", lambda v: v / 1e3),
    (table, TIMES, "time", "s", lambda v: v / 1e9),
    (time_default, HUNDREDTHS, "elapsed", "s", printed),
    (time_verbose, HUNDREDTHS, "elapsed", "s", printed),
    (time_posix, HUNDREDTHS, "elapsed", "s", same),
    (pgbench, COUNTS, "elapsed", "s", lambda v: v / 1e6),
    (perf, TIMES, "task_clock", "s", lambda v: v / 1e3),
    (perf_json, TIMES, "task_clock", "s", lambda v: v / 1e3),
    (filebench, HUNDREDTHS, "operation_rate", "1/s", same),
    (postmark, HUNDREDTHS, "written_throughput", "B/s", same),
    (sysbench, HUNDREDTHS, "latency_minimum", "s", lambda v: v / 1e3),
    (res, TIMES, "elapsed", "s", same),
    (dump, TIMES, "elapsed", "s", same),
    (own, TIMES, "elapsed", "s", same),
]


def read(text: str) -> Table:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "t")
        path.write_text(text)
        return read_table(path)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
@given(data=st.data())
@settings(max_examples=examples(30))
def test_values_are_read_as_they_are_written(case: Any, data: st.DataObject) -> None:
    write, values_of, metric, unit, expected = case
    values = data.draw(values_of)
    found = read(write(values))
    assert found.frame[metric].to_list() == pytest.approx([expected(v) for v in values], rel=1e-15, abs=0)
    assert found.frame["trial"].to_list() == list(range(1, len(values) + 1))
    assert found.frame["worker"].to_list() == [0] * len(values)
    assert found.frame["kept"].to_list() == [True] * len(values)
    assert found.frame["test"].n_unique() == 1
    assert found.units[metric] == unit
    assert not [line for line in found.warnings if "left out" in line]
