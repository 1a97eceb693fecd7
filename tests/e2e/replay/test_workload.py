"""A replay as a workload of `etude run`: its response times as metrics and as windows."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from etude.program import engine_path
from etude.results.histograms import decode
from support.places import DOCS
from support.real import called, etude, lines
from support.recordings import environment, record

pytestmark = pytest.mark.beside

PAGE = (DOCS / "howto" / "replay.md").read_text()
SECTION = PAGE[PAGE.index("## As a workload") : PAGE.index("## Windows")]
TRIALS = 10
SLOW = """\
etude script 1
file "in" 100
openat(AT_FDCWD, "in", O_RDONLY) = 3
read(3, 100) = 100
compute(0.7)
read(3, 100) = 0
openat(AT_FDCWD, "in", O_RDONLY) = -1 ENOENT
close(3) = 0
"""


def engine(*words: str, at: Path, status: int = 0, **variables: str) -> subprocess.CompletedProcess[str]:
    command, around = [engine_path(), *words], environment(at / "sites") | variables
    done = subprocess.run(command, cwd=at, env=around, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    return done


def replayed(at: Path, *options: str, **variables: str) -> dict[str, Any]:
    done = engine("replay", "--json", "-q", *options, "a.roll", "place", at=at, **variables)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def windows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def answered(windows: list[dict[str, Any]]) -> int:
    return sum(window["completed"] + window["failed"] for window in windows)


def by_name(windows: list[dict[str, Any]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for window in windows:
        for name, of in window["by"].items():
            found[name] += of["completed"] + of["failed"]
            assert decode(of["latency"]).counts.sum() == of["completed"] + of["failed"]
    return found


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of the page's experiment, of a recorded tar, and all else that the page says of it."""
    at = tmp_path_factory.mktemp("workload")
    (at / "tree").mkdir()
    for number in range(20):
        (at / "tree" / f"file{number}").write_bytes(b"x" * 3000 * number)
    around = environment(at / "sites")
    recorded = record("tar", "cf", "x.tar", "tree", at=at / "tar.trace", cwd=at, env=around)
    assert recorded.status == 0, recorded.stderr
    engine("script", "-q", "tar.trace", "-o", "tar.script", at=at)
    engine("compile", "-q", "tar.script", at=at)
    (block,) = re.findall(r"^```ap\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)
    (at / "replay.ap").write_text(block)
    around["PATH"] = f"{Path(sys.executable).parent}:{around['PATH']}"
    for line in re.findall(r"^    \$ (.*?)(?:   .*)?$", SECTION, re.MULTILINE):
        done = subprocess.run(
            ["sh", "-c", line], cwd=at, env=around, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        assert "was left out" not in done.stderr
        (at / "said").write_text(done.stdout)
    (found,) = (at / "etude-results").iterdir()
    return found


def test_the_windows_of_each_trial_hold_each_call_of_the_roll_once(results: Path) -> None:
    rows = lines(results, "replay")
    place = results.parents[1]
    (place / "place").rename(place / "used")
    engine("prepare", "-q", "tar.script", "place", at=place)
    (place / "a.roll").write_bytes((place / "tar.roll").read_bytes())
    report = replayed(place)
    of_roll = {name: of["count"] for name, of in report["by_call"].items()}
    assert of_roll["openat"] >= 20
    assert len(rows) == TRIALS + 1
    for row in rows:
        windows = row["windows"]
        assert answered(windows) == report["calls"] == row["metrics"]["calls"][0]
        assert by_name(windows) == of_roll
        assert sum(decode(window["latency"]).counts.sum() for window in windows) == report["calls"]
        assert sum(window["duration_s"] for window in windows) >= row["metrics"]["run"][0] - 1e-6
        assert "notes" not in row
    assert not list((results / "replay").glob("windows*"))


def test_a_metric_is_a_place_in_the_json_of_a_replay(results: Path) -> None:
    for row in lines(results, "replay"):
        metrics = row["metrics"]
        assert {name: metrics[name][1] for name in ("run", "reading", "read_p99", "open_p99", "calls")} == {
            "run": "s",
            "reading": "s",
            "read_p99": "s",
            "open_p99": "s",
            "calls": "1",
        }
        assert 0 < metrics["read_p99"][0] <= metrics["reading"][0] <= metrics["run"][0]


def test_percentiles_are_those_of_all_calls(results: Path) -> None:
    calls = sum(int(row["metrics"]["calls"][0]) for row in lines(results, "replay") if row["kept"])
    told = (results.parents[1] / "said").read_text()
    assert re.search(rf"elapsed, p50 of {calls:,} responses: [\d.]+ [µun]?s \(95 %: ", " ".join(told.split()))
    page = called("report", "--format", "markdown", str(results), cwd=results.parent).stdout
    assert "replay" in page


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    (tmp_path / "a.script").write_text(SLOW)
    engine("compile", "-q", "a.script", at=tmp_path)
    engine("prepare", "-q", "a.script", "place", at=tmp_path)
    return tmp_path


@pytest.mark.parametrize("way", ["option", "variable"])
def test_a_replay_tells_while_it_plays(slow: Path, way: str) -> None:
    given = {"ETUDE_WINDOWS": "w"} if way == "variable" else {"ETUDE_WINDOWS": ""}
    report = replayed(slow, *(["--windows", "w"] if way == "option" else []), "--window", "0.1", **given)
    windows = windows_of(slow / "w")
    assert len(windows) > 1
    assert answered(windows) == report["calls"] == 5
    assert [sum(window["failed"] for window in windows), report["mismatches"]] == [1, 1]
    assert by_name(windows) == {"openat": 2, "read": 2, "close": 1}
    assert not list((slow / "place").glob("w*"))
    replayed(slow, "--windows", "w")
    assert answered(windows_of(slow / "w")) == 10, "it is appended to"


def test_without_a_file_there_are_no_windows(slow: Path) -> None:
    before = sorted(path.name for path in slow.iterdir())
    replayed(slow, "--window", "0.1", ETUDE_WINDOWS="")
    assert sorted(path.name for path in slow.iterdir() if path.name != "sites") == before


@pytest.mark.parametrize(
    ("options", "line", "status"),
    [
        (["--windows", "none/w"], "none/w: ", 5),
        (["--windows", "/dev/full"], "/dev/full: ", 5),
        (["--window", "0.01"], '--window "0.01": ', 2),
    ],
)
def test_windows_that_cannot_be_written_are_one_line(
    slow: Path, options: list[str], line: str, status: int
) -> None:
    told = engine("replay", "-q", *options, "a.roll", "place", at=slow, status=status).stderr
    assert told.startswith(f"etude replay: {line}")
    assert len(told.splitlines()) == 1


def test_any_workload_hands_over_windows(tmp_path: Path) -> None:
    (tmp_path / "x.ap").write_text(
        "THREADS=2\nTEST any:x 2\nSETUP env > setup.env\n"
        'EXEC echo "{\\"completed\\": ${APTHREAD}${APEPOCH}}" >> $ETUDE_WINDOWS\nDONE\n'
    )
    etude("run", "-o", "r", "x.ap", cwd=tmp_path, env=os.environ | {"ETUDE_WINDOWS": ""})
    rows = lines(tmp_path / "r", "any-x")
    assert [row["windows"] for row in rows] == [[{"completed": n}] for n in (11, 21, 12, 22)]
    assert "ETUDE_WINDOWS=\n" in (tmp_path / "setup.env").read_text()


def test_windows_of_a_script_that_measures_itself_stand_in_its_first_row(tmp_path: Path) -> None:
    (tmp_path / "x.ap").write_text(
        "TEST own 1\nEXEC sh -c 'aptime true; aptime true; echo {} >> $ETUDE_WINDOWS'\nDONE\n"
    )
    called("run", "-o", "r", "x.ap", cwd=tmp_path)
    assert [row.get("windows") for row in lines(tmp_path / "r", "own")] == [[{}], None]


def test_a_bad_line_is_left_out_and_the_trial_counts(tmp_path: Path) -> None:
    (tmp_path / "bad.sh").write_text("""printf '{"failed": 1}\\n{"failed": -1}\\n{"fai' >> $ETUDE_WINDOWS""")
    (tmp_path / "x.ap").write_text("TEST bad 2\nEXEC sh bad.sh\nDONE\n")
    done = called("run", "-o", "r", "x.ap", cwd=tmp_path)
    note = "line 2 of $ETUDE_WINDOWS was left out: failed: expected a whole number, not -1 (and 1 more line)"
    told = [line for line in done.stderr.splitlines() if "was left out" in line]
    assert [line.partition("test ")[2] for line in told] == [f"'bad', trial {n}: {note}" for n in (1, 2)]
    rows = lines(tmp_path / "r", "bad")
    assert [(row["kept"], row["windows"], row["notes"]) for row in rows] == [
        (True, [{"failed": 1}], [note])
    ] * 2
