"""`etude capture` and `etude replay CAPTURE`: a program in one line, its replay in the next, nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from etude.program import engine_path
from support.recordings import environment

pytestmark = [pytest.mark.quick, pytest.mark.beside]

OWN = {"capture.json", "io.roll", "io.script"}
SQL = "create table t(a); insert into t values (1), (2), (3); select sum(a) from t;"
PROGRAMS = (
    pytest.param(["tar", "cf", "out.tar", "data"], id="tar"),
    pytest.param(["sqlite3", "base", SQL], id="sqlite3", marks=pytest.mark.needs_program("sqlite3")),
)


def etude(*words: str | Path, at: Path, **more: Any) -> subprocess.CompletedProcess[str]:
    command = [engine_path(), *map(str, words)]
    variables = environment(at / "sites")
    return subprocess.run(
        command, cwd=at, env=variables, capture_output=True, text=True, check=False, timeout=120, **more
    )


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    for name in "abc":
        (tmp_path / "data" / name).write_bytes(bytes(10_000))
    return tmp_path


def captured(place: Path, *command: str) -> subprocess.CompletedProcess[str]:
    done = etude("capture", "-q", "-o", "it", "--", *command, at=place)
    assert names(place / "it") == OWN, done.stderr
    return done


@pytest.mark.parametrize("command", PROGRAMS)
@pytest.mark.parametrize("within", [None, "elsewhere"])
def test_a_program_is_captured_and_replayed_by_a_line_each(
    place: Path, command: list[str], within: str | None
) -> None:
    assert captured(place, *command).returncode == 0
    (place / "elsewhere").mkdir()
    before = names(place)
    options = [] if within is None else ["--in", within]
    done = etude("replay", "--json", *options, "it", at=place)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["calls"] > 20
    assert report["mismatches"] == 0
    assert (names(place), names(place / "it"), names(place / "elsewhere")) == (before, OWN, set())


NAMELESS = """
import ctypes, os
linkat = ctypes.CDLL(None).linkat
for number, (directory, name, flag) in enumerate([(-100, "/proc/self/fd/{}", 0x400), (None, "", 0x1000)]):
    file = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o644)
    os.write(file, b"12345")
    assert linkat(directory or file, name.format(file).encode(), -100, str(number).encode(), flag) == 0
    os.close(file)
    assert os.stat(str(number)).st_size == 5
