"""What of a file is a test, what is a parameter of it, and what is only where or when a value was measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from etude.analysis.comparisons import compare_tests
from etude.analysis.load_subject import read_subject
from etude.analysis.subject import Subject, subject_of_table
from etude.analysis.transforms import Transform
from etude.analysis.verdict import metric_summary
from etude.analysis.verdict_options import VerdictOptions
from etude.results.readers import read_table
from etude.results.series import series_of_table
from support.sampled import DATA


def names(path: Path) -> list[str]:
    return [series.test for series in series_of_table(read_table(path))]


def pyperf(name: str, processes: list[list[float]]) -> dict[str, Any]:
    return {"metadata": {"name": name}, "runs": [{"values": values} for values in processes]}


def test_a_process_of_pyperf_is_a_level_of_its_tests_variance(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"benchmarks": [pyperf("a", [[1.0, 1.1], [2.0, 2.1], [3.0, 3.1]])]}))
    (series,) = series_of_table(read_table(path))
    assert series.test == "a"
    assert series.labels["process"] == ["1", "1", "2", "2", "3", "3"]
    found = metric_summary(series, "elapsed", 1.0, (0.0, 0.0), VerdictOptions())
    assert found.levels is not None
    assert (found.levels.over, found.levels.groups) == ("process", 3)
    assert found.levels.components[1].share > 0.9


def test_a_sample_of_pyperf_has_as_many_tests_as_benchmarks() -> None:
    assert names(DATA / "pyperf.json") == ["join", "split"]


def test_tests_that_several_processes_measured_are_compared_by_these(tmp_path: Path) -> None:
    """Values of one process are alike: 100 in each are worth no more than one."""
    rng = np.random.default_rng(1)
    means = {"a": [1.0, 1.2, 1.1, 0.9], "b": [1.15, 1.05, 1.3, 0.95]}
    path = tmp_path / "t.json"
    tests = [
        pyperf(name, [list(rng.normal(mean, 0.001, 100)) for mean in each]) for name, each in means.items()
    ]
    path.write_text(json.dumps({"benchmarks": tests}))
    subject = read_subject(str(path))
    assert isinstance(subject, Subject)
    (found,), _ = compare_tests(subject, "elapsed", VerdictOptions())
    assert found.ratio.low < 1 < found.ratio.high
    assert found.ratio.p is not None
    assert found.ratio.p > 0.1


def test_a_fork_of_jmh_is_a_process() -> None:
    series = {(s.test, s.parameters["n"]): s for s in series_of_table(read_table(DATA / "jmh.json"))}
    assert len(series) == 4
    assert all(list(s.labels["process"]) == ["1"] * 3 + ["2"] * 3 for s in series.values())


def test_a_client_of_pgbench_is_no_test(tmp_path: Path) -> None:
    path = tmp_path / "pgbench_log"
    path.write_text("".join(f"{n % 3} {n} 1000 0 1700000000 {n}\n" for n in range(30)))
    (series,) = series_of_table(read_table(path))
    assert series.test == "pgbench_log"
    assert series.trials.size == 30
    assert read_table(path).attributes == ("client",)


def test_scripts_of_pgbench_are_tests(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("".join(f"0 {n} 1000 {n % 2} 1700000000 {n}\n" for n in range(4)))
    assert names(path) == ["log (script=0)", "log (script=1)"]


def test_a_name_has_the_parameters_that_vary_whatever_else_stands_in_it(tmp_path: Path) -> None:
    path = tmp_path / "t10"
    path.write_text("".join(f"0 {n} 1000 {n % 2} 1700000000 {n}\n" for n in range(4)))
    assert names(path) == ["t10 (script=0)", "t10 (script=1)"]


@pytest.mark.parametrize("name", ["pgbench_log.4711", "pgbench_log.4711.1"])
def test_the_logs_of_all_threads_of_pgbench_are_of_one_test(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("0 1 1000 0 1700000000 1\n")
    assert names(tmp_path / name) == ["pgbench_log"]
    (tmp_path / name).write_text("1700000000 2 3000 5000000 1000 2000\n")
    assert names(tmp_path / name) == ["pgbench_log"]


def several_jobs(path: Path) -> Path:
    """A line of fio's terse output of each of two jobs, which differ in a percentile."""
    line = (DATA / "fio-terse3.txt").read_text().splitlines()[0]
    path.write_text("".join(line.replace("99.000000%=49", f"99.000000%={n}") + "\n" for n in (2, 3)))
    return path


def test_percentiles_of_several_jobs_are_shown_by_worker_and_no_metric_is_asked_for(tmp_path: Path) -> None:
    """No METRIC has read another program's file."""
    (series,) = series_of_table(read_table(several_jobs(tmp_path / "t.terse")))
    reason = series.columns["write_completion_p99"].reason
    assert reason is not None
    assert "METRIC" not in reason
    assert "--shift --group worker" in reason
    shifted = read_subject(str(tmp_path / "t.terse"), [Transform("group", ("worker",), shifted=True)])
    assert isinstance(shifted, Subject)
    found = [each.sample("write_completion_p99").tolist() for each in shifted.tests]
    assert found == [[pytest.approx(2e-6)], [pytest.approx(3e-6)]]


def test_what_a_file_is_judged_by_has_values(tmp_path: Path) -> None:
    """Shares of several jobs are not joined: such a column comes last, although it is the first of the file."""
    subject = read_subject(str(several_jobs(tmp_path / "t.terse")))
    assert isinstance(subject, Subject)
    assert subject.tests[0].columns["user_cpu"].joined == "none"
    assert subject.tests[0].sample(subject.asked.primary).size


