"""Probes around real launches: who else used the CPU is found by name, with what it says that it used."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from etude.engine import Engine, Launch, Worker
from etude.probes.executables import find_executables
from etude.probes.probe import Context, Probe
from etude.probes.run_probes import RunProbes, find_probe

PYTHON = os.path.realpath(sys.executable)
AT_LEAST_S = 2.0
LINE = re.compile(r"(.+) = ([0-9.]+) s \((?:([0-9]+) process|.)")

# Burns CPU time, not wall time: SECONDS of it, then writes what the kernel says that it used to REPORT.
BURN = """
import os, resource, sys, time
seconds, report = float(sys.argv[1]), sys.argv[2]
while time.process_time() < seconds:
    sum(range(10_000))
used = resource.getrusage(resource.RUSAGE_SELF)
open(report + '.new', 'w').write(str(used.ru_utime + used.ru_stime))
os.rename(report + '.new', report)
"""

THREADS = """
import hashlib, os, resource, sys, threading
block, report = bytes(1 << 20), sys.argv[2]
def burn():
    while time.thread_time() < float(sys.argv[1]):
        hashlib.sha256(block)
import time
threads = [threading.Thread(target=burn) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
used = resource.getrusage(resource.RUSAGE_SELF)
open(report + '.new', 'w').write(str(used.ru_utime + used.ru_stime))
os.rename(report + '.new', report)
"""

MANY = """
import os, resource, sys
count, report, program = int(sys.argv[1]), sys.argv[2], sys.argv[3]
code = 'import time\\nwhile time.process_time() < 0.02: pass'
for _ in range(count):
    os.waitpid(os.posix_spawn(program, [program, '-ISc', code], {}), 0)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
open(report + '.new', 'w').write(str(used.ru_utime + used.ru_stime))
os.rename(report + '.new', report)
"""

# Burns CPU, as do its child and an orphan, until two seconds have passed and the report is there.
MEASURED = """
import os, sys, time
end, report, child = time.monotonic() + float(sys.argv[1]), sys.argv[2], sys.argv[3]
code = 'import time\\nwhile time.process_time() < 0.3: pass'
os.waitpid(os.posix_spawn(child, [child, '-ISc', code], {}), 0)
if os.fork() == 0:
    if os.fork() == 0:
        os.execv(child, [child, '-ISc', code])
    os._exit(0)
os.wait()
while time.monotonic() < end or not os.path.exists(report):
    sum(range(100_000))
"""


@dataclass
class Bench:
    """An engine, probes around its launches, and programs with names of their own."""

    directory: Path
    engine: Engine

    def program(self, name: str) -> str:
        """This Python under another name, which is also the name that the kernel gives its processes."""
        path = self.directory / name
        if not path.exists():
            path.symlink_to(PYTHON)
        return str(path)

    def beside(self, code: str, amount: str, name: str, report: str, *more: str) -> subprocess.Popen[bytes]:
        """Start a foreign program."""
        command = [self.program(name), "-ISc", code, amount, str(self.directory / report), *more]
        return subprocess.Popen(command)

    def said_s(self, report: str) -> float:
        return float((self.directory / report).read_text())

    def measured(self, report: str) -> Worker:
        """A command that takes at least two seconds, and until the report is there."""
        arguments = (str(AT_LEAST_S), str(self.directory / report), self.program("etu-child"))
        return Worker((self.program("etu-measured"), "-ISc", MEASURED, *arguments))

    def around(self, *probes: Probe) -> RunProbes:
        return RunProbes(probes)

    def end(self, probing: RunProbes) -> tuple[dict[str, Any], dict[str, list[str]], list[str]]:
        metrics, blocks, notes = probing.end(Context(engine_pid=self.engine.pid))
        return dict(metrics), {block.name: list(block.lines) for block in blocks}, notes


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with Engine() as engine:
        yield Bench(tmp_path, engine)


def shares(lines: list[str]) -> dict[str, tuple[float, int]]:
    """Seconds and number of processes by name."""
    found = filter(None, map(LINE.match, lines))
    return {line[1]: (float(line[2]), int(line[3] or 0)) for line in found}


def cpu_clock_s(pid: int) -> float:
    """CPU time of another process from its own clock (clock_getcpuclockid(3) makes its number so)."""
    return time.clock_gettime((~pid << 3) | 2)


def assert_none_of_it_was_measured(seen: dict[str, tuple[float, int]], row: dict[str, Any]) -> None:
    assert not {"etu-measured", "etu-child"} & seen.keys()
    own_s = sum(row["metrics"][name][0] for name in ("user", "system", "orphans_user", "orphans_system"))
    assert seen["(measured)"][0] == pytest.approx(own_s, rel=0.1)


@pytest.mark.needs_root
def test_a_program_that_burns_all_the_time_appears_by_name_with_what_it_used(bench: Bench) -> None:
    probing = bench.around(*find_probe(["others"]))
    with bench.beside(BURN, "1000", "etu-burner", "never") as burner:
        try:
            while cpu_clock_s(burner.pid) < 0.1:
                time.sleep(0.01)
            (bench.directory / "ready").touch()
            probing.start()
            before_s = cpu_clock_s(burner.pid)
            (row,) = bench.engine.launch(Launch((bench.measured("ready"),)))
            used_s = cpu_clock_s(burner.pid) - before_s
            metrics, blocks, notes = bench.end(probing)
        finally:
            burner.kill()
    assert (row["exit_status"], notes) == (0, [])
    assert row["metrics"]["elapsed"][0] >= AT_LEAST_S
    seen = shares(blocks["others"])
    assert seen["etu-burner"] == (pytest.approx(used_s, rel=0.1), 1)
    assert metrics["others_cpu"][0] >= seen["etu-burner"][0]
    assert metrics["others_coverage"] == [1, "1"]
    assert_none_of_it_was_measured(seen, row)


@pytest.mark.needs_root
@pytest.mark.parametrize(
    ("code", "amount", "name", "processes"),
    [
        pytest.param(BURN, "1", "etu-once", 1, id="one that begins and ends meanwhile"),
        pytest.param(THREADS, "0.3", "etu-threads", 1, id="one with threads"),
        pytest.param(MANY, "40", "etu-driver", 40, id="many short-lived ones"),
    ],
)
def test_a_program_that_comes_and_goes_appears_by_name_with_what_it_says_itself(
    bench: Bench, code: str, amount: str, name: str, processes: int
) -> None:
    probing = bench.around(*find_probe(["others"]))
    short = bench.program("etu-short")
    probing.start()
    with bench.beside(code, amount, name, "report", short) as burner:
        (row,) = bench.engine.launch(Launch((bench.measured("report"),)))
        assert burner.wait(timeout=10) == 0
    metrics, blocks, _ = bench.end(probing)
    seen = shares(blocks["others"])
    found = seen["etu-short" if code == MANY else name]
    assert found == (pytest.approx(bench.said_s("report"), rel=0.1), processes)
    assert metrics["others_coverage"] == [1, "1"]
    assert_none_of_it_was_measured(seen, row)


# As nobody: everything is imported first, because nobody may not be able to read it.
AS_NOBODY = """
import json, os, sys, time
from etude.probes.others import Others
from etude.probes.probe import Context
from etude.probes.run_probes import RunProbes
os.setgroups([]); os.setgid(65534); os.setuid(65534)
burner = int(sys.argv[1])
clock = lambda: time.clock_gettime((~burner << 3) | 2)
probing = RunProbes([Others()])
probing.start()
before = clock()
while clock() < before + 0.5:
    time.sleep(0.02)
used = clock() - before
metrics, blocks, notes = probing.end(Context())
print(json.dumps([used, metrics, [list(block.lines) for block in blocks], notes]))
"""


@pytest.mark.needs_root
def test_without_root_only_the_long_lived_are_seen_and_that_is_said(bench: Bench) -> None:
    many = bench.beside(MANY, "1000000", "etu-driver", "never", bench.program("etu-short"))
    with many, bench.beside(BURN, "1000", "etu-burner", "never") as burner:
        try:
            command = [sys.executable, "-c", AS_NOBODY, str(burner.pid)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        finally:
            burner.kill()
            many.kill()
    assert done.returncode == 0, done.stderr
    used_s, metrics, (lines,), (note,) = json.loads(done.stdout)
    assert metrics["others_coverage"] == [0, "1"]
    assert note.startswith("probe others: ")
    assert note.endswith("(taskstats)")
    assert lines[-1].startswith("(coverage) = ")
    assert lines[-1].endswith("(taskstats)")
    seen = shares(lines)
    assert seen["etu-burner"] == (pytest.approx(used_s, rel=0.1), 1)
    assert seen["etu-driver"][1] == 1
    assert seen.get("etu-short", (0, 0))[1] <= 1  # the one that was just there
    assert "(measured)" not in seen


WORK = """
import os, socket, sys
with open(sys.argv[1], 'wb') as file:
    file.write(os.urandom(8 << 20))
    os.fsync(file.fileno())
server = socket.create_server(('127.0.0.1', 0))
client = socket.create_connection(server.getsockname())
other, _ = server.accept()
for _ in range(64):
    client.sendall(bytes(16384))
    left = 16384
    while left: left -= len(other.recv(left))
"""


def counted_disk(path: Path) -> bool:
    """Whether a file lies on a device of its own, and not on a loop device, in memory or on the network."""
    device = os.stat(path).st_dev
    place = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    return place.exists() and not re.match(r"loop|zram|ram|dm-|md", place.resolve().name)


def test_all_of_ours_stand_around_a_launch_together(bench: Bench) -> None:
    names = ["disk", "memory", "network", "pressure", "interrupts", "energy", "others"]
    size = bench.directory / "probes.d" / "size"
    size.parent.mkdir()
    size.write_text(f'#!/bin/sh\n[ "$1" = start ] || echo "written = $(wc -c < {bench.directory}/file) B"\n')
    size.chmod(0o755)
    probing = bench.around(*find_executables([bench.directory]), *find_probe(names))
    probing.start()
    worker = Worker((PYTHON, "-ISc", WORK, str(bench.directory / "file")))
    (row,) = bench.engine.launch(Launch((worker,)))
    metrics, blocks, notes = bench.end(probing)
    assert row["exit_status"] == 0
    assert metrics["written"] == [8 << 20, "B"]
    if counted_disk(bench.directory):
        assert metrics["disk_write_bytes"][0] >= 8 << 20
    assert metrics["loopback_bytes"][0] >= 1 << 20
    assert metrics["machine_switches"][0] > 0
    assert metrics["machine_interrupts"][0] > 0
    for name in (*names, "size"):
        cost, unit, *reason = metrics[f"probe_{name}_cost"]
        assert (unit, cost is None) == ("s", bool(reason))
        assert reason or cost > 0
    assert {"interrupts", "memory", "network", "others"} <= blocks.keys()
    assert all("failed" not in note for note in notes)
    assert json.loads(json.dumps(metrics)) == metrics