"""


@pytest.mark.needs_root  # linkat of a descriptor, before Linux 6.10
def test_a_file_without_a_name_gets_it_in_the_replay(place: Path) -> None:
    captured(place, sys.executable, "-S", "-E", "-c", NAMELESS)
    script = (place / "it" / "io.script").read_text()
    assert script.count("linkat(3, NULL, AT_FDCWD, ") == 2
    assert 'file "0"' not in script
    report = json.loads(etude("replay", "--json", "it", at=place).stdout)
    assert (report["mismatches"], report["by_call"]["linkat"]["count"]) == (0, 2)


def test_the_files_of_a_capture_are_those_of_the_single_verbs(place: Path) -> None:
    captured(place, "cat", "data/a")
    assert etude("script", "check", "it/io.script", at=place).returncode == 0
    assert etude("prepare", "-q", "it/io.roll", "stage", at=place).returncode == 0
    assert json.loads(etude("replay", "--json", "it/io.roll", "stage", at=place).stdout)["mismatches"] == 0


def test_the_order_of_a_capture_is_the_one_asked_for(place: Path) -> None:
    line = "cat data/a > data/d; cat data/d data/b > data/e"
    done = etude("capture", "-q", "-o", "it", "--order", "none", "--", "sh", "-c", line, at=place)
    assert done.returncode == 0, done.stderr
    for order in ("none", "all"):
        words = ["compile", "-q", "--order", order, "-o", order, "it/io.script"]
        assert etude(*words, at=place).returncode == 0
    rolls = [(place / roll).read_bytes() for roll in ("it/io.roll", "none", "all")]
    assert rolls[0] == rolls[1] != rolls[2]


@pytest.mark.parametrize(
    ("command", "status"),
    [(["sh", "-c", "exit 7"], 7), (["sh", "-c", "kill -TERM $$"], 128 + signal.SIGTERM)],
)
def test_the_exit_status_is_the_programs(place: Path, command: list[str], status: int) -> None:
    assert captured(place, *command).returncode == status


@pytest.mark.parametrize(("program", "status"), [("no-such-program", 127), ("./data/a", 126)])
def test_a_program_that_cannot_run_leaves_no_capture(place: Path, program: str, status: int) -> None:
    done = etude("capture", "-o", "it", "--", program, at=place)
    assert (done.returncode, len(done.stderr.splitlines())) == (status, 1)
    assert not (place / "it").exists()


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["capture", "--", "true"], 2),
        (["capture", "-o", "new"], 2),
        (["capture", "-o", "new", "--order", "weather", "--", "true"], 2),
        (["capture", "-o", "data", "--", "true"], 5),
        (["capture", "-o", "no/such/place", "--", "true"], 5),
        (["replay", "nothing"], 3),
        (["replay", "data"], 3),
        (["replay", "data/a"], 2),
        (["replay", "--in", ".", "a", "b"], 2),
        (["replay", "--in", "nowhere", "it"], 5),
    ],
)
def test_what_cannot_be_done_is_one_line(place: Path, words: list[str], status: int) -> None:
    captured(place, "true")
    before = names(place)
    done = etude(*words, at=place)
    assert (done.returncode, len(done.stderr.splitlines())) == (status, 1), done.stderr
    assert names(place) == before
    assert names(place / "data") == set("abc")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("capture.json", None),
        ("capture.json", '{"format": "etude-capture", "version": 2}'),
        ("capture.json", "{"),
        ("io.roll", None),
        ("io.roll", "etuderol"),
    ],
)
def test_a_capture_that_is_not_whole_is_refused(place: Path, name: str, content: str | None) -> None:
    captured(place, "true")
    (place / "it" / name).unlink()
    if content is not None:
        (place / "it" / name).write_text(content)
    done = etude("replay", "it", at=place)
    assert (done.returncode, len(done.stderr.splitlines())) == (3, 1), done.stderr


@pytest.mark.parametrize("kind", ["zero", "fifo", "directory"])
@pytest.mark.parametrize(
    "words",
    [
        ["replay", "odd", "place"],
        ["prepare", "odd", "place"],
        ["compile", "odd"],
        ["script", "odd"],
        ["script", "--events", "odd"],
        ["script", "check", "odd"],
        ["script", "import", "odd"],
        ["script", "merge", "it/io.script", "odd"],
        ["trace", "import", "odd", "new"],
        ["load", "--roll", "odd", "--directory", "place", "--multiple", "1", "--seconds", "1"],
        ["replay", "it"],
    ],
    ids=" ".join,
)
def test_what_is_no_ordinary_file_is_refused_and_not_read(place: Path, words: list[str], kind: str) -> None:
    captured(place, "true")
    odd = place / "odd"
    if words == ["replay", "it"]:
        odd = place / "it" / "capture.json"
        odd.unlink()
    if kind == "zero":
        odd.symlink_to("/dev/zero")
    else:
        (os.mkfifo if kind == "fifo" else os.mkdir)(odd)
    done = etude(*words, at=place)
    assert (done.returncode, len(done.stderr.splitlines())) == (3, 1), done.stderr
    assert "ordinary file" in done.stderr


def test_a_script_may_come_through_a_pipe(place: Path) -> None:
    captured(place, "true")
    done = etude("script", "check", "-", at=place, stdin=(place / "it" / "io.script").open())
    assert done.returncode == 0, done.stderr
    piped = ["bash", "-c", f"{engine_path()} script check <(cat it/io.script)"]
    assert subprocess.run(piped, cwd=place, check=False).returncode == 0
    with Path("/dev/zero").open() as zeros:
        assert etude("script", "check", "-", at=place, stdin=zeros).returncode == 3


def replaying(place: Path) -> subprocess.Popen[bytes]:
    """A replay of a program that sleeps for a minute, under way."""
    opened = 'openat(AT_FDCWD, "b", O_WRONLY|O_CREAT, 0644) = 3'
    script = f'etude script 1\nfile "a" 4096\n{opened}\ncompute(60.0)\nclose(3) = 0\n'
    captured(place, "true")
    (place / "slow.script").write_text(script)
    (place / "it" / "io.roll").unlink()
    assert etude("compile", "-q", "slow.script", "-o", "it/io.roll", at=place).returncode == 0
    running = subprocess.Popen([engine_path(), "replay", "it"], cwd=place, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not list((place / "it").glob("etude-replay-*/files/b")):
        assert running.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return running


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_replay_leaves_nothing(place: Path, ending: signal.Signals) -> None:
    running = replaying(place)
    running.send_signal(ending)
    assert running.wait(60) == 128 + ending
    assert names(place / "it") == OWN


def test_what_a_killed_replay_left_is_removed_by_the_next(place: Path) -> None:
    running = replaying(place)
    running.kill()
    running.wait(60)
    assert names(place / "it") > OWN
    (place / "slow.script").unlink()
    os.unlink(place / "it" / "io.roll")
    assert etude("compile", "-q", "it/io.script", "-o", "it/io.roll", at=place).returncode == 0
    deadline = time.monotonic() + 60
    while names(place / "it") != OWN:  # until the kernel has ended its processes
        assert etude("replay", "-q", "it", at=place).returncode == 0
        assert time.monotonic() < deadline
