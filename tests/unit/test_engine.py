"""Our side of the boundary: requests out, answers in, and an engine that dies or says nonsense."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from etude.engine import Engine, Launch, Repeat, Worker
from etude.errors import MachineRefuses
from etude.experiment.bench import SignalWatch
from etude.program import engine_path

HELLO = '{"hello": {"protocol": 1, "engine": "0.1.0", "pid": 1, "cpus": [0]}}'
TRUE = Launch((Worker(("true",)),))
Engines = Callable[..., Engine]
pytestmark = pytest.mark.timeout(20)


@pytest.fixture
def engine(tmp_path: Path) -> Engines:
    """An engine that is a shell script: `answers` are its lines after the hello, one for each request."""

    def make(script: str, hello: str = HELLO, watch: SignalWatch | None = None) -> Engine:
        program = tmp_path / "engine"
        program.write_text(f"#!/bin/sh\ncd {tmp_path}\necho '{hello}'\n{script}\n")
        program.chmod(0o755)
        return Engine(watch, str(program))

    return make


def answer(text: str) -> str:
    return f"read -r line; printf '%s\\n' \"$line\" >> requests; echo '{text}'\n"


def requests(directory: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (directory / "requests").read_text().splitlines()]


def test_an_answer_of_many_megabytes_is_looked_at_once(engine: Engines) -> None:
    size = 96_000_000
    text = f'read -r line; printf \'{{"rows": [{{"worker": 0, "output": "\'; head -c {size} /dev/zero | tr \'\\0\' a'
    with engine(f"{text}; echo '\"}}]}}'") as running:
        (row,) = running.launch(TRUE)
        assert len(row["output"]) == size


def test_a_launch_is_one_request_with_all_members_and_its_rows_come_back(
    engine: Engines, tmp_path: Path
) -> None:
    with engine(answer('{"id": 1, "rows": [{"worker": 0}]}')) as running:
        assert running.hello["engine"] == "0.1.0"
        assert running.launch(TRUE) == [{"worker": 0}]
    (request,) = requests(tmp_path)
    assert (request["do"], request["id"]) == ("launch", 1)
    documented = {"workers", "timeout_s", "grace_s", "inner", "cgroup", "counters", "capture_bytes"}
    assert set(request) == documented | {"do", "id", "leftovers", "accept", "barrier", "release", "repeat"}
    (worker,) = request["workers"]  # type: ignore[misc]
    assert set(worker) == {"argv", "env", "cwd", "stdin", "stdout", "stderr", "cpus"}


def test_a_worker_beyond_the_time_out_has_failed_though_the_engine_did_not_see_it(engine: Engines) -> None:
    rows = ", ".join(
        f'{{"worker": {worker}, "timed_out": false, "metrics": {{"elapsed": {elapsed}}}}}'
        for worker, elapsed in enumerate(('[40.2, "s"]', '[39.9, "s"]', '[null, "s", "not started"]'))
    )
    with engine(answer(f'{{"id": 1, "rows": [{rows}]}}') * 2) as running:
        limited = replace(TRUE, timeout_s=40.0)
        assert [row["timed_out"] for row in running.launch(limited)] == [True, False, False]
        assert not any(row["timed_out"] for row in running.launch(TRUE))


def test_the_defaults_are_those_of_the_boundary() -> None:
    assert (TRUE.grace_s, TRUE.inner, TRUE.capture_bytes) == (2.0, 1, 4096)
    assert (TRUE.leftovers, TRUE.accept, TRUE.barrier) == ("end", "zero", "start")


def test_requests_are_counted_and_text_of_any_language_goes_through(engine: Engines, tmp_path: Path) -> None:
    text = "é\n\"'\\ ☃ 𝄞"
    with engine(answer('{"id": 1, "rows": []}') + answer('{"id": 2, "ended": 3}')) as running:
        running.launch(Launch((Worker(("echo", text)),)))
        assert running.end() == 3
    first, second = requests(tmp_path)
    assert first["workers"][0]["argv"] == ["echo", text]  # type: ignore[index]
    assert second == {"do": "end", "id": 2}


def test_an_answer_may_come_in_pieces_and_be_long(engine: Engines) -> None:
    long = "x" * 300_000
    script = (
        f'read line; printf \'{{"id": 1, \'; sleep 0.01; printf \'"rows": ["\'; head -c {len(long)} /dev/zero'
    )
    with engine(script + " | tr '\\0' x; echo '\"]}'") as running:
        assert running.launch(TRUE) == [long]


def test_a_repetition_tells_its_progress_and_how_it_ended(engine: Engines, tmp_path: Path) -> None:
    lines = [
        '{"id": 1, "progress": 5}',
        '{"id": 1, "progress": 9}',
        '{"id": 1, "done": 12, "stopped": "failed"}',
    ]
    script = 'read line; echo "$line" >> requests; ' + "; ".join(f"echo '{line}'" for line in lines)
    seen: list[int] = []
    repeat = Repeat(20, "/j", 1, 1, {"test": "a"})
    with engine(script) as running:
        ended = running.repeat(Launch((Worker(("true",)),), repeat=repeat), seen.append)
    assert (seen, ended.done, ended.stopped) == ([5, 9], 12, "failed")
    (request,) = requests(tmp_path)
    assert request["repeat"] == vars(repeat)


@pytest.mark.parametrize("patience", [0, 1])
def test_a_signal_cancels_a_launch_once_patience_is_used_up(
    engine: Engines, tmp_path: Path, patience: int
) -> None:
    script = answer("") + answer('{"id": 1, "rows": ["cancelled"]}')
    with (
        SignalWatch() as watch,
        engine(script.replace("echo ''", "kill -INT $PPID", 1), watch=watch) as running,
    ):
        if patience:
            signal.raise_signal(signal.SIGINT)
        assert running.launch(TRUE, patience=patience) == ["cancelled"]
        assert watch.count == patience + 1
    assert [request["do"] for request in requests(tmp_path)] == ["launch", "cancel"]


@pytest.mark.parametrize(
    ("script", "how"),
    [
        ("exit 3", "status 3"),
        ("kill -KILL $$", "signal 9"),
        ("read line", "status 0"),
    ],
)
def test_an_engine_that_dies_is_one_line_and_no_zombie(engine: Engines, script: str, how: str) -> None:
    running = engine(script)
    with pytest.raises(MachineRefuses, match=how):
        running.launch(TRUE)
    with pytest.raises(ChildProcessError):
        os.waitpid(running.pid, 0)
    running.close()


def test_a_request_that_makes_no_sense_is_one_line(engine: Engines) -> None:
    with (
        engine(answer('{"id": 1, "error": "workers: none"}')) as running,
        pytest.raises(MachineRefuses, match="workers: none"),
    ):
        running.launch(TRUE)


@pytest.mark.parametrize("hello", ['{"hello": {"protocol": 2}}', "{}", "[]", "null", "serve", "7"])
def test_a_program_that_is_not_our_engine_is_named(engine: Engines, hello: str) -> None:
    with pytest.raises(MachineRefuses, match=r"engine: .*reinstall"):
        engine("read line", hello=hello)


def test_a_program_that_says_nothing_is_named(tmp_path: Path) -> None:
    with pytest.raises(MachineRefuses, match=r"true \(process \d+\) .*status 0"):
        Engine(None, "/bin/true")


def test_no_descriptor_is_left_open(engine: Engines) -> None:
    before = set(os.listdir("/proc/self/fd"))
    engine("read line").close()
    for script in ("exit 1",):
        with pytest.raises(MachineRefuses):
            engine(script).launch(TRUE)
    with pytest.raises(MachineRefuses):
        engine("read line", hello="{}")
    with pytest.raises(MachineRefuses):
        Engine(None, "/nowhere/engine")
    assert set(os.listdir("/proc/self/fd")) == before


def test_the_engine_is_the_one_named_or_beside_this_python_or_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "prefix"))
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "beside" / "etude")])
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.delenv("ETUDE_ENGINE", raising=False)
    with pytest.raises(MachineRefuses, match=r"etude-engine: .*reinstall"):
        engine_path()
    for directory in ("path", "beside", "prefix/bin"):
        program = tmp_path / directory / "etude-engine"
        program.parent.mkdir(parents=True)
        program.write_text("")
        program.chmod(0o755)
        assert engine_path() == str(program)
    monkeypatch.setenv("ETUDE_ENGINE", "/named")
    assert engine_path() == "/named"
