"""Eight programs, from their recording to a replay that makes the same calls; and what a replay may never do."""

import errno
import importlib
import itertools
import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from etude.program import engine_path
from support.places import BENCH
from support.recordings import NOBODY, environment, everybodys

pytestmark = [pytest.mark.quick, pytest.mark.beside]


with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(BENCH))
    programs, steps = map(importlib.import_module, ("replays.programs", "replays.steps"))

MEMORY = ("mmap", "munmap", "mremap", "mprotect", "madvise", "brk", "msync")
"""Calls that the replayer also makes for itself."""
NOT_AGAIN = (
    *(f"{name}(" for name in MEMORY),
    "ioctl(",
    "fcntl(",
    "futex(",
    "sqe_",
    "cqe(",
    "io_uring_",
)
"""What a replay makes otherwise, or not at all."""
PACKAGES = {"sqlite3": "sqlite3", "gcc": "make", "git": "git", "fortran": "gfortran"}


def named(name: str) -> Any:
    program = programs.PROGRAMS.get(name, ("sh",))[-1]
    package = PACKAGES.get(name, "(every Debian has it)")
    return pytest.param(name, marks=pytest.mark.needs_program(program, package=package), id=name)


def run(*words: str | Path, at: Path, status: int = 0) -> str:
    """A verb of the engine; what it says on standard error, or prints."""
    command = [engine_path(), *map(str, words)]
    done = subprocess.run(
        command, cwd=at, env=environment(at / "sites"), capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stderr
    return done.stdout + done.stderr


def replayed(at: Path, *options: str, roll: str = "a.roll", status: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run("replay", "--json", *options, roll, "stage", at=at, status=status))
    return found


def prepared(at: Path, script: str = "a.script") -> None:
    shutil.rmtree(at / "stage", ignore_errors=True)
    run("prepare", "-q", script, "stage", at=at)


# --- the programs of the bench


@pytest.fixture(params=[named(name) for name in programs.MAKERS])
def recorded(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A directory with the trace, the script and the roll of a program, and a stage for it."""
    workload = programs.MAKERS[request.param](tmp_path, programs.SMALL)
    workload.fresh()
    words = [engine_path(), "record", "-q", "-o", str(tmp_path / "a.trace"), "--", *workload.command]
    variables = {**environment(tmp_path / "sites"), **workload.variables}
    subprocess.run(words, cwd=workload.directory, env=variables, check=True, capture_output=True)
    run("script", "a.trace", "-o", "a.script", at=tmp_path)
    run("compile", "-q", "a.script", at=tmp_path)
    return tmp_path


def test_a_replay_makes_the_calls_of_its_script(recorded: Path) -> None:
    prepared(recorded)
    report = replayed(recorded)
    assert report["mismatches"] == 0, wrong(report)
    assert report["calls"] > 20
    prepared(recorded)
    replay = [engine_path(), "replay", "-q", "--timing", "none", "a.roll", "stage"]
    run("record", "-q", "-o", "again.trace", "--", *replay, at=recorded)
    again = by_thread(run("script", "--events", "again.trace", at=recorded).splitlines())
    for thread, calls in by_step(recorded / "a.script").items():
        assert any(within(calls, made) for made in again), f"thread {thread}: {calls[:5]} … {calls[-5:]}"


def wrong(report: dict[str, Any]) -> dict[str, Any]:
    return {name: of for name, of in report["by_call"].items() if of["mismatches"]}


def plain(line: str) -> str:
    """A call without descriptors, places in memory, sizes of directories, times."""
    call = re.sub(r" <[\d.]+>$", "", line)
    name, rest = call.split("(", 1)
    result = rest.rsplit(" = ", 1)[-1]
    texts = re.findall(r'"(?:[^"\\]|\\.)+"', rest)  # an empty one is NULL in a script
    failed = result if result.startswith("-1") else ""
    moved = result if name in ("read", "write", "pread64", "pwrite64", "lseek", "readv", "writev") else ""
    return " ".join([name, *texts, failed, moved])


def by_step(path: Path) -> dict[str, list[str]]:
    """The calls of a script, by thread; without those that are not played."""
    found: dict[str, list[str]] = {}
    for line in path.read_text().splitlines():
        step = re.fullmatch(r"(?:(\d+): )?(\w+\(.*\) = .*)", line)
        if step and not step[2].startswith(NOT_AGAIN):
            found.setdefault(step[1] or "0", []).append(plain(step[2]))
    return found


def by_thread(lines: Sequence[str]) -> list[list[str]]:
    """The calls of a trace, by thread, but for looks at a pipe that found nothing: a script has none."""
    found: dict[str, list[str]] = {}
    for line in (line for line in lines if " EAGAIN" not in line):
        event = re.fullmatch(r"(?: *\d+ +(\d+) )?[\d.]+ (\w+\(.*\) = .*)", line)
        if event and not event[2].startswith(NOT_AGAIN):
            found.setdefault(event[1] or "0", []).append(plain(event[2]))
    return list(found.values())


def within(calls: Sequence[str], made: Sequence[str]) -> bool:
    """Whether the first stand among the others, in their order: a replay looks at some of the files itself."""
    rest = iter(joined(made))
    return all(call in rest for call in joined(calls))


def joined(calls: Sequence[str]) -> list[str]:
    """Reads that follow each other as one of all their bytes, and so writes: what a pipe gives comes in pieces."""
    found = []
    for name, group in itertools.groupby(calls, lambda call: call.split()[0]):
        same = list(group)
        bytes_of = [re.fullmatch(r"(?:read|write)  (\d+)", call) for call in same]
        found += [f"{name} {sum(int(each[1]) for each in bytes_of if each)}"] if all(bytes_of) else same
    return found


# --- what is in the way is said, and nothing is played


@pytest.fixture
def by_hand(tmp_path: Path) -> Path:
    """A script that reads a file and writes another."""
    (tmp_path / "a.script").write_text(
        'etude script 1\nfile "in" 100\nopenat(AT_FDCWD, "in", O_RDONLY) = 3 <0.00001>\nread(3, 100) = 100 <0.00001>\n'
        'openat(AT_FDCWD, "out", O_RDWR|O_CREAT, 0644) = 4 <0.00001>\ncompute(0.001)\nwrite(4, 100) = 100 <0.00001>\n'
    )
    run("compile", "-q", "a.script", at=tmp_path)
    return tmp_path


def test_a_hand_written_script_is_played(by_hand: Path) -> None:
    prepared(by_hand)
    report = replayed(by_hand, "--judge", "--late", "10")
    assert (report["calls"], report["mismatches"], report["written_bytes"]) == (4, 0, 100)
    assert (by_hand / "stage" / "out").stat().st_size == 100


def test_another_result_is_told_and_judged(by_hand: Path) -> None:
    prepared(by_hand)
    (by_hand / "stage" / "out").mkdir()
    told = run("replay", "--judge", "a.roll", "stage", at=by_hand, status=1)
    assert "openat 1 of 2." in told
    assert "Not faithful: 33.33 % " in told


def test_a_replay_without_a_schedule_cannot_be_judged(by_hand: Path) -> None:
    """It is refused before anything is played."""
    prepared(by_hand)
    run("replay", "--judge", "--timing", "none", "a.roll", "stage", at=by_hand, status=2)
    assert not (by_hand / "stage" / "out").exists()


def test_a_replay_that_lacks_most_of_the_programs_bytes_is_not_faithful(by_hand: Path) -> None:
    script = by_hand / "b.script"
    head, rest = (by_hand / "a.script").read_text().split("\n", 1)
    dropped = [
        'write "pipe" 2 calls 600 bytes 0 requests 0.000001',
        'ioctl "so" 1 calls 0 bytes 0 requests 0.5',
    ]
    script.write_text("\n".join([head, *(f"dropped {line}" for line in dropped), rest]))
    run("compile", "-q", "b.script", at=by_hand)
    prepared(by_hand)
    report = replayed(by_hand, "--judge", "--late", "10", roll="b.roll", status=1)
    assert report["mismatches"] == 0
    assert (report["unplayed"]["bytes"], report["unplayed"]["bytes_share"]) == (600, 0.75)
    assert [kind["call"] for kind in report["unplayed"]["dropped"]] == ["write", "ioctl"]
    prepared(by_hand)
    replayed(by_hand, "--judge", "--late", "10", "--unplayed", "80%", roll="b.roll")


def test_what_an_untimed_script_does_not_say_is_not_known(by_hand: Path) -> None:
    text = re.sub(r" <[0-9.]+>", "", (by_hand / "a.script").read_text())
    (by_hand / "b.script").write_text(text + "close(-1) = 0\n")
    assert run("script", "check", "b.script", at=by_hand).endswith(
        " s without 5 calls whose times are not known\n"
    )
    run("compile", "-q", "b.script", at=by_hand)
    prepared(by_hand, "b.script")
    report = replayed(by_hand, roll="b.roll")
    assert report["original"]["read_s"] is None
    assert (report["original"]["timed"], set(report["ratios"].values())) == (False, {None})
    assert report["unplayed"]["time_share"] is None
    prepared(by_hand, "b.script")
    told = run("replay", "b.roll", "stage", at=by_hand)
    assert re.search(r"^reading +not known +[0-9.]+ .?s +-$", told, re.M), told


def test_no_call_with_another_result_can_be_asked_for(by_hand: Path) -> None:
    for share in ("0", "0%"):
        prepared(by_hand)
        run(
            "replay",
            "--judge",
            "--late",
            "1",
            "--mismatches",
            share,
            "--unplayed",
            "0",
            "a.roll",
            "stage",
            at=by_hand,
        )


def test_each_call_with_another_result_is_known(by_hand: Path) -> None:
    prepared(by_hand)
    (by_hand / "stage" / "out").mkdir()
    found = replayed(by_hand)["other_results"]
    line = 'openat(AT_FDCWD, "out", O_RDWR|O_CREAT, 0644) = 4'
    opened = {"thread": 0, "step": 3, "line": line, "call": "openat", "expected": 4, "got": -errno.EISDIR}
    assert found == [opened]


@pytest.mark.parametrize(
    ("change", "line", "status"),
    [
        (
            lambda at: (at / "a.roll").write_bytes((at / "a.roll").read_bytes()[:-5]),
            "a.roll: is cut short",
            3,
        ),
        (
            lambda at: (at / "a.roll").write_bytes(b"etuderol\x09" + bytes(20)),
            "a.roll: is a roll of version 9",
            3,
        ),
        (lambda at: (at / "a.roll").write_bytes(b"what is this supposed to be"), "a.roll: is no roll", 3),
        (lambda at: (at / "a.roll").unlink(), "a.roll: No such file", 3),
        (lambda at: shutil.rmtree(at / "stage"), f"stage: {os.strerror(errno.ENOENT)}", 5),
        (lambda at: (at / "stage" / "in").unlink(), "in: is needed", 5),
        (lambda at: (at / "stage" / "in").write_bytes(b"12"), "in: has 2 bytes", 5),
    ],
)
def test_what_is_wrong_is_one_line(change: Any, line: str, status: int, by_hand: Path) -> None:
    prepared(by_hand)
    change(by_hand)
    told = run("replay", "a.roll", "stage", at=by_hand, status=status)
    assert told.startswith(f"etude replay: {line}"), told
    assert len(told.splitlines()) == 1


def test_a_directory_that_was_not_prepared_is_left_alone(by_hand: Path) -> None:
    (by_hand / "stage").mkdir()
    (by_hand / "stage" / "in").write_bytes(bytes(100))
    (by_hand / "stage" / "out").write_bytes(b"a letter")
    told = run("replay", "a.roll", "stage", at=by_hand, status=5)
    assert told.count("\n") == 1
    assert (by_hand / "stage" / "out").read_bytes() == b"a letter"
    assert replayed(by_hand, "--force")["calls"] == 4


def test_a_directory_that_a_replay_has_changed_is_named(by_hand: Path) -> None:
    prepared(by_hand)
    assert [replayed(by_hand)["changed_before"] for _ in range(2)] == [False, True]
    (by_hand / "b.script").write_text('etude script 1\nfile "in" 100\nopenat(AT_FDCWD, "in", O_RDONLY) = 3\n')
    run("compile", "-q", "b.script", at=by_hand)
    prepared(by_hand, "b.script")
    assert [replayed(by_hand, roll="b.roll")["changed_before"] for _ in range(2)] == [False, False]


@pytest.mark.needs_root
def test_a_directory_of_another_user_is_refused(by_hand: Path) -> None:
    prepared(by_hand)
    os.chown(by_hand / "stage", NOBODY, NOBODY)
    told = run("replay", "a.roll", "stage", at=by_hand, status=5)
    assert told.startswith("etude replay: stage: ")
    assert f"user {NOBODY}" in told
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["a.roll"],
        ["a.roll", "stage", "more"],
        ["--timing", "soon", "a.roll", "stage"],
        ["--speed", "0", "a", "b"],
    ],
)
def test_usage(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "a.roll").touch()
    told = run("replay", *words, at=tmp_path, status=2)
    assert told.endswith("etude replay --help\n")
    assert len(told.splitlines()) == 1


def test_a_roll_that_is_there_is_not_overwritten(by_hand: Path) -> None:
    before = (by_hand / "a.roll").read_bytes()
    told = run("compile", "a.script", at=by_hand, status=5)
    assert told.startswith(f"etude compile: a.roll: {os.strerror(errno.EEXIST)}")
    assert (by_hand / "a.roll").read_bytes() == before


def test_an_error_of_a_script_shows_where(by_hand: Path) -> None:
    (by_hand / "b.script").write_text("etude script 1\nopenat(AT_FDCWD, in, O_RDONLY) = 3\n")
    told = run("compile", "b.script", at=by_hand, status=3)
    assert told.startswith("etude compile: b.script:2:18: ")
    assert not (by_hand / "b.roll").exists()


OPENED = 'file "in" 1\nopenat(AT_FDCWD, "in", O_RDONLY) = 3\n'


@pytest.mark.parametrize(
    ("lines", "at"),
    [
        ('name "a" of "a"', 2),
        ('file "." 1', 2),
        ('directory "/"', 2),
        ('file "/usr/in" 1', 2),
        ('file "d/in" 1\nfile "d" 2', 2),
        ('file "in" 1\nfile "in" 2', 3),
        ('link "l" to "../x"', 2),
        (OPENED + "read(3, 1073741825) = 10", 4),
        (OPENED + "readv(3, 2) = 1073741825", 4),
        (OPENED + "read(3, 10) = 11", 4),
    ],
)
def test_a_script_that_no_replay_plays_is_not_compiled(lines: str, at: int, tmp_path: Path) -> None:
    (tmp_path / "it.script").write_text(f"etude script 1\n{lines}\n")
    told = run("compile", "it.script", at=tmp_path, status=3)
    assert told.startswith(f"etude compile: it.script:{at}: ")
    assert (told.count("\n"), list(tmp_path.glob("*.roll"))) == (1, [])


@pytest.mark.needs_root
def test_an_ordinary_user_replays_within_the_directory(by_hand: Path) -> None:
    with everybodys() as place:
        shutil.copy(by_hand / "a.script", place)
        (place / "a.script").chmod(0o644)
        verbs = ["prepare -q a.script stage", "compile -q a.script", "replay --json a.roll stage"]
        shell = ["sh", "-c", " && ".join(f"./etude-engine {verb}" for verb in verbs)]
        done = subprocess.run(
            shell, cwd=place, user=NOBODY, group=NOBODY, capture_output=True, text=True, check=False
        )
        if "cannot be kept within its directory" in done.stderr:
            pytest.skip("user namespaces are not allowed here")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["mismatches"] == 0


def test_nothing_leads_out_of_the_directory(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "kept").write_text("as it was")
    outside = tmp_path / "outside"
    paths = ["../outside/x", f"{outside}/x", "planted/x", "/../../outside/x", "relative/x"]
    lines = [f'openat(AT_FDCWD, "{path}", O_RDWR|O_CREAT, 0644) = 3' for path in paths]
    lines += [f'unlink("{path}") = 0' for path in ["../outside/kept", "planted/kept", f"{outside}/kept"]]
    (tmp_path / "a.script").write_text("\n".join(["etude script 1", *lines, ""]))
    run("compile", "-q", "a.script", at=tmp_path)
    (tmp_path / "stage").mkdir()
    (tmp_path / "stage" / "planted").symlink_to(outside)
    (tmp_path / "stage" / "relative").symlink_to("../outside")
    report = replayed(tmp_path, "--timing", "none", "--force")
    assert report["calls"] == 8
    assert [path.name for path in outside.iterdir()] == ["kept"]
    assert (outside / "kept").read_text() == "as it was"
