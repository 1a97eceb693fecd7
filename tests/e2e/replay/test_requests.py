"""Programs whose I/O is asynchronous, from their recording to a replay that makes the same requests."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from etude.iotrace.reader import Trace, read_trace
from etude.program import engine_path
from support.recordings import SOURCES, environment

pytestmark = [pytest.mark.beside, pytest.mark.needs_program("gcc")]

BLOCK, COUNT, DEPTH = 4096, 1000, 8
NOT_THERE = 77


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("programs")
    for name in ("requests", "refuses"):
        subprocess.run(["gcc", "-O1", "-Wall", "-o", directory / name, SOURCES / f"{name}.c"], check=True)
    return directory


def engine(*words: str | Path, at: Path, before: tuple[str | Path, ...] = ()) -> str:
    command = [*before, engine_path(), *words]
    done = subprocess.run(
        list(map(str, command)),
        cwd=at,
        env=environment(at / "sites"),
        capture_output=True,
        text=True,
        timeout=60,
    )
    if done.returncode == NOT_THERE:
        pytest.skip(f"not to be had here: {done.stderr}")
    assert done.returncode == 0, done.stderr
    return done.stdout


def recorded(program: Path, kind: str, at: Path, count: int = COUNT) -> Trace:
    """A trace, its script and its roll as `a.*`."""
    engine("record", "-q", "-o", "a.trace", "--", program, kind, str(DEPTH), str(count), "data", at=at)
    engine("script", "a.trace", "-o", "a.script", at=at)
    engine("compile", "-q", "a.script", at=at)
    return read_trace(at / "a.trace")


def replayed(at: Path, *options: str, before: tuple[str | Path, ...] = ()) -> dict[str, Any]:
    shutil.rmtree(at / "stage", ignore_errors=True)
    engine("prepare", "-q", "a.script", "stage", at=at)
    found: dict[str, Any] = json.loads(
        engine("replay", "--json", *options, "a.roll", "stage", at=at, before=before)
    )
    return found


def rows(trace: Trace, name: str) -> int:
    return int((trace.call == trace.names.index(name)).sum()) if name in trace.names else 0


@pytest.mark.parametrize("kind", ["uring", "fixed", "aio"])
def test_each_request_is_recorded_and_played(kind: str, programs: Path, tmp_path: Path) -> None:
    trace = recorded(programs / "requests", kind, tmp_path)
    request, completion = ("iocb", "io_event") if kind == "aio" else ("sqe", "cqe")
    assert [rows(trace, f"{request}_{what}") for what in ("write", "read", "other")] == [COUNT, COUNT, 0]
    assert rows(trace, completion) == 2 * COUNT + (kind != "aio")
    assert (np.diff(trace.start_ns.astype(np.int64)) >= 0).all(), (
        "they stand behind what the thread did before"
    )
    found = replayed(tmp_path)
    assert (found["mismatches"], found["unplayed"]["requests"]) == (0, 0)
    assert (found["read_bytes"] // BLOCK, found["written_bytes"]) == (COUNT, COUNT * BLOCK)
    assert found["unplayed"]["bytes_share"] < 0.001
    assert [found["by_call"][f"{request}_{what}"]["count"] for what in ("write", "read")] == [COUNT, COUNT]
    assert (tmp_path / "stage/etude_tmp1").stat().st_size == COUNT * BLOCK
    assert not found["by_threads"]


def test_a_linked_sync_is_played_behind_its_write(programs: Path, tmp_path: Path) -> None:
    count = 50
    trace = recorded(programs / "requests", "links", tmp_path, count)
    assert [rows(trace, name) for name in ("sqe_write", "sqe_fsync")] == [count, count + 1]
    assert (tmp_path / "a.script").read_text().count("IOSQE_IO_LINK) = 4096") == count
    found = replayed(tmp_path)
    assert found["mismatches"] == 0
    assert [found["by_call"][name]["count"] for name in ("sqe_write", "sqe_fsync")] == [count, count + 1]


@pytest.mark.parametrize("kind", ["uring", "aio"])
def test_threads_play_what_the_kernel_does_not(kind: str, programs: Path, tmp_path: Path) -> None:
    recorded(programs / "requests", kind, tmp_path)
    found = replayed(tmp_path, before=(programs / "refuses",))
    assert found["by_threads"]
    assert (found["mismatches"], found["written_bytes"]) == (0, COUNT * BLOCK)
    assert (tmp_path / "stage/etude_tmp1").stat().st_size == COUNT * BLOCK


@pytest.mark.needs_program("fio")
@pytest.mark.parametrize("options", [["io_uring", "--registerfiles", "--fixedbufs"], ["libaio"]])
def test_what_fio_asks_for_is_played(options: list[str], tmp_path: Path) -> None:
    ways = [f"--ioengine={options[0]}", *options[1:], "--iodepth=8", "--direct=1", "--bs=4k", "--size=1m"]
    command = ["fio", "--name=j", "--filename=data", "--rw=randrw", "--randseed=1", "--thread", *ways]
    engine("record", "-q", "-o", "a.trace", "--", *command, at=tmp_path)
    engine("script", "a.trace", "-o", "a.script", at=tmp_path)
    engine("compile", "-q", "a.script", at=tmp_path)
    found = replayed(tmp_path)
    assert found["unplayed"]["requests"] == 0
    assert found["unplayed"]["bytes_share"] < 0.02
    made = sum(of["count"] for name, of in found["by_call"].items() if name.startswith(("sqe_", "iocb_")))
    assert made >= 256
    assert not [other for other in found["other_results"] if other["call"].startswith(("sqe_", "iocb_"))]


def test_a_thread_of_the_kernel_that_takes_requests_is_named(tmp_path: Path, programs: Path) -> None:
    """A ring with SQPOLL: nothing tells of its requests, and a replay says so."""
    script = tmp_path / "a.script"
    if not shutil.which("fio"):
        pytest.skip("fio is not installed")
    command = ["fio", "--name=j", "--filename=data", "--rw=write", "--bs=4k", "--size=256k", "--thread"]
    ways = ["--ioengine=io_uring", "--sqthread_poll", "--iodepth=4"]
    engine("record", "-q", "-o", "a.trace", "--", *command, *ways, at=tmp_path)
    engine("script", "a.trace", "-o", "a.script", at=tmp_path)
    [dropped] = [
        line for line in script.read_text().splitlines() if line.startswith("dropped io_uring_setup")
    ]
    assert " 0 requests" not in dropped
