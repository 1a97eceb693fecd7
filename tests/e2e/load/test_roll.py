"""`etude load --roll`: a recorded program's I/O at multiples of its speed, counted from when each call was due."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from etude.cli.main import main
from etude.program import engine_path
from etude.results.histograms import decode
from support.played import script_of

Document = dict[str, Any]

CALLS, GAP_S = 100, 0.004
PROGRAM = f"""
import os, time
data = os.open("data", os.O_RDWR | os.O_CREAT)
for n in range({CALLS}):
    os.pwrite(data, b"x" * 4096, 4096 * n)
    os.pread(data, 4096, 0)
    time.sleep({GAP_S})
os.fdatasync(data)
"""
OWN = ("pread64", "fdatasync")
"""Calls of the program itself that neither the start of the interpreter nor the preparing of places makes."""


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A directory in memory: each pass has hundreds of files, which a disk makes slower than it plays them."""
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="etude-roll-") as place:
        yield Path(place)


@pytest.fixture(scope="module")
def roll(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("recorded")
    command = [engine_path(), "record", "-q", "-o", "run.trace", "--", sys.executable, "-SIc", PROGRAM]
    subprocess.run(command, cwd=place, check=True, capture_output=True)
    script = script_of(place / "run.trace").path
    subprocess.run([engine_path(), "compile", "-q", script, "-o", place / "run.roll"], check=True)
    return place / "run.roll"


INTERPRETED = "import email, http.client, json, xml.dom.minidom; open('out', 'wb').write(bytes(10**6))"


@pytest.fixture(scope="module")
def interpreted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a program that reads some megabytes of an interpreter's library, and writes one."""
    place = tmp_path_factory.mktemp("interpreted")
    command = [engine_path(), "record", "-q", "-o", "run.trace", "--", sys.executable, "-Sc", INTERPRETED]
    subprocess.run(command, cwd=place, check=True, capture_output=True)
    script = script_of(place / "run.trace", "--map", f"{place}=work").path
    subprocess.run([engine_path(), "compile", "-q", script, "-o", place / "much.roll"], check=True)
    return place / "much.roll"


def prepared(roll: Path, place: Path, *words: str) -> tuple[Document, int, int]:
    """What a run says of its roll, and as it was prepared: its places, and the bytes in them on disk."""
    words = ("--multiple", "1", "--seconds", "3", *words)
    running = subprocess.Popen(
        command(roll, place, *words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert running.stderr is not None
    assert "prepared in" in running.stderr.readline()
    (root,) = place.iterdir()
    found = [path.stat(follow_symlinks=False) for path in root.rglob("*") if path.is_file()]
    data = {each.st_ino: each.st_blocks * 512 for each in found if each.st_size > 0}
    places = len(list(root.glob("pass-*")))
    out, errors = running.communicate(timeout=120)
    assert running.returncode == 0, errors
    assert list(place.iterdir()) == []
    return json.loads(out.splitlines()[-1])["summary"], places, sum(data.values())


def command(roll: Path, place: Path, *words: str) -> list[str]:
    return [engine_path(), "load", "--roll", str(roll), "--directory", str(place), *words]


def load(roll: Path, place: Path, *words: str) -> tuple[list[Document], Document]:
    done = subprocess.run(
        command(roll, place, *words), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    *windows, end = [json.loads(line) for line in done.stdout.splitlines()]
    return windows, end


def refused(code: int, *words: str) -> str:
    done = subprocess.run(
        [engine_path(), "load", *words], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (code, ""), done
    assert re.fullmatch(r"etude load: [^\n]+\n", done.stderr), done.stderr
    return done.stderr


@pytest.mark.parametrize("multiple", [1, 4])
def test_what_is_offered_is_what_was_asked_for_and_each_call_is_accounted_for(
    roll: Path, tmp_path: Path, multiple: int
) -> None:
    windows, end = load(roll, tmp_path, "--multiple", str(multiple), "--seconds", "3", "--window", "0.5")
    whole = end["summary"]
    played = whole["roll"]
    assert (whole["target"], whole["ended"], played["multiple"]) == ("roll", "whole", multiple)
    assert whole["asked_rate"] == pytest.approx(played["natural_rate"] * multiple)
    assert whole["offered"] == pytest.approx(whole["asked_rate"] * whole["duration_s"], rel=0.01)
    assert whole["offered"] == whole["completed"] + whole["failed"] + whole["abandoned"]
    assert (whole["failed"], whole["abandoned"], played["not_played"]) == (0, 0, 0)
    # Windows are whole passes, so that each is offered what was asked for.
    passes = windows[0]["duration_s"] * multiple / played["run_s"]
    assert round(passes) == pytest.approx(passes, abs=1e-3)
    assert all(
        window["offered"] == pytest.approx(round(passes) * played["calls"], abs=2) for window in windows
    )
    assert all(window["multiple"] == multiple for window in windows)
    for name in ("offered", "started", "completed"):
        parts = sum(window[name] for window in windows) + (end["drained"] or {name: 0})[name]
        assert parts == whole[name]
    kinds = Counter[str]()
    for window in [*windows, *([end["drained"]] if end["drained"] else [])]:
        kinds.update({name: of["completed"] for name, of in (window.get("by") or {}).items()})
    assert kinds["pwrite64"] == CALLS * played["passes"]
    assert not list(tmp_path.iterdir())  # each pass had a place of its own


def test_the_calls_that_the_kernel_sees_are_those_of_the_roll_in_each_pass(
    roll: Path, tmp_path: Path
) -> None:
    place, trace = tmp_path / "place", tmp_path / "again.trace"
    place.mkdir()
    load_it = command(roll, place, "--multiple", "4", "--seconds", "1")
    done = subprocess.run(
        [engine_path(), "record", "-q", "-o", str(trace), "--", *load_it],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    passes = json.loads(done.stdout.splitlines()[-1])["summary"]["roll"]["passes"]
    assert passes >= 2

    def made(script: Path) -> Counter[str]:
        found = (re.match(r"(?:\d+: )?(\w+)\(", line) for line in script.read_text().splitlines())
        return Counter(call[1] for call in found if call and call[1] in OWN)

    once = made(roll.with_name("run.script"))
    assert once["pread64"] >= CALLS
    assert made(script_of(trace).path) == Counter({name: count * passes for name, count in once.items()})


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def stopped(pid: int) -> bool:
    """Whether it could be stopped: one that had ended meanwhile could not."""
    try:
        os.kill(pid, signal.SIGSTOP)
    except ProcessLookupError:
        return False
    return True


def test_a_stall_is_charged_to_all_calls_that_were_due_in_it(roll: Path, tmp_path: Path) -> None:
    words = command(roll, tmp_path, "--multiple", "1", "--seconds", "3", "--window", "0.1")
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        playing = [pid for pid in children(process.pid) if stopped(pid)]
        begun = time.monotonic()
        time.sleep(0.2)
        stalled_s = time.monotonic() - begun
        for pid in playing:
            os.kill(pid, signal.SIGCONT)
        rest, _ = process.communicate(timeout=60)
    assert playing
    *windows, end = [json.loads(line) for line in (first, *rest.splitlines())]
    drained = [end["drained"]] if end["drained"] else []
    longest, late = 0.0, 0
    for window in [*windows, *drained]:
        for name in ("pwrite64", "pread64"):
            of = (window.get("by") or {}).get(name)
            if of and of["latency"]:
                values, counts = decode(of["latency"])
                longest = max(longest, float(max(values)) / 1e9)
                late += int(counts[values >= 0.3 * stalled_s * 1e9].sum())
    # Those that were due first waited all of it; two calls are due each 4 ms of it, and most wait for a third of it.
    assert longest >= 0.85 * stalled_s
    assert late >= 0.4 * stalled_s / GAP_S


def test_files_that_are_only_read_are_there_once(interpreted: Path, tmp_path: Path) -> None:
    whole, places, on_disk = prepared(interpreted, tmp_path)
    played = whole["roll"]
    assert (whole["ended"], whole["failed"], played["not_played"]) == ("whole", 0, 0)
    assert (played["places"], played["own_bytes"]) == (places, 0)
    assert played["shared_bytes"] > 2_000_000
    assert played["shared_bytes"] <= on_disk < 2 * played["shared_bytes"]
    own, places, on_disk = prepared(interpreted, tmp_path, "--own")
    assert (own["failed"], own["roll"]["shared_files"]) == (0, 0)
    assert own["roll"]["own_bytes"] == played["shared_bytes"]
    assert on_disk >= places * played["shared_bytes"]


def test_calls_outside_of_the_directories_are_left_out_with_their_files(
    interpreted: Path, tmp_path: Path
) -> None:
    words = ("--multiple", "1", "--seconds", "2")
    _, all_of_it = load(interpreted, tmp_path, *words)
    windows, part = load(interpreted, tmp_path, *words, "--only", "work")
    (whole, played), before = (part["summary"], part["summary"]["roll"]), all_of_it["summary"]["roll"]
    left = played["left_out"]
    assert (whole["ended"], whole["failed"], played["not_played"]) == ("whole", 0, 0)
    assert left["calls"] == before["calls"] - played["calls"] > 100
    assert left["files"] > 50
    assert left["bytes"] > 2_000_000
    assert (before.get("left_out"), played["run_s"]) == (None, pytest.approx(before["run_s"], rel=0.05))
    written = sum(window["by"]["write"]["completed"] for window in windows)
    assert written >= played["passes"] - 2 > 0
    at, none = ("--roll", str(interpreted), "--directory", str(tmp_path)), "there/is/none"
    assert none in refused(2, *at, "--rate", "9", "--seconds", "1", "--only", none)


def test_a_signal_ends_it_with_a_summary_and_leaves_nothing(roll: Path, tmp_path: Path) -> None:
    words = command(roll, tmp_path, "--multiple", "1", "--seconds", "20", "--window", "0.1")
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        rest, _ = process.communicate(timeout=60)
        assert process.returncode == 0
    whole = json.loads(rest.splitlines()[-1])["summary"]
    assert whole["ended"] == "early"
    assert whole["offered"] == whole["completed"] + whole["failed"] + whole["abandoned"] > 0
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_played_is_refused_in_one_line(roll: Path, tmp_path: Path) -> None:
    at, rate = ("--directory", str(tmp_path)), ("--rate", "100", "--seconds", "1")
    damaged, none = tmp_path / "damaged.roll", tmp_path / "none.script"
    damaged.write_bytes(roll.read_bytes()[:-40])
    none.write_text("etude script 1\n")
    subprocess.run([engine_path(), "compile", "-q", none], check=True)
    assert "No such file" in refused(3, "--roll", str(tmp_path / "gone"), *at, *rate)
    assert "is no roll" in refused(3, "--roll", str(Path(__file__)), *at, *rate)
    assert "damaged.roll" in refused(3, "--roll", str(damaged), *at, *rate)
    assert "no calls" in refused(3, "--roll", str(tmp_path / "none.roll"), *at, *rate)
    gone = ("--directory", str(tmp_path / "gone"))
    assert "make it first" in refused(5, "--roll", str(roll), *gone, *rate)
    assert "--multiple" in refused(2, "--roll", str(roll), *at, *rate, "--multiple", "2")
    assert "--clients" in refused(2, "--roll", str(roll), *at, "--clients", "2", "--seconds", "1")
    (tmp_path / "etude-load-roll-run").mkdir()
    assert "etude-load-roll-run" in refused(5, "--roll", str(roll), *at, *rate)


def test_two_searches_become_one_report_that_compares_their_peaks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = [str(tmp_path / name) for name in ("slow", "quick")]
    for place, peak in zip(places, (700, 1100), strict=True):
        main(["peak", "--simulate", f"mm1:{peak}", "-o", place, "-q"])
    capsys.readouterr()
    assert main(["report", *places, "-o", str(tmp_path / "both.html")]) == 0
    page = (tmp_path / "both.html").read_text()
    assert {"slow", "quick"} <= set(re.findall(r"\w+", page))
    assert "times the peak" in page
    assert main(["report", *places, "--format", "markdown"]) == 0
    text = capsys.readouterr().out
    ratio = re.search(r"quick against slow: ([\d.]+) times .*?([\d.]+)–([\d.]+) \(95 %\)", text)
    assert ratio is not None
    value, low, high = map(float, ratio.groups())
    assert low < value < high
    assert low < 1100 / 700 < high