def test_commits_of_github_action_benchmark_are_trials_of_one_test() -> None:
    found = {s.test: s for s in series_of_table(read_table(DATA / "github-action-benchmark-data.js"))}
    assert found["join"].trials.tolist() == [1, 2]


def google(*rows: dict[str, Any]) -> str:
    each = {"run_type": "iteration", "real_time": 1.0, "time_unit": "ns", "threads": 1}
    return json.dumps({"context": {"num_cpus": 1}, "benchmarks": [each | row for row in rows]})


def test_a_benchmark_of_google_has_one_name_whatever_else_is_in_its_file(tmp_path: Path) -> None:
    alone, beside = tmp_path / "alone", tmp_path / "beside"
    first = {"name": "Copy/64", "run_name": "Copy/64", "label": "run1"}
    second = {"name": "Copy/64", "run_name": "Copy/64", "label": "run2"}
    other = {"name": "Lock/threads:2", "run_name": "Lock/threads:2", "threads": 2}
    alone.write_text(google(first))
    beside.write_text(google(first, second, other))
    assert names(alone) == ["Copy/64"]
    assert names(beside) == ["Copy/64", "Lock/threads:2"]


def test_a_test_is_not_named_by_what_differs_only_from_other_tests(tmp_path: Path) -> None:
    """Options of fio's jobs, for one: what else is in the file does not change a name."""
    assert names(DATA / "fio.json") == ["write", "mix"]
    path = tmp_path / "t"
    path.write_text("pkg: a\nBenchmarkX 1 1 ns/op\npkg: b\nBenchmarkX 1 1 ns/op\nBenchmarkY 1 1 ns/op\n")
    assert names(path) == ["X (pkg=a)", "X (pkg=b)", "Y"]


def test_two_commands_of_hyperfines_csv_are_two_tests() -> None:
    table = read_table(DATA / "hyperfine.csv")
    assert table.summary_only
    elapsed = table.frame.filter(table.frame["metric"] == "elapsed")
    assert elapsed["test"].to_list() == ["sleep 0.01", "sleep 0.02"]
    assert elapsed["mean"].to_list() == [0.017511194333333337, 0.024126087666666667]
    assert table.units == {"elapsed": "s", "user": "s", "system": "s"}


def test_commands_of_any_csv_are_tests_unless_trials_are_numbered(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("command,time [s]\na,1\nb,2\na,3\n")
    assert names(path) == ["a", "b"]
    path.write_text("command,trial,time [s]\na,1,1\nb,1,2\n")
    (series,) = series_of_table(read_table(path))
    assert series.trials.tolist() == [1]


def test_when_a_row_was_measured_is_no_parameter(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("date,time [s]\n2026-01-01 10:00:00,1\n2026-01-01 10:00:01,2\n")
    (series,) = series_of_table(read_table(path))
    assert series.trials.tolist() == [1, 2]
    assert read_table(path).attributes == ("date",)


def test_samples_of_criterion_are_times_of_one_iteration() -> None:
    table = read_table(DATA / "criterion-raw.csv")
    document = json.loads((DATA / "criterion-sample.json").read_text())
    expected = [t / n / 1e9 for t, n in zip(document["times"], document["iters"], strict=True)]
    assert table.frame["elapsed"].to_list() == pytest.approx(expected, rel=1e-15)
    assert read_table(DATA / "criterion-sample.json").frame["elapsed"].to_list() == pytest.approx(expected)
    assert set(table.frame["test"]) == {"sorts/stable/10"}


def test_requests_of_ab_are_in_milliseconds_and_not_in_the_order_of_their_times(tmp_path: Path) -> None:
    path = tmp_path / "requests"
    heading = "starttime\tseconds\tctime\tdtime\tttime\twait\n"
    lines = [f"Mon Nov 23 09:30:0{n // 50} 2026\t{n // 50}\t0\t{n}\t{n}\t{n}\n" for n in range(100)]
    path.write_text(heading + "".join(lines))
    (series,) = series_of_table(read_table(path))
    values = series.columns["elapsed"].values
    assert sorted(values) == [n / 1e3 for n in range(100)]
    assert {series.columns[name].unit for name in ("connect", "processing", "elapsed", "wait")} == {"s"}
    assert max(values[:50]) < min(values[50:])
    assert abs(np.corrcoef(values[:49], values[1:50])[0, 1]) < 0.5


def test_transforms_keep_what_describes_a_row() -> None:
    from etude.analysis.pipeline import apply

    table = read_table(DATA / "pyperf.json")
    assert "process" not in table.metrics
    found = subject_of_table(apply(table, ()))
    assert [series.test for series in found.tests] == ["join", "split"]


def test_a_column_without_any_number_is_a_metric_without_values_and_no_parameter(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("test,elapsed,speed,host\na,,NaN,\na,,nan,\nb,,inf,\n")
    assert names(file) == ["a", "b"]


@pytest.mark.parametrize("cell", ["0x10", '"1,5"', "elapsed (s)"])
def test_a_cell_that_is_no_number_makes_no_parameter_of_what_was_measured(tmp_path: Path, cell: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"test,elapsed (s),cache\na,1.1,on\na,{cell},on\na,1.3,on\n")
    table = read_table(path)
    assert table.frame["elapsed"].to_list() == [1.1, None, 1.3]
    assert names(path) == ["a"]
    assert any(line.startswith("elapsed (s): 1 of 3 ") for line in table.warnings)


def test_a_column_of_text_whose_heading_names_no_unit_is_a_parameter(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("test,elapsed (s),mode (fast)\na,1.1,yes\na,1.2,no\n")
    assert len(names(path)) == 2
