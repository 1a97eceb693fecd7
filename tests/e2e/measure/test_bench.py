"""`etude bench` on real commands."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.real import ETUDE, called, etude, experiment, lines, processes_with


@pytest.mark.quick
def test_two_commands_are_compared_in_blocks_of_random_order(tmp_path: Path) -> None:
    done = etude(
        "bench",
        "-o",
        "r",
        "--seed",
        "5",
        "--trials",
        "20",
        "-n",
        "short",
        "sleep 0.002",
        "-n",
        "long",
        "sleep 0.1",  # so far apart that no noise of the machine hides it
        cwd=tmp_path,
    )
    assert "long takes" in done.stdout
    assert "× short's time" in done.stdout
    assert "A/A noise" in done.stdout
    assert done.stdout.strip().splitlines()[-1] == "Results: r"
    short, long = lines(tmp_path / "r", "short"), lines(tmp_path / "r", "long")
    assert [row["kept"] for row in short[:2]] == [False, True]
    orders = {row["block"]: row["order"] for row in short if row["kept"]}
    assert set(orders.values()) > {0, 1} or set(orders.values()) == {0, 1}
    assert [row["block"] for row in long] == list(range(len(long)))
    ratio = json.loads(etude("stats", "--json", "r", cwd=tmp_path).stdout)["comparisons"][0]["ratio"]
    assert 2.0 < ratio["low"] < ratio["ratio"] < ratio["high"] < 100.0


@pytest.mark.quick
def test_the_record_of_a_real_trial_is_whole(tmp_path: Path) -> None:
    etude(
        "bench",
        "-o",
        "r",
        "-n",
        "sum",
        "--trials",
        "3",
        f"{sys.executable} -c 'sum(range(10**6))'",
        cwd=tmp_path,
    )
    row = lines(tmp_path / "r", "sum")[-1]
    metrics = row["metrics"]
    assert 0 < metrics["user"][0] <= metrics["elapsed"][0] * 1.5
    assert metrics["peak_memory"][0] > 4 * 2**20 > metrics["peak_memory_floor"][0]
    assert metrics["minor_faults"][0] > 100
    for name in ("cycles", "instructions", "cache_misses", "branch_misses", "tree_cpu", "tree_peak_memory"):
        value, *reason = metrics[name][0], *metrics[name][2:]
        assert value is None or value > 0, f"{name}: null with its reason, never 0"
        assert (value is None) == bool(reason), name
    assert row["exit_status"] == 0
    assert row["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


@pytest.mark.parametrize("name", ["g++ a+b", "ü/ö", "a" * 300, "x y\tz", "..", "(again)"])
def test_names_may_hold_anything(tmp_path: Path, name: str) -> None:
    called("bench", "-o", "r", "-n", name, "-n", f"{name}!", "--trials", "2", "true", "true", cwd=tmp_path)
    assert [t["name"] for t in experiment(tmp_path / "r")["tests"]][:2] == [name, f"{name}!"]
    assert experiment(tmp_path / "r")["sittings"][0]["how_ended"] == "complete"


@pytest.mark.quick
def test_the_first_match_counts_also_in_a_long_output(tmp_path: Path) -> None:
    says = f'{sys.executable} -c \'print("n=1"); print(100_000 * "long "); print("n=2")\''
    etude("bench", "-o", "r", "-n", "t", "--trials", "2", "--metric", "n=n=([0-9])", says, cwd=tmp_path)
    rows = lines(tmp_path / "r", "t")
    assert [row["metrics"]["n"] for row in rows] == [[1.0, "1"]] * 3
    assert max(len(row["stdout"]["tail"]) for row in rows) <= 4096


def test_programs_print_numbers_of_their_own(tmp_path: Path) -> None:
    called(
        "bench", "-o", "r", "-n", "t", "--trials", "3", "--metric", r"rate:req/s=rate (\d+\.\d+)", "--primary", "rate",
        "echo 'rate 12.5'", cwd=tmp_path,
    )  # fmt: skip
    assert [row["metrics"]["rate"] for row in lines(tmp_path / "r", "t")] == [[12.5, "req/s"]] * 4


def test_a_sweep_makes_one_test_of_each_value(tmp_path: Path) -> None:
    called(
        "bench",
        "-o",
        "r",
        "-P",
        "n=1..4*2",
        "--trials",
        "2",
        "-n",
        "head {n}",
        "head -c {n} /dev/zero",
        cwd=tmp_path,
    )
    tests = [t for t in experiment(tmp_path / "r")["tests"] if t["role"] == "test"]
    assert [(t["name"], t["parameters"]) for t in tests] == [
        ("head 1", {"n": "1"}),
        ("head 2", {"n": "2"}),
        ("head 4", {"n": "4"}),
    ]
    assert lines(tmp_path / "r", "head-4")[0]["stdout"]["bytes"] == 4


def test_less_output_is_a_word_in_the_first_line_and_a_note(tmp_path: Path) -> None:
    done = called("bench", "--trials", "2", "-n", "A", "echo hello", "-n", "B", "echo", cwd=tmp_path)
    assert "differ" in done.stdout.partition("\n")[0]
    assert re.search(r"^Note: B .*1 B against 6 B", done.stdout, re.MULTILINE)


@pytest.mark.quick
def test_workers_start_together(tmp_path: Path) -> None:
    etude("bench", "-o", "r", "-n", "w", "--workers", "2", "--trials", "3", "sleep 0.01", cwd=tmp_path)
    rows = lines(tmp_path / "r", "w")
    assert [row["worker"] for row in rows] == [0, 1] * 4
    pairs = zip(rows[::2], rows[1::2], strict=True)
    assert any(a["start_ns"] != b["start_ns"] for a, b in pairs), "each stamps its own start"


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="a duet needs two CPUs")
def test_a_duet_is_marked_as_a_ratio_under_contention(tmp_path: Path) -> None:
    done = called(
        "bench", "--schedule", "duet", "-o", "r", "--trials", "8", "-n", "A", "sleep 0.01", "-n", "B", "sleep 0.01",
        cwd=tmp_path,
    )  # fmt: skip
    assert "under contention" in done.stdout
    a, b = (lines(tmp_path / "r", name)[1:] for name in "AB")
    gaps = [abs(x["start_ns"] - y["start_ns"]) for x, y in zip(a, b, strict=True)]
    assert sorted(gaps)[4] < 5_000_000, "both run at once"
    for row in a:
        assert row["metrics"]["orphans"][0] is None, "what is counted for both is claimed by neither"
        assert "all parties" in row["metrics"]["orphans"][2]


def test_a_daemon_does_not_outlive_its_trial_and_is_counted(tmp_path: Path) -> None:
    marker = f"0.{os.getpid()}777"
    called(
        "bench",
        "-o",
        "r",
        "-n",
        "d",
        "--trials",
        "2",
        f"sh -c 'setsid sleep 98{marker} & true'",
        cwd=tmp_path,
    )
    assert processes_with(f"98{marker}") == []
    assert [row["metrics"]["orphans"][0] for row in lines(tmp_path / "r", "d")] == [1, 1, 1]


@pytest.mark.quick
def test_what_setup_started_lives_until_cleanup(tmp_path: Path) -> None:
    marker = f"0.{os.getpid()}555"
    etude(
        "bench", "-o", "r", "-n", "s", "--trials", "3",
        "--setup", f"sleep 97{marker} & echo $! > {tmp_path}/pid",
        "--cleanup", f"kill -0 $(cat {tmp_path}/pid) && echo alive > {tmp_path}/seen",
        f"sh -c 'kill -0 $(cat {tmp_path}/pid)'",
        cwd=tmp_path,
    )  # fmt: skip
    assert (tmp_path / "seen").read_text() == "alive\n"
    assert processes_with(f"97{marker}") == [], "what clean-up left is ended"


@pytest.mark.quick
def test_hooks_run_in_their_order(tmp_path: Path) -> None:
    log = tmp_path / "log"
    hooks = [
        word
        for point in ("setup", "prepare", "conclude", "cleanup")
        for word in (f"--{point}", f"echo {point} >> {log}")
    ]
    etude("bench", "--trials", "2", *hooks, f"sh -c 'echo exec >> {log}'", cwd=tmp_path)
    assert log.read_text().split() == ["setup", *["prepare", "exec", "conclude"] * 3, "cleanup"]


def signalled(directory: Path, number: signal.Signals, cleanup: str, command: str) -> tuple[int, str]:
    """Exit code and standard error of an experiment that gets a signal after some trials."""
    process = subprocess.Popen(
        [ETUDE, "bench", "-o", "r", "-n", "A", "--cleanup", cleanup, "--trials", "100000", "--prepare", "true",
         command],
        cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    path = directory / "r" / "A" / "results.jsonl"
    deadline = time.monotonic() + 30
    while not (path.exists() and path.read_text().count("\n") > 3) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    return process.returncode, errors


@pytest.mark.quick
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_clean_up_and_results(tmp_path: Path, number: signal.Signals) -> None:
    command = f"sleep 0.01{os.getpid()}{int(number)}"
    code, errors = signalled(tmp_path, number, f"touch {tmp_path}/cleaned", command)
    assert code == 128 + number
    assert "--resume r" in errors
    assert (tmp_path / "cleaned").exists()
    assert experiment(tmp_path / "r")["sittings"][0]["how_ended"] == f"ended by {number.name}"
    assert sum(row["kept"] for row in lines(tmp_path / "r", "A")) >= 3
    assert processes_with(command) == []


def test_a_clean_up_that_fails_after_a_signal_does_not_hide_the_signal(tmp_path: Path) -> None:
    code, errors = signalled(tmp_path, signal.SIGINT, "exit 3", "sleep 0.01")
    assert code == 128 + signal.SIGINT
    assert "exit status 3" in errors
    assert "--resume r" in errors


@pytest.mark.quick
def test_a_timeout_ends_the_whole_tree(tmp_path: Path) -> None:
    marker = f"0.{os.getpid()}333"
    done = etude("bench", "--timeout", "200ms", f"sh -c 'sleep 96{marker}; true'", cwd=tmp_path, check=4)
    assert "timeout" in done.stderr
    assert processes_with(f"96{marker}") == []


def test_exports_hold_the_verdict(tmp_path: Path) -> None:
    called(
        "bench", "-o", "r", "--trials", "3", "--export", "csv", "--export", "markdown=out.md", "--export", "json",
        "-n", "A", "true", "-n", "B", "sleep 0.001", cwd=tmp_path,
    )  # fmt: skip
    with open(tmp_path / "r" / "summary.csv", newline="") as file:
        table = list(csv.DictReader(file))
    assert {row["test"] for row in table} == {"A", "B"}
    assert "| A |" in (tmp_path / "out.md").read_text()
    assert json.loads((tmp_path / "r" / "summary.json").read_text())["format"] == "etude-verdict"


@pytest.mark.quick
def test_json_is_all_there_is_on_standard_output(tmp_path: Path) -> None:
    done = etude("bench", "--json", "--trials", "3", "true", cwd=tmp_path)
    assert json.loads(done.stdout)["tests"][0]["kept"] == 3


def test_a_baseline_of_another_sitting_is_refused_or_marked(tmp_path: Path) -> None:
    asked = ("bench", "--baseline", "old", "-n", "t", "--trials", "5", "sleep 0.002")
    called("bench", "-o", "old", "-n", "t", "--trials", "5", "sleep 0.001", cwd=tmp_path)
    refused = called(*asked, cwd=tmp_path, check=7)
    assert "--between-sessions" in refused.stderr
    marked = " ".join(called(*asked, "--between-sessions", "3%", cwd=tmp_path).stdout.split())
    assert "not compared" not in marked
    assert "unpaired, drift" in marked


def test_a_shell_is_measured_and_subtracted(tmp_path: Path) -> None:
    called("bench", "-o", "r", "--shell", "--trials", "10", "-n", "s", "sleep 0.01; true", cwd=tmp_path)
    figures = json.loads(called("stats", "--json", "r", cwd=tmp_path).stdout)["tests"][0]["metrics"][
        "elapsed"
    ]
    raw = [row["metrics"]["elapsed"][0] for row in lines(tmp_path / "r", "s") if row["kept"]]
    assert figures["subtracted"] > 0
    assert figures["mean"] == pytest.approx(sum(raw) / len(raw) - figures["subtracted"])


def test_inner_auto_makes_short_trials_long_enough(tmp_path: Path) -> None:
    done = called("bench", "-o", "r", "-n", "t", "--inner", "auto", "--trials", "3", "true", cwd=tmp_path)
    kept = [row for row in lines(tmp_path / "r", "t") if row["kept"]]
    assert len({row["inner"] for row in kept}) == 1
    assert kept[0]["inner"] > 5
    assert kept[0]["metrics"]["elapsed"][0] * kept[0]["inner"] > 0.01
    assert f"{kept[0]['inner']} launches" in done.stdout


def test_doctor_changes_nothing_and_says_what_it_means(tmp_path: Path) -> None:
    findings = json.loads(called("doctor", "--json", cwd=tmp_path).stdout)
    assert all(f["verdict"] in ("good", "noisy", "unknown") and f["meaning"] for f in findings)
    assert len(findings) >= 10
