"""Threads and processes that wait for each other do so in a replay: if one is late, the other follows."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from etude.iotrace.reader import read_trace
from etude.program import engine_path
from support.recordings import SOURCES, environment

pytestmark = [pytest.mark.beside, pytest.mark.needs_program("gcc")]

DELAY_S = 0.05
KINDS = (
    "threads",
    "joins",
    "processes",
    "locks",
    "fcntl",
    "pipes",
    "socketpairs",
    "looks",
    "unix",
    "abstract",
    "eventfd",
)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("programs") / "meets"
    subprocess.run(["gcc", "-O1", "-Wall", "-o", made, SOURCES / "meets.c", "-lpthread"], check=True)
    return made


def engine(*words: str | Path, at: Path) -> str:
    command = list(map(str, [engine_path(), *words]))
    done = subprocess.run(
        command, cwd=at, env=environment(at / "sites"), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def scripted(program: Path, kind: str, at: Path) -> Path:
    engine("record", "-q", "-o", "a.trace", "--", program, kind, at=at)
    engine("script", "a.trace", "--keep-names", "-o", "a.script", at=at)
    return at / "a.script"


def delayed(script: Path) -> None:
    """Whoever makes "before" does nothing for a while then."""
    lines = script.read_text().splitlines()
    [at] = [
        index for index, line in enumerate(lines) if 'mkdir("before"' in line or 'mkdir("/before"' in line
    ]
    match = re.match(r"(\d+: )?", lines[at])
    assert match
    lines.insert(at + 1, f"{match.group()}compute({DELAY_S})")
    script.write_text("\n".join(lines) + "\n")


def between(at: Path, *options: str) -> float:
    """From "before" to "after" in a replay, s."""
    (at / "a.roll").unlink(missing_ok=True)
    engine("compile", "-q", *options, "a.script", at=at)
    shutil.rmtree(at / "stage", ignore_errors=True)
    engine("prepare", "-q", "a.script", "stage", at=at)
    (at / "again.trace").unlink(missing_ok=True)
    found = json.loads(
        engine(
            "record",
            "-q",
            "-o",
            "again.trace",
            "--",
            engine_path(),
            "replay",
            "--json",
            "a.roll",
            "stage",
            at=at,
        )
    )
    assert found["mismatches"] == 0
    trace = read_trace(at / "again.trace")
    begins = trace.start_ns[trace.call == trace.names.index("mkdir")]
    assert len(begins) == 2
    return float(begins.max() - begins.min()) * 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_who_waits_follows_one_that_is_late(kind: str, program: Path, tmp_path: Path) -> None:
    delayed(scripted(program, kind, tmp_path))
    assert between(tmp_path) >= 0.9 * DELAY_S


@pytest.mark.parametrize("kind", ["threads", "joins", "processes", "eventfd"])
def test_without_their_order_nobody_follows(kind: str, program: Path, tmp_path: Path) -> None:
    """What one waits for in the kernel again (a lock, a pipe) it waits for without."""
    delayed(scripted(program, kind, tmp_path))
    assert between(tmp_path, "--order", "names,descriptors,data,sizes,locks,pipes,requests") < 0.9 * DELAY_S


def test_kinds_of_order_are_named(program: Path, tmp_path: Path) -> None:
    scripted(program, "threads", tmp_path)
    assert re.search(r"\(.*\b\d+ threads\)", engine("compile", "a.script", "-o", "b.roll", at=tmp_path))
    command = [engine_path(), "compile", "--order", "data,weather", "a.script", "-o", "c.roll"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, (tmp_path / "c.roll").exists()) == (2, False)
    assert "weather" in done.stderr
