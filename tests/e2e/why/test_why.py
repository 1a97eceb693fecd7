"""Causes that were put into a real program are found: by name, in time and by count."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from subprocess import DEVNULL, PIPE

import pytest

import etude as library
from etude.errors import UsageError
from etude.osutil.files import try_lock
from etude.why import instrumented_pairs
from etude.why.causes import Cause
from etude.why.instruments import missing
from support.places import EXAMPLES
from support.real import ETUDE, called, etude, one_line

pytestmark = [
    pytest.mark.needs_root,
    pytest.mark.needs_program("perf", package="linux-perf"),
    pytest.mark.needs_program("cc", package="gcc"),
]
SLEEP_S = 0.08


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, built, with its data; and results of two tests. Skipped where perf is refused."""
    if reason := missing("timeline"):
        pytest.skip(reason)
    here = tmp_path_factory.mktemp("why")
    for name in ("copy.c", "Makefile"):
        shutil.copy(EXAMPLES / "why" / name, here)
    subprocess.run(["make", "-s"], cwd=here, check=True)
    (here / "copy.data").write_bytes(os.urandom(8 << 20))
    slower = f"./copy 8 4096 sleep={round(SLEEP_S * 1000)}"
    etude(
        "bench",
        "-o",
        "r",
        "--trials",
        "5",
        "-n",
        "fast",
        "./copy 8 65536",
        "-n",
        "slow",
        slower,
        cwd=here,
    )
    return here


def test_a_sleep_and_small_reads_are_named_with_their_time_and_count(place: Path) -> None:
    done = etude("why", "r", "--pairs", "6", "--json", "-q", cwd=place)
    told = json.loads(done.stdout)
    assert told["tests"] == ["fast", "slow"]
    # What a busy machine adds is in the intervals of the runs; less than it asked for, no sleep lasts.
    assert sum(c["high"] for c in told["timeline"]["causes"] if c["name"] == "clock_nanosleep") >= SLEEP_S
    reads = next(c for c in told["counts"] if c["call"] == "read" and c["file"].endswith("copy.data"))
    assert (reads["a"]["count"], reads["b"]["count"], reads["exact"]) == (128, 2048, True)
    assert reads["a"]["bytes"] == reads["b"]["bytes"] == 8 << 20
    assert not (place / "r" / "why" / "raw").exists()
    again = etude("why", "r", "--json", "-q", cwd=place)
    assert json.loads(again.stdout) == told
    assert "clock_nanosleep()" in etude("why", "r", cwd=place).stdout


def test_without_perf_the_recorded_calls_of_the_first_thread_are_the_causes(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "bin").mkdir()
    (place / "bin" / "perf").symlink_to("/bin/false")
    monkeypatch.setenv("PATH", f"{place / 'bin'}:{os.environ['PATH']}")
    told = json.loads(etude("why", "r", "-o", "calls", "--pairs", "6", "--json", "-q", cwd=place).stdout)
    causes = told["timeline"]["causes"]
    assert {c["kind"] for c in causes} <= {"recorded call", "outside of calls"}
    assert sum(c["high"] for c in causes if c["kind"] == "outside of calls") >= SLEEP_S, "a sleep is no I/O"
    assert len(told["lacking"]) == 1
    reads = next(c for c in told["counts"] if c["file"].endswith("copy.data"))
    assert min(reads[side]["seconds"] for side in "ab") > 0


def test_the_caller_is_found_without_frame_pointers_and_the_thread_that_woke_another(place: Path) -> None:
    """The lock is held by another thread of the program, which then computes."""
    subprocess.run(
        ["cc", "-O1", "-g", "-fomit-frame-pointer", "-pthread", "-o", "plain", "copy.c"],
        cwd=place,
        check=True,
    )
    tests = ["-n", "none", "./plain 1 65536", "-n", "both", "./plain 1 65536 fsync=9 lock=200"]
    etude("bench", "-o", "f", "--trials", "5", *tests, cwd=place)
    for run in library.why(place / "f", pairs=5).measured.runs[1]:
        assert Cause("plain", "call", "fsync", "write_bytes") in run.causes
        assert Cause("plain", "function", "compute") in run.causes


