"""Time in which a recorded program waited for a CPU: known, and left out of its script on request."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from etude.program import engine_path
from support.recordings import environment, record

pytestmark = [
    pytest.mark.beside,
    pytest.mark.needs_program("taskset", package="util-linux"),
    pytest.mark.needs_program("chrt", package="util-linux"),
]

PROGRAM = """
import os, time
def times():
    counts = open("/proc/thread-self/schedstat").read().split()
    return [*map(int, counts[:2]), time.monotonic_ns()]
file, before = os.open("data", os.O_RDONLY), times()
for turn in range(200):
    os.pread(file, 10, 0)
    until = time.thread_time_ns() + 2_000_000
    while time.thread_time_ns() < until:
        pass
print(*(after - then for then, after in zip(before, times())))
"""
"""Computes for 0.4 s in gaps of 2 ms of CPU time, and prints how long it ran, waited for a CPU, and took."""
CPU = str(min(os.sched_getaffinity(0)))


@dataclass(frozen=True)
class Captured:
    """A capture of the program, beside what the kernel told the program of its loop."""

    share: float
    """Of all gaps that was waiting; Python's start, for which it waits for the recorder as well, is among them."""
    cpu_s: float
    waited_s: float
    took_s: float
    computes_s: float
    """Gaps of the loop in the script."""
    said: str


@contextmanager
def hogs(many: int) -> Iterator[None]:
    """Processes that want the CPU of the program all the time."""
    command = ["taskset", "-c", CPU, sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(command) for _ in range(many)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def etude(*words: str | Path, at: Path) -> subprocess.CompletedProcess[str]:
    command = [engine_path(), *map(str, words)]
    variables = environment(at / "sites")
    return subprocess.run(
        command, cwd=at, env=variables, capture_output=True, text=True, check=True, timeout=120
    )


def captured(at: Path, *options: str) -> Captured:
    (at / "data").write_bytes(bytes(100))
    python = ["taskset", "-c", CPU, sys.executable, "-I", "-S", "-c", PROGRAM]
    done = etude("capture", "-o", "it", *options, "--", *python, at=at)
    own = [int(word) / 1e9 for word in done.stdout.split()]
    *_, loop = (at / "it" / "io.script").read_text().split('"data"')
    computes = re.findall(r"compute\((.*)\)", loop)
    share = json.loads((at / "it" / "capture.json").read_text())["run_delay_share"]
    return Captured(share, *own, sum(map(float, computes)), done.stderr)


@pytest.mark.parametrize("many", [0, 3])
def test_waiting_for_a_cpu_is_told_from_computing(tmp_path: Path, many: int) -> None:
    with hogs(many):
        done = captured(tmp_path)
    assert done.share < done.waited_s / done.took_s + 0.15
    assert ("--without-run-delay" in done.said) == (done.share >= 0.05)
    if many:
        assert done.share > 0.4
        assert done.computes_s > done.took_s - 0.3 * done.waited_s


def test_a_script_without_waiting_computes_for_as_long_as_the_program_did(tmp_path: Path) -> None:
    with hogs(3):
        done = captured(tmp_path, "--without-run-delay")
    assert done.share > 0.4
    assert 0.6 * done.cpu_s < done.computes_s < done.took_s - 0.6 * done.waited_s
    assert "--without-run-delay" not in done.said


def noted(trace: Any, what: str) -> list[Any]:
    return [each for each in trace.meta if each["what"] == what]


@pytest.mark.parametrize("technique", ["rewrite", "ptrace"])
def test_each_thread_has_its_counts_from_beginning_to_end(tmp_path: Path, technique: str) -> None:
    options = ["--technique", technique]
    done = record("sh", "-c", "cat /proc/self/stat; true", at=tmp_path / "t", options=options)
    counts = noted(done.trace(), "run_delay")
    ended = {each["thread"] for each in noted(done.trace(), "counters")}
    assert ended
    for thread in ended:
        own = [each for each in counts if each["thread"] == thread]
        assert len(own) >= 2
        for name in ("at_ns", "cpu_ns", "run_delay_ns"):
            values = [each[name] for each in own]
            assert values == sorted(values)


def test_a_replay_runs_in_the_class_of_the_recording(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(bytes(100))
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    etude("capture", "-q", "-o", "it", "--", "chrt", "--batch", "0", "cat", "data", at=tmp_path)
    script = (tmp_path / "it" / "io.script").read_text()
    assert f"scheduling batch priority 0 nice {nice}" in script.splitlines()
    played = json.loads(etude("replay", "-q", "--json", "it", at=tmp_path).stdout)
    assert played["scheduling"] == {"policy": "batch", "priority": 0, "nice": nice}
    assert (played["scheduling_refused"], played["realtime"]) == (False, False)
    as_is = etude("replay", "-q", "--json", "--sched", "as-is", "it", at=tmp_path)
    assert json.loads(as_is.stdout)["scheduling"] is None
    etude("capture", "-q", "-o", "plain", "--", "chrt", "--other", "0", "cat", "data", at=tmp_path)
    script = (tmp_path / "plain" / "io.script").read_text()
    assert ("scheduling" in script) == (nice != 0)
