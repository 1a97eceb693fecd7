"""examples/leak: memory that is lost in each trial is found with its size; the clean twin loses none."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from support.places import EXAMPLES
from support.real import ETUDE, called, lines

LEAK = EXAMPLES / "leak"
SHM = Path("/dev/shm")
MIB = 1 << 20

pytestmark = pytest.mark.serial


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A directory; nothing of the example is left in memory afterwards, whatever happened."""
    if not SHM.is_dir() or shutil.disk_usage(SHM).free < 400 * MIB:
        pytest.skip("needs 400 MiB in /dev/shm")
    yield tmp_path
    mine = SHM / f"etude-leak-{os.getuid()}"
    left = mine.exists()
    shutil.rmtree(mine, ignore_errors=True)
    assert not left


def steps(results: Path, test: str) -> list[float]:
    """How much free memory fell from each trial to the next, MiB, in order of size."""
    free = [row["metrics"]["memory_obtainable"][0] / MIB for row in lines(results, test)]
    return sorted(before - after for before, after in pairwise(free))


def changed(script: str, place: Path, old: str, new: str) -> str:
    """A copy of a script of the example with other words."""
    text = (LEAK / f"{script}.ap").read_text()
    assert old in text
    (place / "changed.ap").write_text(text.replace(old, new).replace("%SCRIPTDIR%", str(LEAK)))
    return "changed.ap"


def brief(script: str, place: Path) -> str:
    """A copy that has 3 trials."""
    return changed(script, place, f"TEST {script} 20", f"TEST {script} 3")


def loses(script: str, place: Path, low: float, high: float, said: str) -> None:
    """Run it up to five times: what others take and give back meanwhile is in free memory, too."""
    seen = []
    for number in range(5):
        results = place / str(number)
        done = called("run", str(LEAK / f"{script}.ap"), "-o", str(results), cwd=place)
        lost = steps(results, script)
        middle = lost[len(lost) // 2]
        seen.append((middle, done.stdout))
        if low < middle < high and bool(re.search(r"[0-9.]+ MiB a trial", done.stdout)) == bool(said):
            return
    raise AssertionError(seen)


def test_the_leak_is_named_with_its_size(place: Path) -> None:
    loses("leak", place, 12.0, 24.0, "a leak")


def test_the_clean_twin_loses_nothing_and_nothing_is_said(place: Path) -> None:
    """How often a warning is raised on a quiet machine, bench/leak_example.py counts."""
    loses("clean", place, -4.0, 4.0, "")


def test_a_smaller_loss_can_be_asked_for(place: Path) -> None:
    called("run", brief("leak", place), "-o", "r", "LEAK_MIB=1", cwd=place)
    assert len(lines(place / "r", "leak")) == 4


def test_what_was_taken_is_given_back_when_the_run_is_stopped(place: Path) -> None:
    slowly = changed("leak", place, "  EXEC", "  SETUP sleep 1\n  EXEC")
    process = subprocess.Popen(
        [ETUDE, "run", slowly, "-o", "r"],
        cwd=place,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    mine = SHM / f"etude-leak-{os.getuid()}"
    until = time.monotonic() + 30
    while not (mine.exists() and any(mine.iterdir())):
        assert time.monotonic() < until
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 128 + signal.SIGTERM


def test_what_a_killed_run_left_is_given_back_by_the_next(place: Path) -> None:
    mine = SHM / f"etude-leak-{os.getuid()}"
    mine.mkdir(mode=0o700)
    (mine / "leak-1-1-1").write_bytes(b"left")
    called("run", brief("clean", place), "-o", "r", cwd=place)
