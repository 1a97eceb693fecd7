"""`etude record -p`: programs that run already are recorded, and let go as they were."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from etude.program import engine_path
from support.recordings import NOBODY, Recorded, calls, compile_c, complete, everybodys

pytestmark = pytest.mark.beside

WORKERS = """
import os, subprocess, sys, threading
kept = os.open(sys.argv[1], os.O_RDONLY)
def work():
    while not told.is_set():
        assert os.pread(kept, 4, 2) == b"cdef"
        told.wait(0.001)
told = threading.Event()
threads = [threading.Thread(target=work) for n in range(4)]
for each in threads:
    each.start()
print("ready", flush=True)
line = os.read(0, 100)
subprocess.run(["cat", sys.argv[1]], check=True)
told.set()
for each in threads:
    each.join()
print(line.decode(), flush=True)
sys.exit(7)
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "data").write_text("abcdefgh\n")
    return tmp_path / "data"


def status(pid: int, name: str) -> str:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith(name))


def until(true: object, what: str) -> None:
    ended = time.monotonic() + 30
    while not true():  # type: ignore[operator]
        assert time.monotonic() < ended, what
        time.sleep(0.005)


@contextmanager
def workers(data: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Threads that read a file, and one that waits for a line."""
    words = [sys.executable, "-c", WORKERS, data]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"ready\n"
        try:
            yield program
        finally:
            program.kill()


@contextmanager
def recording(pid: int, trace: Path) -> Iterator[subprocess.Popen[bytes]]:
    words = [engine_path(), "record", "-q", "-o", trace, "-p", str(pid)]
    with subprocess.Popen(words, stderr=subprocess.PIPE) as recorder:
        until(lambda: status(pid, "TracerPid") == str(recorder.pid), "it is traced")
        try:
            yield recorder
        finally:
            recorder.kill()


def let_go(recorder: subprocess.Popen[bytes], pid: int, by: int = signal.SIGTERM) -> None:
    recorder.send_signal(by)
    assert recorder.wait(30) == 0
    assert recorder.stderr is not None
    assert recorder.stderr.read() == b""
    assert status(pid, "TracerPid") == "0"


def ends_well(program: subprocess.Popen[bytes]) -> None:
    out, _ = program.communicate(b"a line", timeout=30)
    assert (program.returncode, out) == (7, b"abcdefgh\na line\n")


def trace_of(path: Path) -> Recorded:
    return Recorded(0, b"", b"", path)


def test_a_running_process_is_recorded_to_its_end(data: Path, tmp_path: Path) -> None:
    with workers(data) as program, recording(program.pid, tmp_path / "t") as recorder:
        time.sleep(0.2)
        ends_well(program)
        assert recorder.wait(30) == 7
        assert recorder.stderr is not None
        assert recorder.stderr.read() == b""
    trace = trace_of(tmp_path / "t").trace()
    assert complete(trace)
    assert calls(trace, "pread64") > 8
    assert {each["thread"] for each in trace.meta if each["what"] == "counters"} >= set(range(5))
    [descriptors] = [each for each in trace.meta if each["what"] == "descriptors"]
    assert str(data) in [each["path"] for each in descriptors["open"]]
    reads = (trace.call == list(trace.names).index("pread64")) & (trace.process == 0)
    assert {trace.files[place] for place in trace.file[reads].tolist()} == {str(data)}


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_process_that_is_let_go_runs_on_as_it_was(by: int, data: Path, tmp_path: Path) -> None:
    with workers(data) as program:
        for n in range(3):
            with recording(program.pid, tmp_path / f"{n}") as recorder:
                time.sleep(0.1)
                let_go(recorder, program.pid, by)
            trace = trace_of(tmp_path / f"{n}").trace()
            assert complete(trace)
            assert calls(trace, "pread64") > 4
            assert trace.footer is not None
            [note] = trace.footer["notes"]
            assert "1 processes" in note
        ends_well(program)


def test_a_stopped_process_stays_stopped(data: Path, tmp_path: Path) -> None:
    with workers(data) as program:
        program.send_signal(signal.SIGSTOP)
        until(lambda: status(program.pid, "State") == "T", "it is stopped")
        with recording(program.pid, tmp_path / "t") as recorder:
            time.sleep(0.1)
            let_go(recorder, program.pid)
        assert status(program.pid, "State") == "T"
        program.send_signal(signal.SIGCONT)
        ends_well(program)


@pytest.mark.needs_program("gcc")
def test_a_crowd_under_signals_does_not_notice(tmp_path: Path) -> None:
    compile_c(tmp_path)
    words = [tmp_path / "crowd", tmp_path / "data", tmp_path / "library.so", "600"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as program:
        for n in range(3):
            with recording(program.pid, tmp_path / f"{n}") as recorder:
                time.sleep(0.2)
                let_go(recorder, program.pid)
            assert complete(trace_of(tmp_path / f"{n}").trace())
        out, _ = program.communicate(timeout=60)
        assert (program.returncode, out) == (0, b"right handled\n")


def refused(pid: int | str, tmp_path: Path, **more: object) -> str:
    words = [engine_path(), "record", "-o", tmp_path / "refused", "-p", str(pid)]
    done = subprocess.run(words, capture_output=True, check=False, text=True, **more)  # type: ignore[call-overload]
    assert done.returncode == 5
    assert not (tmp_path / "refused").exists()
    [line] = done.stderr.splitlines()
    return str(line)


def test_what_cannot_be_recorded_is_refused_in_one_line(data: Path, tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    assert "it has ended" in refused(ended.pid, tmp_path)
    ended.wait()
    assert "no such process" in refused(ended.pid, tmp_path)
    own = ["sh", "-c", f"exec {engine_path()} record -o {tmp_path}/refused -p $$"]
    done = subprocess.run(own, capture_output=True, check=False, text=True)
    assert (done.returncode, "the recorder itself" in done.stderr) == (5, True)
    with workers(data) as program:
        [thread, *_] = [
            int(tid) for tid in os.listdir(f"/proc/{program.pid}/task") if int(tid) != program.pid
        ]
        assert f"thread of process {program.pid}" in refused(thread, tmp_path)
        with recording(program.pid, tmp_path / "t") as recorder:
            assert f"process {recorder.pid} traces it already" in refused(program.pid, tmp_path)
            let_go(recorder, program.pid)
        ends_well(program)


@pytest.mark.needs_root
def test_a_process_of_another_user_is_refused_in_one_line(data: Path) -> None:
    with workers(data) as program, everybodys() as place:
        words = [place / "etude-engine", "record", "-o", place / "t", "-p", str(program.pid)]
        ids = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        done = subprocess.run(words, capture_output=True, check=False, text=True, **ids)  # type: ignore[call-overload]
        assert (done.returncode, "another user" in done.stderr) == (5, True)
        assert not (place / "t").exists()


@pytest.mark.parametrize("more", [["true"], ["--technique", "rewrite"]])
def test_what_does_not_go_with_a_process_is_usage(more: list[str], tmp_path: Path) -> None:
    done = subprocess.run(
        [engine_path(), "record", "-o", tmp_path / "t", "-p", "1", *more], capture_output=True, check=False
    )
    assert done.returncode == 2
