"""The monitor beside a session: whatever befalls it, the experiment goes on, and why there are no readings is noted."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.experiment import monitoring
from etude.experiment.monitoring import (
    DEFAULT_MONITORING,
    SHORT,
    Monitoring,
    from_document,
    monitor_running,
    to_document,
)
from etude.experiment.plan import digest, make_plan
from etude.experiment.run import run
from etude.results.reader import load_results
from support.fakes import World

# What an engine in its place does with `monitor --output FILE --every 1s --top 5`.
ORDERLY = 'echo monitoring; printf \'{"v":[]}\\n\' >"$3"; cat; echo \'{"end":true}\' >>"$3"'
SHORT_ONE = 'echo monitoring; echo \'{"format":"etude-monitor"}\' >"$3"; cat'
REFUSING = 'echo "etude-engine: no such subcommand" >&2; echo "see --help" >&2; exit 2'
DYING = 'echo monitoring; printf \'{"v":[]}\\n\' >"$3"; kill -9 $$'
STUBBORN = 'echo monitoring; printf \'{"v":[]}\\n\' >"$3"; trap "" TERM; while :; do sleep 0.05; done'

Engine = Callable[[str], Path]


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """Puts a shell script in the engine's place."""

    def make(script: str) -> Path:
        program = tmp_path / "engine"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("ETUDE_ENGINE", str(program))
        return program

    return make


def until(condition: Callable[[], bool]) -> None:
    """Wait for what happens in another process."""
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.005)


def beside(path: Path, seen: Callable[[], bool]) -> dict[str, Any]:
    """What is noted of a session that lasts until something is seen in the file."""
    entry: dict[str, Any] = {"sitting": 3}
    with monitor_running(path, entry, DEFAULT_MONITORING):
        assert entry["monitor"]["file"] in (None, "monitor-3.jsonl")
        until(seen)
    noted: dict[str, Any] = entry["monitor"]
    return noted


def written(path: Path) -> Callable[[], bool]:
    file = path / "monitor-3.jsonl"
    return lambda: file.exists() and file.stat().st_size > 0


def test_it_ends_with_the_sitting(engine: Engine, tmp_path: Path) -> None:
    engine(ORDERLY)
    noted = beside(tmp_path, written(tmp_path))
    assert noted == {"file": "monitor-3.jsonl", "every_s": 1.0, "top": 5, "reason": None}
    assert (tmp_path / "monitor-3.jsonl").read_text() == '{"v":[]}\n{"end":true}\n'


def test_a_sitting_shorter_than_one_interval_leaves_no_file(engine: Engine, tmp_path: Path) -> None:
    engine(SHORT_ONE)
    noted = beside(tmp_path, written(tmp_path))
    assert (noted["file"], noted["reason"]) == (None, SHORT)
    assert not (tmp_path / "monitor-3.jsonl").exists()


def test_why_it_refused_is_noted(engine: Engine, tmp_path: Path) -> None:
    engine(REFUSING)
    noted = beside(tmp_path, lambda: True)
    assert noted["file"] is None
    assert noted["reason"].startswith("etude-engine: ")


def test_that_it_was_killed_is_noted_and_what_it_read_is_kept(engine: Engine, tmp_path: Path) -> None:
    engine(DYING)
    noted = beside(tmp_path, written(tmp_path))
    assert noted["file"] == "monitor-3.jsonl"
    assert "signal 9" in noted["reason"]


def test_one_that_does_not_end_is_killed(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitoring, "PATIENCE_S", 0.2)
    engine(STUBBORN)
    noted = beside(tmp_path, written(tmp_path))
    assert noted["file"] == "monitor-3.jsonl"
    assert "0.2 s" in noted["reason"]
    assert "killed" in noted["reason"]


@pytest.mark.parametrize("place", ["/nowhere/engine", "/etc/passwd"])
def test_without_an_engine_there_is_a_reason(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ETUDE_ENGINE", place)
    noted = beside(tmp_path, lambda: True)
    assert noted["file"] is None
    assert noted["reason"].startswith(f"{place}: cannot be run: ")


def test_it_is_ended_when_the_sitting_fails(engine: Engine, tmp_path: Path) -> None:
    engine(ORDERLY)
    entry: dict[str, Any] = {"sitting": 3}

    def fail() -> None:
        with monitor_running(tmp_path, entry, DEFAULT_MONITORING):
            until(written(tmp_path))
            raise ValueError("the session's own")

    with pytest.raises(ValueError, match="the session's own"):
        fail()
    assert entry["monitor"]["reason"] is None
    assert (tmp_path / "monitor-3.jsonl").read_text().endswith('{"end":true}\n')


def test_it_ends_when_etude_is_killed(engine: Engine, tmp_path: Path) -> None:
    engine(ORDERLY)
    child = os.fork()
    if child == 0:
        with monitor_running(tmp_path, {"sitting": 3}, DEFAULT_MONITORING):
            time.sleep(60)
        os._exit(0)
    try:
        until(written(tmp_path))
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    until(lambda: (tmp_path / "monitor-3.jsonl").read_text().endswith('{"end":true}\n'))


def test_ctrl_c_does_not_reach_it(engine: Engine, tmp_path: Path) -> None:
    """It is in a process group of its own, and ends with the session that the signal ends."""
    engine('ps -o pgid= -p $$ >"$3"; echo \'"v":\' >>"$3"; cat')
    beside(
        tmp_path, lambda: "v" in (tmp_path / "monitor-3.jsonl").read_text() if written(tmp_path)() else False
    )
    assert int((tmp_path / "monitor-3.jsonl").read_text().split()[0]) != os.getpgrp()


def test_off_starts_nothing(engine: Engine, tmp_path: Path) -> None:
    engine(ORDERLY)
    entry: dict[str, Any] = {"sitting": 3}
    with monitor_running(tmp_path, entry, None):
        pass
    assert entry == {"sitting": 3}
    assert not (tmp_path / "monitor-3.jsonl").exists()


def test_nobody_s_engine_is_not_monitored(tmp_path: Path) -> None:
    """With engines that let no time pass there is nothing to read."""
    run(make_plan(["a"], trials=2, seed=1), tmp_path / "r", make_engine=World().make_engine)
    found = load_results(tmp_path / "r").experiment
    assert found["monitor"] == {"every_s": 1.0, "top": 5}
    assert "monitor" not in found["sittings"][0]


def test_what_was_asked_is_no_part_of_the_plan(tmp_path: Path) -> None:
    plan = make_plan(["a"], trials=2, seed=1)
    for number, asked in enumerate((DEFAULT_MONITORING, None, Monitoring(0.1, 0))):
        run(plan, tmp_path / str(number), make_engine=World().make_engine, monitor=asked)
        found = load_results(tmp_path / str(number)).experiment
        assert from_document(found) == asked
        assert found["digest"] == digest(plan)


@given(st.floats(0.01, 3600.0), st.integers(0, 100))
def test_what_was_asked_comes_back(every_s: float, top: int) -> None:
    asked = Monitoring(every_s, top)
    assert from_document({"monitor": to_document(asked)}) == asked
    assert from_document({"monitor": to_document(None)}) is None
    assert from_document({}) is None