@pytest.mark.needs_program("valgrind", package="valgrind")
def test_instructions_are_counted_exactly_by_function_and_shown_again(place: Path) -> None:
    """slow_hash needs seven instructions a round, in each run; main starts it."""
    tests = ["-n", "none", "./copy 1 65536", "-n", "hash", "./copy 1 65536 hash=10000"]
    etude("bench", "-o", "i", "--trials", "5", *tests, cwd=place)
    words = ["why", "i", "--pairs", "5", "--json", "-q"]
    told = json.loads(etude(*words, "--instructions", cwd=place).stdout)["instructions"]
    assert told["exact"]
    first = told["listed"][0]
    assert (first["program"], first["function"], first["a"]) == ("copy", "slow_hash", 0)
    assert 50_000 <= first["b"] <= told["whole"]["b"] - told["whole"]["a"]
    assert json.loads(etude(*words, cwd=place).stdout)["instructions"] == told
    (place / "i" / "why" / "instructions" / "instructions.json").write_text("{}")
    assert len(etude(*words, cwd=place, check=3).stderr.strip().splitlines()) == 1


def test_pairs_that_another_process_measures_are_left_alone(place: Path) -> None:
    raw = place / "busy" / "raw"
    raw.mkdir(parents=True)
    (raw / "123").touch()
    file = os.open(raw, os.O_RDONLY | os.O_DIRECTORY)
    try:
        assert try_lock(file)
        assert "another" in one_line(etude("why", "r", "-o", "busy", cwd=place, check=5).stderr)
    finally:
        os.close(file)
    assert [each.name for each in raw.iterdir()] == ["123"]


def test_other_pairs_than_the_finished_ones_are_refused(place: Path) -> None:
    etude("why", "r", "-o", "done", "--pairs", "5", "-q", cwd=place)
    one_line(etude("why", "r", "-o", "done", "--pairs", "6", cwd=place, check=2).stderr)
    one_line(etude("why", "r", "slow", "fast", "-o", "done", cwd=place, check=2).stderr)


@pytest.mark.more
def test_the_pairs_are_results_and_a_frame_has_the_causes(place: Path) -> None:
    found = library.why(place / "r", output=place / "p", pairs=5)
    frame = found.to_frame()
    assert "clock_nanosleep" in frame["name"].to_list()
    names = set(library.load_results(place / "p").to_frame()["test"].to_list())
    assert {"fast", "slow", "slow: timeline", "fast: calls"} <= names


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["r", "fast", "nosuch"], 2),
        (["r", "fast"], 2),
        (["r", "fast", "fast"], 2),
        (["nosuch"], 3),
        (["r", "--pairs", "2"], 2),
    ],
    ids=["no such test", "one test", "one test twice", "no results", "few pairs"],
)
def test_what_cannot_be_explained_is_refused_in_one_line(
    place: Path, arguments: list[str], code: int
) -> None:
    done = etude("why", *arguments, "-o", "none", cwd=place, check=code)
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (place / "none").exists()


def test_other_results_are_not_taken_for_pairs(place: Path) -> None:
    (place / "half").mkdir()
    shutil.copy(place / "r" / "experiment.json", place / "half")
    done = etude("why", "r", "-o", "half", cwd=place, check=3)
    assert one_line(done.stderr).startswith("etude: half: ")


@pytest.mark.more
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["interrupted", "killed"])
def test_pairs_that_were_not_finished_are_continued(place: Path, number: int) -> None:
    into = f"cut{number}"
    command = ["why", "r", "--pairs", "6", "-o", into]
    running = subprocess.Popen([ETUDE, *command], cwd=place, stdout=DEVNULL, stderr=PIPE, text=True)
    rows = place / into / "fast-calls" / "results.jsonl"
    while not rows.exists() or len(rows.read_text().splitlines()) < 3:
        assert running.poll() is None
        time.sleep(0.05)
    running.send_signal(number)
    errors = running.communicate()[1]
    if number == signal.SIGINT:
        assert running.returncode == 130
        assert f"etude why -o {into} r fast slow" in errors
    before = rows.read_text().splitlines()
    etude("why", "r", "slow", "fast", "-o", into, cwd=place, check=2)
    told = json.loads(etude("why", "r", "--json", "-q", "-o", into, cwd=place).stdout)
    assert rows.read_text().splitlines()[: len(before)] == before
    assert told["timeline"]["pairs"] >= 5
    assert len(json.loads((place / into / "why.json").read_text())["plain_s"][0]) == 6
    reads = next(c for c in told["counts"] if c["call"] == "read" and c["file"].endswith("copy.data"))
    assert (reads["a"]["count"], reads["b"]["count"], reads["exact"]) == (128, 2048, True)
    etude("why", "r", "slow", "fast", "-o", into, cwd=place, check=2)


