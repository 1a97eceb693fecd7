"""`etude record --technique ebpf`: bpftrace watches, and the trace is as complete as any."""

import os
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from etude.iotrace.reader import Trace
from etude.program import engine_path
from support.recordings import (
    DETERMINISTIC,
    NOBODY,
    Recorded,
    calls,
    complete,
    counters,
    environment,
    everybodys,
    furnish,
    record,
    tidy,
    words_of,
)

pytestmark = [
    pytest.mark.needs_root,
    pytest.mark.needs_program("bpftrace"),
    pytest.mark.needs_program("gcc"),
    pytest.mark.usefixtures("tracing"),
]

EBPF = ["--technique", "ebpf"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("place")
    furnish(place)
    return place


def by_ebpf(at: Path, *words: str | Path, **more: object) -> Recorded:
    return record(*words, at=at, options=EBPF, engine=engine_path(), **more)


def sequences(trace: Trace) -> list[list[tuple[str, int]]]:
    """Names and results of each thread that made calls, without those of memory and of waits for others."""
    found: dict[int, list[tuple[str, int]]] = {}
    for row in trace.start_ns.argsort(kind="stable"):
        name = trace.names[trace.call[row]]
        if name not in ("mmap", "brk", "mremap", "futex"):
            found.setdefault(int(trace.thread[row]), []).append((name, int(trace.result[row])))
    return [found[thread] for thread in sorted(found)]


@pytest.mark.parametrize("program", [DETERMINISTIC[3], DETERMINISTIC[5], *DETERMINISTIC[-4:]])
def test_it_records_what_the_other_technique_does(program: str, place: Path, tmp_path: Path) -> None:
    words = words_of(program, place)
    env = environment(place / "sites")
    tidy(place)
    theirs = record(*words, at=tmp_path / "rewrite", engine=engine_path(), cwd=place, env=env)
    tidy(place)
    mine = by_ebpf(tmp_path / "ebpf", *words, cwd=place, env=env)
    assert (mine.status, mine.stdout, mine.stderr) == (theirs.status, theirs.stdout, theirs.stderr)
    assert mine.said == []
    trace, other = mine.trace(), theirs.trace()
    assert complete(trace)
    assert Counter(map(tuple, sequences(trace))) == Counter(map(tuple, sequences(other)))
    assert trace.header["technique"] == "ebpf"
    for what in ("process", "exec", "ended"):
        assert len([each for each in trace.meta if each["what"] == what]) == len(
            [each for each in other.meta if each["what"] == what]
        )


def test_every_thread_has_the_kernels_counts(place: Path, tmp_path: Path) -> None:
    done = by_ebpf(tmp_path / "t", "sh", "-c", "cat text | cat >/dev/null; (exit 3); kill -9 $$", cwd=place)
    assert (done.status, done.said) == (128 + signal.SIGKILL, [])
    trace = done.trace()
    assert complete(trace)
    assert len(counters(trace)) == 4
    ends = [(each["status"], each["signal"]) for each in trace.meta if each["what"] == "ended"]
    assert sorted(ends, key=str) == [(0, None), (0, None), (3, None), (None, 9)]
    pids = {each["process"]: each for each in trace.meta if each["what"] == "process"}
    assert [pids[number]["parent"] for number in sorted(pids)] == [None, 0, 0, 0]


def test_odd_names_are_kept_and_long_ones_are_cut_and_told(tmp_path: Path) -> None:
    odd = b'a\n"b\\\xff\xc3\xa9\x01 '
    long = "d" * 150 + "/" + "e" * 150
    done = by_ebpf(tmp_path / "t", "cat", os.fsdecode(odd), long, cwd=tmp_path)
    trace = done.trace()
    names = {trace.text(int(code)) for code in trace.texts[0]}
    assert odd in names
    assert long[:191].encode() in names
    [line] = done.said
    assert "not recorded: 1 paths" in line
    assert "191" in line


def test_a_running_process_is_recorded_from_now_on_and_not_disturbed(place: Path, tmp_path: Path) -> None:
    loop = "while read line; do cat text; done"
    program = subprocess.Popen(
        ["sh", "-c", loop], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=place, bufsize=0
    )
    assert program.stdin
    assert program.stdout
    text = (place / "text").read_bytes()

    def once() -> None:
        assert program.stdin
        assert program.stdout
        program.stdin.write(b"\n")
        left = len(text)
        while left:
            left -= len(program.stdout.read(left))

    once()
    out = tmp_path / "t"
    command = [engine_path(), "record", *EBPF, "-q", "-o", str(out), "-p", str(program.pid)]
    recorder = subprocess.Popen(command, stderr=subprocess.PIPE)
    while not (out.exists() and out.stat().st_size > 100):  # it watches
        assert recorder.poll() is None
        time.sleep(0.05)
    once()
    once()
    time.sleep(0.5)
    recorder.send_signal(signal.SIGTERM)
    _, said = recorder.communicate(timeout=60)
    assert recorder.returncode == 0, said
    once()
    program.stdin.close()
    assert program.wait() == 0
    trace = Recorded(0, b"", b"", out).trace()
    assert sum(each["what"] == "exec" for each in trace.meta) == 2
    assert len(counters(trace)) == 2  # of both cats; sh runs on
    assert complete(trace)
    written = trace.result[trace.call == list(trace.names).index("write")]
    assert int(written.sum()) == 2 * len(text) or calls(trace, "sendfile") + calls(trace, "splice") > 0


def test_a_process_that_ends_ends_the_recording(tmp_path: Path) -> None:
    program = subprocess.Popen(["sh", "-c", "read line; cat /etc/hostname >/dev/null"], stdin=subprocess.PIPE)
    out = tmp_path / "t"
    command = [engine_path(), "record", *EBPF, "-q", "-o", str(out), "-p", str(program.pid)]
    recorder = subprocess.Popen(command, stderr=subprocess.PIPE)
    while not (out.exists() and out.stat().st_size > 100):
        assert recorder.poll() is None
        time.sleep(0.05)
    program.communicate(b"\n")
    _, said = recorder.communicate(timeout=60)
    assert (recorder.returncode, said) == (0, b"")
    trace = Recorded(0, b"", b"", out).trace()
    assert {each["process"] for each in trace.meta if each["what"] == "ended"} == {0, 1}
    assert complete(trace)


def test_what_bpftrace_loses_is_counted_and_named(place: Path, tmp_path: Path) -> None:
    """With the smallest buffers. What is lost behind the last line of a thread is no thread's."""
    small = tmp_path / "bin"
    small.mkdir()
    real = subprocess.run(["which", "bpftrace"], capture_output=True, text=True, check=True).stdout.strip()
    (small / "bpftrace").write_text(f'#!/bin/sh\nBPFTRACE_PERF_RB_PAGES=1 exec {real} "$@"\n')
    (small / "bpftrace").chmod(0o755)
    env = {**environment(place / "sites"), "PATH": f"{small}:{os.environ['PATH']}"}
    program = place / "programs" / "odd-static"
    done = by_ebpf(tmp_path / "t", program, "close-all", tmp_path / "out", env=env)
    assert done.status == 0
    trace = done.trace()
    lost = sum(each["events"] for each in trace.meta if each["what"] == "dropped")
    assert trace.footer
    assert trace.footer["dropped"] >= lost > 1000
    assert trace.events + trace.footer["dropped"] == pytest.approx(65536 + 40, abs=40)
    assert any("calls are not" in line for line in done.said)
    assert any("lost by bpftrace" in line for line in done.said)


def test_without_rights_or_bpftrace_or_a_process_one_line_says_so(tmp_path: Path) -> None:
    with everybodys() as place:
        at, engine = place / "t", str(place / "etude-engine")
        done = record("true", at=at, options=EBPF, engine=engine, cwd=place, user=NOBODY, group=NOBODY)
        assert done.status == 5
        [line] = done.said
        assert line.startswith("etude record: true: ")
        assert "CAP_BPF and CAP_PERFMON" in line
        assert not at.exists()
        bare = {"PATH": str(place)}
        done = record("/bin/true", at=at, options=EBPF, engine=engine, env=bare)
        assert (done.status, at.exists()) == (5, False)
        assert "bpftrace is not" in done.said[0]
        assert "package bpftrace" in done.said[0]
    gone = subprocess.Popen(["true"])
    gone.wait()
    command = [engine_path(), "record", *EBPF, "-o", str(tmp_path / "t"), "-p", str(gone.pid)]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert said.returncode == 5
    assert "no such process" in said.stderr


def test_a_bpftrace_that_fails_starts_nothing(tmp_path: Path) -> None:
    (tmp_path / "bpftrace").write_text("#!/bin/sh\necho 'ERROR: no such luck' >&2\nexit 1\n")
    (tmp_path / "bpftrace").chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = by_ebpf(tmp_path / "t", "touch", tmp_path / "made", env=env)
    assert done.status == 5
    [line] = done.said
    assert line.startswith("etude record: touch: ")
    assert line.endswith("ERROR: no such luck")
    assert not (tmp_path / "made").exists()
    assert not (tmp_path / "t").exists()
