"""`etude record` and programs that do what a recorder would rather they did not: they run as without it."""

import errno
import fcntl
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import termios
import time
from ast import literal_eval
from pathlib import Path

import numpy as np
import pytest

from support import real
from support.real import ETUDE
from support.recordings import (
    NOBODY,
    SOURCES,
    Recorded,
    calls,
    compile_c,
    complete,
    counters,
    environment,
    everybodys,
    record,
    small_disk,
)

pytestmark = [pytest.mark.beside, pytest.mark.needs_program("gcc")]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled C programs, and a file `data` for them to read."""
    directory = tmp_path_factory.mktemp("programs")
    compile_c(directory)
    return directory


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test writes to a home directory."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "sites"))


def odd(programs: Path, tmp_path: Path, *words: str | Path, **more: object) -> Recorded:
    return record(programs / "odd", *words, at=tmp_path / "odd.trace", cwd=tmp_path, **more)


# --- all of it is there


@pytest.mark.parametrize("clock", ["tsc", "vdso"])
def test_what_a_function_keeps_below_the_stack_pointer_stays(
    clock: str, programs: Path, tmp_path: Path
) -> None:
    done = record(programs / "redzone", programs / "data", at=tmp_path / "t", options=["--clock", clock])
    assert (done.status, done.said) == (0, [])
    assert complete(done.trace())
    assert calls(done.trace(), "openat") >= 2


@pytest.mark.parametrize("clock", ["tsc", "vdso"])
def test_threads_signals_children_and_loaded_code_at_once(clock: str, programs: Path, tmp_path: Path) -> None:
    words = [programs / "crowd", programs / "data", programs / "library.so", "60"]
    done = record(*words, at=tmp_path / "t", options=["--clock", clock])
    assert (done.status, done.stdout, done.program_stderr) == (0, b"right handled\n", b"")
    trace = done.trace()
    assert done.said == []
    assert complete(trace)
    assert calls(trace, "pread64") >= 3 * 6000
    processes = [each for each in trace.meta if each["what"] == "process"]
    assert len(processes) == 1 + 3 * 6
    assert all(each["parent"] == 0 for each in processes[1:])
    executed = [each["executable"] for each in trace.meta if each["what"] == "exec"]
    assert len(executed) == 1 + 2 * 6


def test_calls_that_stop_their_threads_are_all_there(programs: Path, tmp_path: Path) -> None:
    words = [programs / "crowd", programs / "data", programs / "library.so", "10"]
    done = record(*words, at=tmp_path / "t", options=["--technique", "ptrace"])
    assert (done.status, done.stdout, done.program_stderr) == (0, b"right handled\n", b"")
    trace = done.trace()
    assert (done.said, trace.header["technique"]) == ([], "ptrace")
    assert complete(trace)
    assert calls(trace, "pread64") >= 3 * 1000


def test_code_that_is_mapped_where_other_code_was_is_recorded(programs: Path, tmp_path: Path) -> None:
    done = odd(programs, tmp_path, "over", programs / "library.so", programs / "data")
    assert (done.status, done.said) == (0, [])
    assert complete(done.trace())
    assert calls(done.trace(), "pread64") >= 20


@pytest.mark.parametrize("what", ["sandbox", "stopped", "own-trap", "beside"])
def test_nothing_is_missing_of_an_odd_program(what: str, programs: Path, tmp_path: Path) -> None:
    done = odd(programs, tmp_path, what)
    assert (done.status, done.said) == (0, [])
    assert complete(done.trace())


def test_a_program_that_closes_all_descriptors_goes_on_being_recorded(programs: Path, tmp_path: Path) -> None:
    done = odd(programs, tmp_path, "close-all", tmp_path / "out")
    assert (done.status, done.said) == (0, [])
    assert (tmp_path / "out").read_text() == "first\n"
    trace = done.trace()
    assert complete(trace)
    assert calls(trace, "write") == 1
    assert calls(trace, "close") >= 65536


def test_a_program_that_is_executed_by_a_thread_is_recorded(programs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = odd(programs, tmp_path, "exec-from-thread", programs / "odd", "close-all", out)
    assert (done.status, done.said) == (0, [])
    assert calls(done.trace(), "write") == 1


@pytest.mark.parametrize("technique", ["rewrite", "ptrace"])
def test_the_descriptors_of_pipes_and_of_pairs_of_sockets_are_recorded(
    technique: str, tmp_path: Path
) -> None:
    code = "import os, socket; print(os.pipe()); a, b = socket.socketpair(); print((a.fileno(), b.fileno()))"
    done = record(sys.executable, "-c", code, at=tmp_path / "t", options=["--technique", technique])
    made = [literal_eval(line) for line in done.stdout.decode().splitlines()]
    printed = subprocess.run(
        [ETUDE, "script", "--events", tmp_path / "t"], capture_output=True, check=True, text=True
    )
    found = re.findall(r" (?:pipe2|socketpair)\(.*\[(\d+), (\d+)\]", printed.stdout)
    assert [(int(first), int(second)) for first, second in found][-2:] == made


@pytest.mark.parametrize("technique", ["rewrite", "ptrace"])
def test_the_addresses_of_unix_sockets_are_recorded_where_they_were_taken(
    technique: str, tmp_path: Path
) -> None:
    code = """import socket