@pytest.mark.more
def test_bench_explains_what_it_has_compared(place: Path) -> None:
    commands = ["-n", "fast", "./copy 8 65536", "-n", "slow", "./copy 8 4096"]
    done = etude("bench", "-o", "b", "--trials", "5", "--why", "--json", *commands, cwd=place)
    told = json.loads(done.stdout)
    assert told["why"]["tests"] == ["fast", "slow"]
    assert "read" in [c["call"] for c in told["why"]["counts"]]
    again = etude("bench", "--resume", "b", "--why", "--json", cwd=place)
    assert json.loads(again.stdout)["why"] == told["why"]


@pytest.mark.more
def test_tests_of_a_script_are_explained_with_all_their_execs(place: Path) -> None:
    (place / "s.ap").write_text(
        "TEST 'a b' 2\n  PRESETUP mkdir made\n  EXEC ./copy 8 65536\n  EXEC true\n  POSTCLEANUP rmdir made\nDONE\n"
        "TEST slow 2\n  EXEC ./copy 8 65536\n  EXEC sleep 0.08 && true\nDONE\n"
    )
    etude("run", "-o", "s", "s.ap", cwd=place)
    told = json.loads(etude("why", "s", "--pairs", "5", "--json", "-q", cwd=place).stdout)
    assert told["tests"] == ["a b", "slow"]
    sleeps = [c for c in told["timeline"]["causes"] if c["name"] == "clock_nanosleep"]
    assert [c["process"] for c in sleeps] == ["sleep"]


def test_python_names_the_function(place: Path) -> None:
    with pytest.raises(UsageError, match=r"^etude\.why: "):
        library.why(place / "r", ["fast"])


@pytest.mark.more
def test_run_explains_the_first_two_tests_of_a_script(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instrumented_pairs, "MOST_PAIRS", 5)
    (place / "w.ap").write_text(
        "TEST a 2\n  EXEC ./copy 8 65536\nDONE\nTEST b 2\n  EXEC ./copy 8 4096\nDONE\n"
    )
    told = json.loads(called("run", "-o", "w", "--why", "--json", "w.ap", cwd=place).stdout)["why"]
    assert told["tests"] == ["a", "b"]
    assert "read" in [c["call"] for c in told["counts"]]
    assert (place / "w" / "why" / "why.json").exists()
    (place / "x.ap").write_text("TEST a 2\n  EXEC true\nDONE\nSYSTEM true\n")
    etude("run", "-o", "x", "--why", "x.ap", cwd=place, check=2)
    assert not (place / "x").exists()
    etude("run", "--list", "--why", "w.ap", cwd=place, check=2)


@pytest.mark.more
@pytest.mark.needs_program("node", package="nodejs")
def test_functions_of_code_made_at_run_time_have_names_where_it_writes_a_map(place: Path) -> None:
    (place / "hot.js").write_text(
        "function hot(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) % 1000003; return s }\n"
        "let t = 0; for (let k = 0; k < +process.argv[2]; k++) t += hot(1e6); console.log(t > 0)\n"
    )
    tests = ["-n", "few", "node --perf-basic-prof hot.js 4", "-n", "many", "node --perf-basic-prof hot.js 40"]
    etude("bench", "-o", "j", "--trials", "5", *tests, cwd=place)
    runs = library.why(place / "j", pairs=5).measured.runs[1]
    for run in runs:
        assert sum(s for c, s in run.causes.items() if c.name.startswith("JS:") and "hot" in c.name) > 0.05
        assert not [c for c in run.causes if re.search(r"perf-\d", c.name)]
