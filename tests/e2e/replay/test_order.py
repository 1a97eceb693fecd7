"""Processes of a replay keep the order of what they share; what is written is kept where that is asked for."""

import json
import os
import re
import shutil
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

TIMINGS = ["none", "gap"]


def run(*words: str | Path, at: Path, status: int = 0) -> str:
    command = [engine_path(), *map(str, words)]
    done = subprocess.run(
        command,
        cwd=at,
        env=environment(at / "sites"),
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == status, done.stderr
    return done.stdout + done.stderr


def compiled(at: Path, program: str) -> str:
    """Records a Python program, and makes a roll of it; the script."""
    (at / "it.py").write_text(program)
    (at / "work").mkdir()
    words = [
        engine_path(),
        "record",
        "-q",
        "-o",
        str(at / "a.trace"),
        "--",
        sys.executable,
        "-I",
        str(at / "it.py"),
    ]
    subprocess.run(words, cwd=at / "work", env=environment(at / "sites"), check=True, timeout=30)
    run("script", "a.trace", "-o", "a.script", at=at)
    run("compile", "-q", "a.script", at=at)
    return (at / "a.script").read_text()


def replayed(at: Path, *options: str) -> dict[str, Any]:
    shutil.rmtree(at / "stage", ignore_errors=True)
    run("prepare", "-q", "a.script", "stage", at=at)
    found: dict[str, Any] = json.loads(run("replay", "--json", *options, "a.roll", "stage", at=at))
    return found


def wrong(report: dict[str, Any]) -> dict[str, Any]:
    return {name: of for name, of in report["by_call"].items() if of["mismatches"]}


PIPES = """
import os, time
tasks, answers = os.pipe(), os.pipe()
if os.fork() == 0:
    os.close(tasks[1])
    while True:
        task = os.read(tasks[0], 65536)
        if not task:
            os._exit(0)
        time.sleep(0.001)
        os.write(answers[1], task[:1])
for size in [10, 4096, 70, 5000, 1, 30000] * 20:
    os.write(tasks[1], bytes(size // 2))
    os.write(tasks[1], bytes(size - size // 2))
    os.read(answers[0], 100)
os.close(tasks[1])
os.wait()
"""
LOCKS = """
import fcntl, os, time
for number in range(4):
    if os.fork() == 0:
        for _ in range(20):
            lock = os.open("lock", os.O_RDWR | os.O_CREAT)
            fcntl.flock(lock, fcntl.LOCK_EX)
            log = os.open("log", os.O_RDWR | os.O_CREAT)
            had = os.read(log, 1 << 20)
            os.write(log, bytes(10 + number))
            os.close(log)
            if number % 2:
                fcntl.flock(lock, fcntl.LOCK_UN)
            time.sleep(0.0003)
            os.close(lock)
        os._exit(0)
for _ in range(4):
    os.wait()
"""
RANGES = """
import fcntl, os, random, time
for number in range(4):
    if os.fork() == 0:
        random.seed(number)
        lock = os.open("lock", os.O_RDWR | os.O_CREAT)
        for turn in range(20):
            start, length = random.randrange(50), random.randrange(1, 50)
            kind = random.choice([fcntl.LOCK_EX, fcntl.LOCK_SH])
            while number % 2:
                try:
                    fcntl.lockf(lock, kind | fcntl.LOCK_NB, length, start)
                    break
                except OSError:
                    time.sleep(0.0001)
            else:
                fcntl.lockf(lock, kind, length, start)
            time.sleep(0.0003)
            if turn % 4 == 0:
                os.close(os.open("lock", os.O_RDONLY))
            elif turn < 19:
                fcntl.lockf(lock, fcntl.LOCK_UN)
        os._exit(0)
for _ in range(4):
    os.wait()
"""
DATABASE = """
import os, sqlite3
first = sqlite3.connect("database")
first.execute("create table numbers (number integer)")
first.close()
for _ in range(2):
    if os.fork() == 0:
        own = sqlite3.connect("database", timeout=20, isolation_level=None)
        for _ in range(10):
            own.execute("begin immediate")
            own.execute("insert into numbers select count(*) from numbers")
            own.execute("commit")
        own.close()
        os._exit(0)
for _ in range(2):
    os.wait()
"""


# SQLite looks without its lock for a journal that another process makes and removes meanwhile: of calls that overlap, a
# trace does not say which came first.
@pytest.mark.parametrize(
    ("program", "most"),
    [(PIPES, 0), (LOCKS, 0), (RANGES, 0), (DATABASE, 0.02)],
    ids=["pipes", "locks", "ranges", "database"],
)
def test_what_processes_share_is_met_in_order(program: str, most: float, tmp_path: Path) -> None:
    script = compiled(tmp_path, program)
    assert re.search(r"\n1: ", script)
    for timing in TIMINGS:
        for _ in range(3):
            report = replayed(tmp_path, "--timing", timing)
            assert report["mismatches"] <= most * report["calls"], (timing, wrong(report))
            assert report["calls"] > 150


def played(at: Path, lines: str, *options: str) -> dict[str, Any]:
    (at / "a.script").write_text(f"etude script 1\n{lines}")
    run("compile", "-q", "a.script", at=at)
    return replayed(at, *options)


@pytest.mark.parametrize("flags", ["0", "O_NONBLOCK"])
@pytest.mark.parametrize("timing", TIMINGS)
def test_a_read_of_a_pipe_finds_what_it_found_however_it_comes(
    timing: str, flags: str, tmp_path: Path
) -> None:
    lines = f"""0: pipe2([3, 4], {flags}) = 0
0: fork(1)
0: close(3) = 0
1: close(4) = 0
1: read(3, 65536) = 50000
1: read(3, 200000) = 110010
1: read(3, 100) = 0
0: compute(0.01)
0: write(4, 30000) = 30000
0: compute(0.01)
0: write(4, 130010) = 130010
0: close(4) = 0
0: wait(1)
"""
    report = played(tmp_path, lines, "--timing", timing)
    assert report["mismatches"] == 0, wrong(report)


def test_a_read_of_a_pipe_that_nobody_writes_ends_the_replay(tmp_path: Path) -> None:
    (tmp_path / "a.script").write_text("etude script 1\npipe2([3, 4], 0) = 0\nread(3, 10) = 10\n")
    run("compile", "-q", "a.script", at=tmp_path)
    run("prepare", "-q", "a.script", "stage", at=tmp_path)
    run("replay", "-q", "a.roll", "stage", at=tmp_path, status=3)


def recorded_replay(at: Path, lines: str, *options: str) -> list[str]:
    """The calls that a replay of a script makes, by the recorder."""
    (at / "a.script").write_text(f"etude script 1\n{lines}")
    run("compile", "-q", "a.script", at=at)
    run("prepare", "-q", "a.script", "stage", at=at)
    replay = [engine_path(), "replay", "-q", *options, "a.roll", "stage"]
    run("record", "-q", "-o", "again.trace", "--", *replay, at=at)
    return run("script", "--events", "again.trace", at=at).splitlines()


WAYS = {
    "copies": "copy_file_range(3, NULL, 4, NULL, 100, 0) = 100\nclose(4) = 0",
    "sendfile": "sendfile(4, 3, NULL, 100) = 100\nclose(4) = 0",
    "close_range": "write(4, 10) = 10\nclose_range(4, 9, 0) = 0",
    "dup2": "write(4, 10) = 10\ndup2(3, 4) = 4",
    "exec": "write(4, 10) = 10\nexec()\nfstat(3) = 0",
    "end": "write(4, 10) = 10",
    "end of another process": "fork(1)\n1: write(4, 10) = 10\n0: wait(1)",
}


@pytest.mark.parametrize("way", list(WAYS))
def test_what_was_written_is_made_durable_however_it_is_closed(way: str, tmp_path: Path) -> None:
    lines = f"""file "in" 100
openat(AT_FDCWD, "in", O_RDONLY) = 3
openat(AT_FDCWD, "out", O_RDWR|O_CREAT|O_CLOEXEC, 0644) = 4
{WAYS[way]}
"""
    made = recorded_replay(tmp_path, lines, "--fsync")
    assert sum(" fsync(" in line for line in made) == 1
    shutil.rmtree(tmp_path / "stage")
    (tmp_path / "a.roll").unlink()
    (tmp_path / "again.trace").unlink()
    assert not any(" fsync(" in line for line in recorded_replay(tmp_path, lines))


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="creat is a call of x86-64")
def test_what_creat_makes_is_written_directly(tmp_path: Path) -> None:
    made = recorded_replay(tmp_path, 'creat("out", 0644) = 3\nwrite(3, 4096) = 4096\n', "--direct")
    assert any('"out", O_WRONLY|O_CREAT|O_TRUNC|O_DIRECT, 0644' in line for line in made), made
    assert (tmp_path / "stage" / "out").stat().st_size == 4096


