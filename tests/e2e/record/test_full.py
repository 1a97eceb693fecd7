"""`etude record` of programs that are quicker than it: they wait for room, or drop calls, as asked."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from etude.iotrace.reader import read_trace
from etude.program import engine_path
from support.recordings import SOURCES, Recorded, calls, complete, record

pytestmark = [pytest.mark.beside, pytest.mark.needs_program("gcc")]

THREADS, CALLS = 4, 100_000


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("programs")
    for name, flags in (
        ("flood", ["-static", "-lpthread"]),
        ("reads", ["-static"]),
        ("filtered", ["-static"]),
    ):
        subprocess.run(["gcc", "-O1", "-o", directory / name, SOURCES / f"{name}.c", *flags], check=True)
    (directory / "data").write_bytes(b"abcdefghijklmnop")
    return directory


def stopped_for_a_while(words: list[str | Path], at: Path, many: int = 1) -> Recorded:
    """A recording whose recorder stands still while the program runs; `many` of its threads wait then."""
    command = [str(engine_path()), "record", "-q", "-o", at, "--", *words]
    done = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    children = Path(f"/proc/{done.pid}/task/{done.pid}/children")
    until = time.monotonic() + 20.0
    while time.monotonic() < until and done.poll() is None:
        own = children.read_text().split()
        if (
            own
            and len(os.listdir(f"/proc/{own[0]}/task")) >= many
            and at.exists()
            and _executed(own[0], words)
        ):
            break
        time.sleep(0.001)
    os.kill(done.pid, signal.SIGSTOP)
    try:
        time.sleep(1.0)
        assert done.poll() is None
        assert children.read_text().split(), "the program has to wait for the recorder"
    finally:
        os.kill(done.pid, signal.SIGCONT)
    stdout, stderr = done.communicate(timeout=60)
    return Recorded(done.returncode, stdout, stderr, at)


def _executed(pid: str, words: list[str | Path]) -> bool:
    return os.path.basename(os.readlink(f"/proc/{pid}/exe")) in {
        os.path.basename(str(word)) for word in words
    }


@pytest.mark.needs_root
def test_a_real_time_program_that_outruns_the_recorder_loses_no_call(programs: Path, tmp_path: Path) -> None:
    words = ["chrt", "-f", "10", programs / "flood", str(THREADS), str(CALLS)]
    done = record(*words, at=tmp_path / "t")
    assert (done.status, done.said) == (0, [])
    assert complete(done.trace())
    assert 0 <= calls(done.trace(), "pread64") - THREADS * CALLS < 10  # and those that start chrt


@pytest.mark.needs_root
def test_a_recorder_of_real_time_priority_loses_no_call(programs: Path, tmp_path: Path) -> None:
    command = ["chrt", "-f", "10", str(engine_path()), "record", "-q", "-o", tmp_path / "t", "--"]
    done = subprocess.run(
        [*command, programs / "flood", str(THREADS), str(CALLS)], check=True, capture_output=True
    )
    assert done.stderr == b""
    trace = read_trace(tmp_path / "t")
    assert complete(trace)
    assert calls(trace, "pread64") == THREADS * CALLS


def test_calls_that_are_dropped_are_counted(programs: Path, tmp_path: Path) -> None:
    words = [programs / "flood", str(THREADS), str(5 * CALLS)]
    trace = record(*words, at=tmp_path / "t", options=["--full", "drop"]).trace()
    dropped = sum(each["events"] for each in trace.meta if each["what"] == "dropped")
    assert calls(trace, "pread64") <= 5 * THREADS * CALLS
    assert THREADS * CALLS * 5 <= calls(trace, "pread64") + dropped <= 5 * THREADS * CALLS + 2 * THREADS + 40


def test_a_program_waits_for_a_recorder_that_stands_still(programs: Path, tmp_path: Path) -> None:
    done = stopped_for_a_while([programs / "flood", "2", "2000000"], tmp_path / "t", many=3)
    assert (done.status, done.said) == (0, [])
    assert calls(done.trace(), "pread64") == 4_000_000


@pytest.mark.needs_root
def test_who_waits_under_a_filter_makes_no_call_that_it_may_kill_for(programs: Path, tmp_path: Path) -> None:
    words: list[str | Path] = [programs / "filtered", programs / "reads", programs / "data", "300000"]
    done = stopped_for_a_while(words, tmp_path / "t")
    assert (done.status, done.said) == (0, [])
    assert calls(done.trace(), "read") >= 300_000
