"""Whether all that programs did is in their traces, how large those are, and what making them costs the recorder."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

from etude.iotrace.reader import Trace, read_trace
from recordings.recorder import Said, Scratch, run, said
from rows import BUILD, ROOT, Row, peer, shown, spread

BYTES = 4.0
RAW_BYTES = 64
"""A record as it stands in a ring."""
TREE = "/usr/include"

PYTHON = """\
import json, pathlib, subprocess, tempfile, threading
with tempfile.TemporaryDirectory() as directory:
    def work(number):
        path = pathlib.Path(directory, str(number))
        path.write_text(json.dumps(list(range(1000))))
        assert len(json.loads(path.read_text())) == 1000
    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    [t.start() for t in threads]; [t.join() for t in threads]
    assert subprocess.run(["cat"], input=b"x" * 100000, capture_output=True).stdout == b"x" * 100000
"""
GO = """\
package main

import (
	"os"
	"sync"
)

func main() {
	var all sync.WaitGroup
	for n := 0; n < 8; n++ {
		all.Add(1)
		go func(name string) {
			defer all.Done()
			if os.WriteFile(name, make([]byte, 100000), 0o600) != nil {
				os.Exit(1)
			}
			text, err := os.ReadFile(name)
			if err != nil || len(text) != 100000 {
				os.Exit(1)
			}
			os.Remove(name)
		}(os.Args[1] + string(rune('0'+n)))
	}
	all.Wait()
}
"""
FORTRAN = """\
program numbers
  implicit none
  integer :: i, j
  real :: x, total
  open (unit=10, file='numbers.txt', status='replace')
  do i = 1, 20000
    write (10, '(i8,f12.4)') i, sqrt(real(i))
  end do
  rewind (10)
  total = 0
  do i = 1, 20000
    read (10, *) j, x
    total = total + x
  end do
  close (10)
  open (unit=11, file='numbers.bin', access='direct', recl=512, status='replace')
  do i = 1, 500
    write (11, rec=501 - i) total
  end do
  close (11)
  print *, total
