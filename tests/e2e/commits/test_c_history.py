"""The history that bisections are tried on: its program's CPU time is proportional to its work."""

from __future__ import annotations

import resource
import subprocess
from pathlib import Path

import pytest

from support.c_history import BUILD, c_history

pytestmark = [
    pytest.mark.needs_program("git"),
    pytest.mark.needs_program("gcc"),
    pytest.mark.needs_program("make"),
]


def cpu_s(program: Path, percent: int) -> float:
    """The least user time of some runs, s."""
    found = []
    for _ in range(7):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        subprocess.run([program, str(percent)], check=True, stdout=subprocess.DEVNULL)
        found.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)
    return min(found)


def test_it_is_the_same_each_time(tmp_path: Path) -> None:
    one, two = (c_history(tmp_path / name, commits=32) for name in ("a", "b"))
    assert one.commits == two.commits
    assert (
        c_history(tmp_path / "c", commits=32, step_percent=1.0).commits[: one.step_at]
        == one.commits[: one.step_at]
    )
    assert len(one.commits) == 32
    assert len(one.side) == 3


def test_its_time_is_proportional_to_its_work(tmp_path: Path) -> None:
    made = c_history(tmp_path / "r", commits=16)
    subprocess.run(BUILD, shell=True, cwd=made.repository, check=True)
    program = made.repository / "program"
    assert cpu_s(program, 400) / cpu_s(program, 100) == pytest.approx(4, rel=0.15)