WANDERS = """
import os
for name in ("a", "b"):
    os.mkdir(name)
    open(f"{name}/f", "w").write("x")
for turn in range(20):
    os.chdir("a")
    os.stat("f")
    os.chdir("../b")
    if os.fork() == 0:
        os.stat("../a/f")
        os._exit(0)
    os.wait()
    os.chdir("..")
"""


@pytest.mark.parametrize("timing", TIMINGS)
def test_a_program_that_changes_its_directory_finds_its_files(tmp_path, timing):
    script = compiled(tmp_path, WANDERS)
    assert 'chdir("/' in script
    assert replayed(tmp_path, "--timing", timing)["mismatches"] == 0


def children(pid: int) -> list[int]:
    """Processes that a process of one thread has started, and that live."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


WAITS = 'newfstatat(AT_FDCWD, "/made", 0) = 0'
WAKES = ["compute(600.0)", 'mkdir("/made", 0755) = 0']


@pytest.mark.parametrize(
    "lines",
    [
        ["0: fork(1)", *(f"1: {step}" for step in WAKES), f"0: {WAITS}"],
        ["0: fork(1)", "0: fork(2)", *(f"2: {step}" for step in WAKES), f"1: {WAITS}"],
        [
            "0: pipe2([3, 4], 0) = 0",
            "0: fork(1)",
            "0: fork(2)",
            "2: compute(0.2)",
            "2: write(4, 4096) = 4096",
            "0: read(3, 4096) = 4096",
            "1: compute(600.0)",
        ],
    ],
    ids=["its starter", "its brother, whose starter has ended", "its starter, which reads a pipe"],
)
def test_a_replay_ends_when_a_process_is_killed_for_which_another_waits(
    tmp_path: Path, lines: list[str]
) -> None:
    (tmp_path / "a.script").write_text("\n".join(["etude script 1", *lines]) + "\n")
    run("compile", "-q", "a.script", at=tmp_path)
    run("prepare", "-q", "a.script", "stage", at=tmp_path)
    command = [engine_path(), "replay", "a.roll", "stage"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as replay:
        found: list[int] = []
        many, until = sum("fork" in line for line in lines), time.monotonic() + 20
        while len(found) < many and time.monotonic() < until:
            found = [child for first in children(replay.pid) for child in children(first)]
        os.kill(found[many - 1], signal.SIGKILL)
        _, said = replay.communicate(timeout=20)
    assert replay.returncode == 5
    assert "killed" in said