end program
"""


def recorded_whole(rounds: int, place: Scratch) -> list[Row]:
    whole = [whole_row(name, command, place) for name, command in programs(place)]
    return [*whole, *size_rows(rounds, place)]


def programs(place: Scratch) -> list[tuple[str, list[str] | str]]:
    """What is recorded by its name: a command, or why there is none."""
    sources = place.memory / "sources"
    shutil.rmtree(sources, ignore_errors=True)
    sources.mkdir()
    loader, edges = peer("graph_loader", "-pthread"), str(sources / "edges")
    run([loader, "make", "1000000", edges], place)
    fio = ["fio", "--name=x", f"--directory={sources}", "--ioengine=psync", "--rw=randrw", "--size=8M"]
    loop = str(ROOT / "bench" / "peers" / "call_loops.c")
    static = [peer("call_loops", "-static"), "mixed", "15000", "-1", str(sources)]
    return [
        ("tar", ["tar", "-cf", str(sources / "include.tar"), TREE]),
        ("gcc", ["gcc", "-O2", "-o", str(sources / "compiled"), loop]),
        ("python", [sys.executable, "-c", PYTHON]),
        ("sqlite3", ["sqlite3", str(sources / "t.db"), sql()]),
        ("fio psync, two jobs", [*fio, "--bs=4k", "--numjobs=2", "--fallocate=none"]),
        ("git", ["git", "-C", str(repository(sources)), "gc", "--quiet"]),
        ("a Go program", go(sources, place)),
        ("a static C program", static),
        ("a Fortran program", fortran(sources, place)),
        ("a graph loader, four threads", [loader, "load", "4", edges, str(sources / "degrees")]),
    ]


def sql() -> str:
    values = random.Random(1)
    inserts = ", ".join(f"({values.randrange(10**9)}, 'x{n}')" for n in range(20000))
    short = inserts[:100_000].rpartition(", (")[0]
    return f"create table t (a, b); insert into t values {short}; create index i on t (a); select count(*) from t;"


def repository(sources: Path) -> Path:
    """A repository with loose objects."""
    path = sources / "repository"
    subprocess.run(["git", "init", "-q", path], check=True)
    for number in range(30):
        (path / f"file{number}").write_text(f"{number}\n" * 100)
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        for words in (["add", "."], [*who, "commit", "-q", "-m", str(number)]):
            subprocess.run(["git", "-C", path, *words], check=True)
    return path


def go(sources: Path, place: Scratch) -> list[str] | str:
    """A program of Go without C: it makes its calls itself."""
    if shutil.which("go") is None:
        return "go is not installed"
    source, program = sources / "main.go", str(sources / "go-program")
    source.write_text(GO)
    variables = {"CGO_ENABLED": "0", "GOCACHE": str(BUILD / "go-cache"), "GOFLAGS": "-mod=mod"}
    run(["go", "build", "-o", program, str(source)], place, **variables)
    return [program, str(sources / "go-data-")]


def fortran(sources: Path, place: Scratch) -> list[str] | str:
    """A program of Fortran: its I/O library is its own."""
    if shutil.which("gfortran") is None:
        return "gfortran is not installed (packaging/debian-packages.txt)"
    source, program = sources / "numbers.f90", str(sources / "fortran-program")
    source.write_text(FORTRAN)
    run(["gfortran", "-O1", "-o", program, str(source)], place)
    return ["env", "-C", str(sources), program]


def whole_row(name: str, command: list[str] | str, place: Scratch) -> Row:
    what, base, reach = f"completeness: {name}", "the kernel's counters", "100 %, or what is missing is named"
    if isinstance(command, str):
        return Row(what, base, command, reach, None)
    # The recorder's own lines are the last ones; a program may write there as well.
    found = said(run([*place.recorder(), *command], place).stderr)
    return Row(what, base, told(found), reach, found.complete or bool(found.named))


def told(found: Said) -> str:
    text = (
        f"{found.reads:,} of {found.kernel_reads:,} reads, {found.writes:,} of {found.kernel_writes:,} writes"
    )
    return "; ".join([text, *(line.split(";")[0] for line in found.named)])


def size_rows(rounds: int, place: Scratch) -> list[Row]:
    """tar of a tree in the page cache, and what the recorder takes for it beyond what it takes for /bin/true."""
    tar = ["tar", "-cf", str(place.memory / "include.tar"), TREE]
    each, bytes_each, events = [], [], 0
    for _ in range(max(rounds, 2)):
        run([*place.recorder("-q"), "/bin/true"], place)
        start = recorder_cpu_s(read_trace(place.memory / "next.trace"))
        run([*place.recorder("-q", "--no-snapshot"), *tar], place)
        found = read_trace(place.memory / "next.trace")
        events = found.events
        bytes_each.append(found.size_bytes / events)
        each.append(1e9 * (recorder_cpu_s(found) - start) / events)
    path = place.memory / "strace.txt"
    run(["strace", "-f", "-ttt", "-T", "-o", str(path), *tar], place)
    text = path.read_bytes()
    compressed = len(zlib.compress(text, 6)) / text.count(10)
    size, cpu = spread(bytes_each), spread(each)
    strace = f"strace text {len(text) / text.count(10):.3g} B, by zlib {compressed:.3g} B"
    what = f"bytes on disk a call: tar of {TREE}, {events:,} calls"
    run([*place.recorder("-q"), *tar], place)
    with_list = (place.memory / "next.trace").stat().st_size / events
    raw = f"{strace}; raw {RAW_BYTES} B and paths"
    listed = "the same with the list of the files that were named, as recorded by default"
    return [
        Row(what, raw, f"{size} B", f"≤ {BYTES:g} B", size.median <= BYTES),
        shown(listed, "–", f"{with_list:.3g} B"),
        shown("the recorder's CPU time a call, ns: the same, emptying rings, coding, zstd", "–", str(cpu)),
    ]


def recorder_cpu_s(trace: Trace) -> float:
    """What the recorder says that it took, at the end of a whole recording."""
    if trace.footer is None:
        raise ValueError(f"{trace.path}: cut short")
    return float(trace.footer["recorder_cpu_s"])
