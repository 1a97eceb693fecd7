"""What `etude record` does at each exec: how many system calls it takes, and that no old knowledge is used."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from etude.iotrace.reader import Trace
from support.real import ETUDE
from support.recordings import SOURCES, complete, record

pytestmark = [pytest.mark.beside, pytest.mark.needs_program("gcc")]

READS = 50
# Of the thread that traces, for a fork, an exec of a program with one library, and its end: 84 on Linux 6.18.
MOST_CALLS = 95


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test writes to a home directory."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "sites"))


@pytest.fixture(scope="module")
def reads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that reads a file: `reads DATA NUMBER`."""
    place = tmp_path_factory.mktemp("reads") / "reads"
    subprocess.run(["gcc", "-O1", "-o", place, SOURCES / "reads.c"], check=True)
    place.with_name("data").write_bytes(b"abcdefghijklmnop")
    return place


def calls_of_tracer(execs: int, at: Path) -> int:
    """System calls of the recorder's first thread while a shell starts so many programs, one after the other."""
    waits = f"echo; read go; for i in $(seq {execs}); do /bin/true; done; true"
    recorder = subprocess.Popen(
        [ETUDE, "record", "-q", "--no-snapshot", "-o", at / f"{execs}.trace", "--", "sh", "-c", waits],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert recorder.stdin
    assert recorder.stdout
    recorder.stdout.readline()
    [tracer] = tracers(recorder.pid)
    counts = at / f"{execs}.counts"
    strace = subprocess.Popen(
        ["strace", "-c", "-U", "calls,name", "-o", counts, "-p", str(tracer)], stderr=subprocess.PIPE
    )
    assert strace.stderr
    strace.stderr.readline()  # attached
    recorder.stdin.write(b"\n")
    recorder.stdin.close()
    assert (recorder.wait(), strace.wait()) == (0, 0)
    lines = re.findall(r"^\s*(\d+)\s+(\w+)\s*$", counts.read_text(), re.MULTILINE)
    return sum(int(number) for number, name in lines if name != "total")


def tracers(root: int) -> list[int]:
    """The processes that trace another one, of this process and its children."""
    found = set()
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
        except OSError:
            continue
        if int(fields["TracerPid"]) and (root in ancestors(int(fields["Pid"]))):
            found.add(int(fields["TracerPid"]))
    return sorted(found)


def ancestors(pid: int) -> list[int]:
    """A process and all above it."""
    found = []
    while pid > 1:
        found.append(pid)
        stat = Path(f"/proc/{pid}/stat").read_text()
        pid = int(stat.rpartition(")")[2].split()[1])
    return found


@pytest.mark.needs_program("strace")
def test_an_exec_takes_few_system_calls_of_the_recorder(tmp_path: Path) -> None:
    few, many = (calls_of_tracer(execs, tmp_path) for execs in (10, 40))
    assert (many - few) / 30 <= MOST_CALLS


def opened(trace: Trace, name: bytes) -> int:
    """How many calls of openat have a path with this end."""
    names = [trace.text(code) for code in trace.texts[0][trace.call == trace.names.index("openat")]]
    return sum(found is not None and found.endswith(name) for found in names)


def test_a_program_that_may_not_make_its_code_writable_is_recorded(reads: Path, tmp_path: Path) -> None:
    refuse_exec_gain = "import ctypes, os, sys; assert ctypes.CDLL(None).prctl(65, 1, 0, 0, 0) == 0; "
    program = refuse_exec_gain + "os.execv(sys.argv[1], sys.argv[1:])"
    command = [sys.executable, "-c", program, str(reads), str(reads.with_name("data")), str(READS)]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip("this kernel has no PR_SET_MDWE (6.3)")
    trace = record(*command, at=tmp_path / "t").trace()
    assert opened(trace, b"/data") == READS
    assert complete(trace)
    assert [each for each in trace.meta if each["what"] in ("unrecorded", "by_stops")] == []


def test_a_program_that_is_written_anew_between_two_execs_is_scanned_anew(
    reads: Path, tmp_path: Path
) -> None:
    """The same inode holds another program of the same length, whose calls are at other places."""
    other = tmp_path / "other"
    source = (SOURCES / "reads.c").read_text()
    more = tmp_path / "more.c"
    more.write_text('__asm__(".text\\n.fill 64, 1, 0x90");\n' + source)
    first = tmp_path / "first"
    for place, made in ((first, SOURCES / "reads.c"), (other, more)):
        subprocess.run(["gcc", "-O1", "-static", "-o", place, made], check=True)
    assert first.stat().st_size == other.stat().st_size
    data = reads.with_name("data")
    script = f'./first {data} {READS}; ./first {data} {READS}; cat "{other}" > first; ./first {data} {READS}'
    done = record("sh", "-c", script, at=tmp_path / "t", cwd=tmp_path)
    trace = done.trace()
    assert done.status == 0, done.stderr
    assert opened(trace, b"/data") == 3 * READS
    assert complete(trace)
