"""Deterministic programs make the same calls under `etude record` as under strace: names, arguments, results."""

import re
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from etude.program import engine_path
from support.recordings import DETERMINISTIC, environment, furnish, tidy, words_of

pytestmark = [
    pytest.mark.quick,
    pytest.mark.beside,
    pytest.mark.needs_program("strace"),
    pytest.mark.needs_program("setarch", package="util-linux"),
    pytest.mark.needs_program("gcc"),
]

STRACE = ["strace", "-f", "-ttt", "-T", "-o"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in which all of them find what they need."""
    place = tmp_path_factory.mktemp("place")
    furnish(place)
    return place


def run(command: list[str], place: Path, env: dict[str, str]) -> None:
    """In the same state each time."""
    tidy(place)
    done = subprocess.run(
        ["setarch", "-R", *command],
        cwd=place,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
    )
    assert b"etude record:" not in done.stderr, done.stderr
    assert done.returncode < 126, done.stderr


LINE = re.compile(r"^(?: *(\d+) +(\d+) )?-?[0-9.]+ (.*?) <[0-9.]+>$")


def threads(trace: Path, by_thread: bool) -> list[list[str]]:
    """The calls of each process that has some, or of each thread, without addresses; in the order in which they began.

    What a process executes is another thread in a recording, and the same one for strace.
    """
    done = subprocess.run(
        [engine_path(), "trace", "events", trace], capture_output=True, text=True, check=True
    )
    found: dict[tuple[int, int], list[str]] = defaultdict(list)
    for line in done.stdout.splitlines():
        match = LINE.match(line)
        assert match, line
        process, thread, call = match.groups()
        if call.startswith("futex("):
            continue  # who has to wait for whom is another matter each time
        found[int(process or 0), int(thread or 0) if by_thread else 0].append(masked(call))
    return [found[key] for key in sorted(found)]


def masked(call: str) -> str:
    """Without what differs from run to run: addresses, and numbers of processes."""
    call = re.sub(r"\b0x[0-9a-f]+\b|\bNULL\b", "ADDRESS", call)
    return re.sub(r"/proc/\d+/", "/proc/PID/", call)


@pytest.mark.parametrize("program", DETERMINISTIC)
def test_the_calls_are_those_that_strace_sees(program: str, place: Path, tmp_path: Path) -> None:
    words = words_of(program, place)
    env = environment(place / "sites")
    run([engine_path(), "record", "-q", "-o", str(tmp_path / "recorded"), *words], place, env)
    run([*STRACE, str(tmp_path / "log"), *words], place, env)
    imported = [engine_path(), "trace", "import", tmp_path / "log", tmp_path / "imported"]
    subprocess.run(imported, check=True, capture_output=True)
    by_thread = "threads" in words
    recorded, expected = (threads(tmp_path / name, by_thread) for name in ("recorded", "imported"))
    assert [len(calls) for calls in recorded] == [len(calls) for calls in expected]
    assert recorded == expected
    assert sum(map(len, recorded)) > 5