kinds = socket.AF_UNIX, socket.SOCK_STREAM
one, other, third = socket.socket(*kinds), socket.socket(*kinds), socket.socket(*kinds)
one.bind("s")
one.listen()
other.connect("s")
print(third.connect_ex("none"))"""
    done = record(
        sys.executable, "-c", code, at=tmp_path / "t", cwd=tmp_path, options=["--technique", technique]
    )
    assert done.stdout == b"2\n"
    trace = done.trace()
    named = [list(trace.names).index(name) for name in ("bind", "connect")]
    texts = [trace.text(int(code)) for code in trace.texts[0][np.isin(trace.call, named)]]
    assert texts == [b"\x01\0s\0", b"\x01\0s\0", b""]


@pytest.mark.parametrize("technique", ["rewrite", "ptrace"])
def test_offsets_that_stand_in_memory_are_recorded_as_they_are_before_the_call(
    technique: str, tmp_path: Path
) -> None:
    code = """import os
one, other = (os.open(name, os.O_RDWR | os.O_CREAT) for name in "ab")
os.write(one, bytes(100))
os.copy_file_range(one, other, 20, 10, 50)
os.copy_file_range(one, other, 20, offset_dst=7)
os.sendfile(other, one, 90, 20)"""
    done = record(
        sys.executable, "-c", code, at=tmp_path / "t", cwd=tmp_path, options=["--technique", technique]
    )
    trace = done.trace()
    named = [list(trace.names).index(name) for name in ("copy_file_range", "sendfile")]
    places = np.flatnonzero(np.isin(trace.call, named))
    texts = [[trace.text(int(which[place])) for which in trace.texts] for place in places]
    offsets = [[int.from_bytes(text, "little") for text in each if text] for each in texts]
    assert offsets == [[10, 50], [7], [90]]


def test_nothing_that_a_killed_program_wrote_is_lost(programs: Path, tmp_path: Path) -> None:
    done = odd(programs, tmp_path, "killed", tmp_path / "out")
    assert (done.status, done.said) == (128 + signal.SIGKILL, [])
    trace = done.trace()
    writes = trace.call == list(trace.names).index("pwrite64")
    assert trace.arguments[3][writes].tolist() == list(range(5000))
    assert {each.get("signal") for each in trace.meta if each["what"] == "ended"} == {signal.SIGKILL}


def test_a_daemon_is_recorded_to_its_end(programs: Path, tmp_path: Path) -> None:
    done = odd(programs, tmp_path, "daemon", tmp_path / "out")
    assert (done.status, done.said) == (0, [])
    assert (tmp_path / "out").read_text() == "from the daemon\n"
    assert calls(done.trace(), "write") == 1


def test_a_program_that_maps_over_the_recorder_is_refused_and_lives_on(
    programs: Path, tmp_path: Path
) -> None:
    if tuple(int(n) for n in os.uname().release.split("-")[0].split(".")[:2]) < (6, 10):
        pytest.skip("this kernel has no mseal (Linux 6.10)")
    done = odd(programs, tmp_path, "map-over")
    assert (done.status, done.said) == (0, [])
    trace = done.trace()
    assert complete(trace)
    for name in ("munmap", "mmap", "mprotect"):
        made = trace.call == list(trace.names).index(name)
        refused = int((trace.result[made] == -errno.EPERM).sum())
        assert refused >= 3, name  # rings, hook, and the way to it


@pytest.mark.parametrize("clock", ["tsc", "vdso"])
def test_places_that_no_jump_can_take_are_recorded_by_stops_if_asked(
    clock: str, programs: Path, tmp_path: Path
) -> None:
    words = [programs / "left", programs / "data", "300"]
    done = record(*words, at=tmp_path / "t", options=["--left", "stop", "--clock", clock])
    assert (done.status, done.stdout, done.program_stderr) == (0, b"right handled\n", b"")
    trace = done.trace()
    assert done.said == []
    assert complete(trace)
    assert calls(trace, "pread64") >= 4 * 300
    images = [each for each in trace.meta if each["what"] == "image" and each["path"].endswith("/left")]
    assert [each["left"] for each in images] == [[]]


def test_places_that_no_jump_can_take_are_named_if_nothing_is_asked(programs: Path, tmp_path: Path) -> None:
    done = record(programs / "left", programs / "data", "300", at=tmp_path / "t")
    assert (done.status, done.stdout) == (0, b"right handled\n")
    trace = done.trace()
    assert not complete(trace)
    assert any(line.startswith("etude record: incomplete: ") for line in done.said)
    [image] = [each for each in trace.meta if each["what"] == "image" and each["path"].endswith("/left")]
    whys = [each["why"].split(": ") for each in image["left"]]
    assert [call for call, _ in whys] == ["pread64", "any call"]
    assert all("flags" in why for _, why in whys)


# --- what cannot be recorded runs unrecorded, and is named


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("strict", "read the clock"),
        ("strict-call", "read the clock"),
        ("no-clock", "read the clock"),
        ("own-gs", "uses %gs itself"),
    ],
)
def test_what_cannot_be_recorded_safely_is_named(what: str, why: str, programs: Path, tmp_path: Path) -> None:
    plain = subprocess.run([programs / "odd", what], capture_output=True, check=False)
    done = odd(programs, tmp_path, what)
    assert (done.status, done.stdout) == (plain.returncode, plain.stdout)
    assert plain.returncode == 0
    assert any(why in line for line in done.said), done.said
    assert any(each["what"] == "unrecorded" and why in each["why"] for each in done.trace().meta)


def test_a_handler_that_jumps_out_of_a_call_loses_that_call_alone(programs: Path, tmp_path: Path) -> None:
    done = odd(programs, tmp_path, "jump")
    assert done.status == 0
    [(kernel, own)] = counters(done.trace())
    assert kernel["syscr"] - own["syscr"] <= 2000  # a jump loses at most one


def test_a_handler_that_fills_the_ring_twice_tears_no_call_wherever_it_interrupts_one(
    programs: Path, tmp_path: Path
) -> None:
    done = odd(programs, tmp_path, "stepped")
    assert (done.status, done.said) == (0, [])
    trace, own = done.trace(), 4096
    made = np.flatnonzero(trace.call == trace.names.index("truncate"))
    numbers, times = np.unique(trace.arguments[1][made], return_counts=True)
    interrupted = len(numbers) - own
    assert interrupted > 50  # instructions of the call and of the hook
    assert numbers.tolist() == list(range(own + interrupted))
    assert set(times[:own].tolist()) <= {interrupted, interrupted - 1}  # the last has fewer instructions
    assert set(times[own:].tolist()) == {1}
    codes = np.unique(np.stack([trace.arguments[1][made] % own, trace.texts[0][made]]), axis=1)
    assert [trace.text(code) for code in codes[1]] == [
        bytes([48 + (n >> 6), 48 + n % 64]) for n in range(own)
    ]


def test_a_program_without_descriptors_to_spare_is_not_harmed(programs: Path, tmp_path: Path) -> None:
    script = f"ulimit -n 3; exec {programs}/odd-static sandbox"
    plain = subprocess.run(["sh", "-c", script], capture_output=True, check=False, stdin=subprocess.DEVNULL)
    done = record("sh", "-c", script, at=tmp_path / "t")
    assert (done.status, done.stdout) == (plain.returncode, plain.stdout)
    assert any(os.strerror(errno.EMFILE) in line for line in done.said), done.said


def test_a_32_bit_program_runs_and_is_named(tmp_path: Path) -> None:
    made = ["gcc", "-m32", "-nostdlib", "-static", "-o", tmp_path / "thin", SOURCES / "bits32.S"]
    if subprocess.run(made, capture_output=True, check=False).returncode:
        pytest.skip("this gcc makes no 32-bit programs")
    try:
        subprocess.run([tmp_path / "thin"], check=False, stdout=subprocess.DEVNULL)
    except OSError:
        pytest.skip("this kernel runs no 32-bit programs")
    done = record(tmp_path / "thin", at=tmp_path / "t")
    assert (done.status, done.stdout) == (7, b"thin\n")
    [line] = (line for line in done.said if line.startswith("etude record: not recorded: process 0: "))
    assert "64-bit" in line


# --- without rights


@pytest.mark.needs_root
@pytest.mark.parametrize("kind", ["static", "go", "env -i", "sh"])
def test_an_ordinary_user_records_all_of_a_program(kind: str, programs: Path) -> None:
    if kind == "go" and shutil.which("go") is None:
        pytest.skip("no program go: install the Debian package golang-go")
    with everybodys() as place:
        shutil.copy(programs / "odd-static", place / "odd")
        words: list[str | Path] = [place / "odd", "close-all", place / "out"]
        if kind == "go":
            more = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}
            build = ["go", "build", "-o", place / "reader", SOURCES / "reader.go"]
            subprocess.run(build, check=True, env={**os.environ, **more})
            words = [place / "reader"]
        elif kind == "env -i":
            words = ["/usr/bin/env", "-i", "/bin/cat", "/etc/passwd"]
        elif kind == "sh":
            words = ["sh", "-c", "cat /etc/passwd | (sort; id -u >&2)"]
        done = record(
            *words,
            at=place / "t",
            engine=str(place / "etude-engine"),
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            env=environment(place / "cache"),
        )
        assert (done.status, done.said) == (0, [])
        assert done.program_stderr == (b"65534\n" if kind == "sh" else b"")
        trace = done.trace()
        assert complete(trace)
        assert calls(trace, "write") >= 1


@pytest.mark.needs_root
@pytest.mark.parametrize("mode", [0o4755, 0o2755])
def test_a_setuid_program_is_refused_before_it_starts(mode: int) -> None:
    with everybodys() as place:
        shutil.copy("/bin/touch", place / "touch")
        (place / "touch").chmod(mode)
        done = record(
            place / "touch",
            place / "made",
            at=place / "t",
            engine=str(place / "etude-engine"),
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
        )
        assert done.status == 5
        [line] = done.said
        assert "setuid" in line
        assert not (place / "made").exists()
        assert not (place / "t").exists()


@pytest.mark.needs_root
def test_a_setuid_program_that_is_executed_later_is_named() -> None:
    with everybodys() as place:
        shutil.copy("/usr/bin/id", place / "id")
        (place / "id").chmod(0o4755)
        done = record(
            *("sh", "-c", f"{place}/id -u; true"),
            at=place / "t",
            engine=str(place / "etude-engine"),
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            env=environment(place / "cache"),
        )
        assert (done.status, done.stdout) == (0, b"65534\n")
        [line] = done.said
        assert f"{place}/id " in line
        assert "another user" in line
        said = [each["why"] for each in done.trace().meta if each["what"] == "unrecorded"]
        assert len(said) == 1
        assert said[0] in line


# --- a wrong start


def test_a_missing_program_is_one_line(tmp_path: Path) -> None:
    for word in ("no-such-program", "./no-such-program"):
        done = record(word, at=tmp_path / "t", cwd=tmp_path)
        assert (done.status, len(done.said), done.program_stderr) == (127, 1, b"")
        assert f"{word}: not found" in done.said[0]
    assert not (tmp_path / "t").exists()


def test_a_program_that_may_not_be_executed_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("#!/bin/sh\n")
    for word in ("./file", "./"):
        done = record(word, at=tmp_path / "t", cwd=tmp_path)
        assert (done.status, len(done.said), done.program_stderr) == (126, 1, b"")
    assert not (tmp_path / "t").exists()


def test_a_trace_that_is_there_already_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("mine")
    done = record("touch", tmp_path / "made", at=tmp_path / "t")
    assert (done.status, len(done.said), done.program_stderr) == (5, 1, b"")
    assert (tmp_path / "t").read_text() == "mine"
    assert not (tmp_path / "made").exists()


def test_no_program_at_all_is_usage(tmp_path: Path) -> None:
    done = subprocess.run([ETUDE, "record"], capture_output=True, check=False, cwd=tmp_path)
    assert done.returncode == 2
    assert list(tmp_path.iterdir()) == []


def test_the_environment_is_that_of_the_caller(tmp_path: Path) -> None:
    for given in ({}, {"LC_CTYPE": "C"}, {"A": "B", "LC_ALL": "C"}):
        env = {**given, "XDG_CACHE_HOME": str(tmp_path)}
        done = record("/usr/bin/env", at=tmp_path / f"{len(given)}{'A' in given}.trace", env=env)
        assert dict(line.split("=", 1) for line in done.stdout.decode().splitlines()) == env


# --- ends


@pytest.mark.parametrize("library", [False, True])
def test_a_program_outlives_a_recorder_that_is_killed(library: bool, programs: Path, tmp_path: Path) -> None:
    command = [ETUDE, "record", "-q", "-o", tmp_path / "t", programs / "odd", "orphan"]
    command += [programs / "library.so"] if library else []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as recorder:
        assert recorder.stdin is not None
        assert recorder.stdout is not None
        assert recorder.stdout.readline() == b"ready\n"
        [program] = real.children(recorder.pid)
        recorder.kill()
        os.waitid(os.P_PID, recorder.pid, os.WEXITED | os.WNOWAIT)
        recorder.stdin.write(b"!")
        recorder.stdin.flush()
        assert recorder.stdout.readline() == b"done\n"
        assert recorder.stdout.read() == b""
    ended = time.monotonic() + 30
    while real.alive(program) and time.monotonic() < ended:
        time.sleep(0.01)
    assert not real.alive(program)
    trace = record("true", at=tmp_path / "other").trace()
    assert trace.partial == ""
    assert Recorded(0, b"", b"", tmp_path / "t").trace(partial=True).partial.startswith("cut short")


def test_a_program_that_is_killed_while_it_starts_another_leaves_no_child_that_waits(tmp_path: Path) -> None:
    """The kernel then does not tell the recorder of the child, which stands still until it is let go."""
    words = ["sh", "-c", "echo $$; read ready; while :; do /bin/true; done"]
    for attempt in range(12):
        at = tmp_path / f"{attempt}.trace"
        command = [ETUDE, "record", "-q", "-o", at, "--", *words]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as recorder:
            try:
                assert recorder.stdout is not None
                program = int(recorder.stdout.readline())
                with open(f"/proc/{program}/task/{program}/children", "rb", buffering=0) as children:
                    assert recorder.stdin is not None
                    recorder.stdin.write(b"\n")
                    recorder.stdin.flush()
                    while not os.pread(children.fileno(), 64, 0):
                        pass
                os.kill(program, signal.SIGKILL)
                assert recorder.wait(timeout=10) == 128 + signal.SIGKILL
            finally:
                recorder.kill()
        trace = Recorded(0, b"", b"", at).trace()
        begun = [each["process"] for each in trace.meta if each["what"] == "process"]
        assert sorted(begun) == sorted(each["process"] for each in trace.meta if each["what"] == "ended")


@pytest.mark.parametrize(("handled", "status"), [(True, 3), (False, 128 + signal.SIGINT)])
def test_an_interrupt_of_the_terminal_is_the_programs(handled: bool, status: int, tmp_path: Path) -> None:
    script = "trap 'echo caught; exit 3' INT; " if handled else ""
    script += "echo ready; while :; do sleep 0.05; done"
    master, slave = pty.openpty()
    command = [ETUDE, "record", "-q", "-o", tmp_path / "t", "sh", "-c", script]
    with subprocess.Popen(
        command,
        stdin=slave,
        stdout=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    ) as recorder:
        assert recorder.stdout is not None
        assert recorder.stdout.readline() == b"ready\n"
        os.write(master, b"\x03")
        out = recorder.stdout.read()
        assert recorder.wait(30) == status
    os.close(master)
    os.close(slave)
    assert out == (b"caught\n" if handled else b"")
    assert Recorded(0, b"", b"", tmp_path / "t").trace().partial == ""


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("to_group", [False, True])
@pytest.mark.parametrize("handled", [False, True])
def test_what_would_end_the_recorder_is_the_programs(
    ending: signal.Signals, to_group: bool, handled: bool, tmp_path: Path
) -> None:
    script = f"trap 'echo caught; exit 3' {ending.name[3:]}; " if handled else ""
    script += "echo ready; while :; do sleep 0.05; done"
    command = [ETUDE, "record", "-q", "-o", tmp_path / "t", "sh", "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as recorder:
        assert recorder.stdout is not None
        assert recorder.stdout.readline() == b"ready\n"
        (os.killpg if to_group else os.kill)(recorder.pid, ending)
        out = recorder.stdout.read()
        assert recorder.wait(30) == (3 if handled else 128 + ending)
    assert out.count(b"caught\n") == int(handled)
    assert Recorded(0, b"", b"", tmp_path / "t").trace().partial == ""


@pytest.mark.needs_root
@pytest.mark.serial
def test_a_full_disk_ends_the_trace_and_not_the_program(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", "64k") as place:
        words = ["dd", "if=/dev/urandom", "of=/dev/null", "bs=1", "count=300000", "status=none"]
        done = record(*words, at=place / "t")
        assert (done.status, done.program_stderr) == (0, b"")
        full = f"ends early: {os.strerror(errno.ENOSPC)}"
        assert any(full in line for line in done.said), done.said
        trace = done.trace(partial=True)
        assert trace.partial.startswith("cut short")
        assert 1_000 < trace.events < 600_000
