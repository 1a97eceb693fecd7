"""Whether outliers are explained by what caused them: a cause is injected into one trial of each experiment.

Each experiment has a command of half a second of CPU time and some writes, one trial of which is disturbed on purpose.
Counted is how often the first thing that the explanation names is of the cause's kind; of `none`, whose trial sleeps by
itself, how often anything but its own state is named. Root is needed for `quota`. Nothing else should run.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from etude.report.judging import Judging
from etude.report.reading import read_subject
from etude.report.subject import Subject
from etude.report.verdict import verdict

VICTIM = """
import os, sys, time
where, hit, kind = sys.argv[1:]
number = len(os.listdir(where))
with open(f"{where}/{number}", "w") as file:
    file.write(str(os.getpid()))
end = time.process_time() + 0.5
while time.process_time() < end:
    sum(range(20000))
    if kind == "writer":
        with open(f"{where}.data", "wb", 0) as file:
            file.write(bytes(1 << 20))
            os.fsync(file.fileno())
if number == int(hit) and kind == "none":
    time.sleep(1.5)
"""
SPIN = [sys.executable, "-c", "while True: pass"]
CPUS = len(os.sched_getaffinity(0))
LASTS_S = 1.5


@contextmanager
def running(commands: Sequence[list[str]]) -> Iterator[None]:
    """Programs beside the trial."""
    with ExitStack() as stack:
        for command in commands:
            program = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            stack.callback(program.wait)
            stack.callback(program.kill)
        yield


def stop(pid: int, _: Path) -> None:
    """SIGSTOP, and SIGCONT later."""
    os.kill(pid, signal.SIGSTOP)
    time.sleep(LASTS_S)
    os.kill(pid, signal.SIGCONT)


def hog(pid: int, _: Path) -> None:
    """Twice as many busy loops as CPUs."""
    with running([SPIN] * (2 * CPUS)):
        wait(pid)


def pinned(pid: int, _: Path) -> None:
    """The trial shares one CPU with three busy loops; the others are idle."""
    cpu = min(os.sched_getaffinity(0))
    os.sched_setaffinity(pid, {cpu})
    with running([["taskset", "-c", str(cpu), *SPIN]] * 3):
        wait(pid)


def short(pid: int, _: Path) -> None:
    """Processes that start and end at once."""
    with running([["sh", "-c", "while :; do /bin/true; done"]] * (2 * CPUS)):
        wait(pid)


def writer(pid: int, data: Path) -> None:
    """Large synchronous writes to the file system that the trial writes to."""
    command = ["sh", "-c", f"while :; do dd if=/dev/zero of={data}.hog bs=4M count=64 conv=fsync; done"]
    with running([command] * 3):
        wait(pid)
    Path(f"{data}.hog").unlink(missing_ok=True)


def quota(pid: int, _: Path) -> None:
    """A tenth of a CPU for the trial, by a control group of its own."""
    with group_of("cpu", pid) as group:
        limit = group / "cpu.max"
        written = ("10000 100000", "max 100000")
        if not limit.exists():
            limit, written = group / "cpu.cfs_quota_us", ("10000", "-1")
        limit.write_text(written[0])
        time.sleep(LASTS_S)
        limit.write_text(written[1])
        wait(pid)


@contextmanager
def group_of(controller: str, pid: int) -> Iterator[Path]:
    """A control group with a process alone in it, of either version."""
    parent = Path("/sys/fs/cgroup")
    parent = parent if (parent / "cgroup.controllers").exists() else parent / controller
    group = parent / "etude-injected"
    group.mkdir(exist_ok=True)
    if not (group / "cgroup.procs").exists():
        raise SystemExit(f"{group}: no control group can be made")
    (group / "cgroup.procs").write_text(str(pid))
    try:
        yield group
    finally:
        wait(pid)
        group.rmdir()


def nothing(pid: int, _: Path) -> None:
    """The trial sleeps by itself."""
    wait(pid)


KINDS: dict[str, tuple[Callable[[int, Path], None], str]] = {
    "stop": (stop, r"SIGSTOP"),
    "hog": (hog, r"^other processes used .*python|^CPU pressure"),
    "pinned": (pinned, r"^other processes used .*python|CPUs that it may use"),
    "short": (short, r"^other processes used|^CPU pressure"),
    "writer": (
        writer,
        r"^other processes used [^;]*\bdd |^\S+ (busy|written)|^waiting for I/O|^I/O pressure",
    ),
    "quota": (quota, r"cpu\.max|CPU quota"),
    "none": (nothing, r"SIGSTOP|nothing in the monitor|^$"),
}
"""What is injected, and what the explanation must begin with."""


def wait(pid: int) -> None:
    """Until a process has ended."""
    with suppress(OSError):
        while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
            time.sleep(0.02)


def experiment(kind: str, trials: int, hit: int, directory: Path) -> str:
    """The explanation of the trial that was disturbed; empty where there is none."""
    seen = directory / "seen"
    seen.mkdir()

    def inject() -> None:
        pid_file = seen / str(hit)
        while not (pid_file.exists() and (pid := pid_file.read_text())):
            time.sleep(0.01)
        time.sleep(0.1)
        with suppress(ProcessLookupError):
            KINDS[kind][0](int(pid), directory / "seen.data")

    threading.Thread(target=inject, daemon=True).start()
    program = directory / "victim.py"
    program.write_text(VICTIM)
    victim = [sys.executable, str(program), str(seen), str(hit), kind]
    run = [
        "bench",
        "-o",
        str(directory / "r"),
        "--trials",
        str(trials),
        "--monitor",
        "100ms",
        shlex.join(victim),
    ]
    done = subprocess.run(
        [str(Path(sys.executable).with_name("etude")), *run], check=False, capture_output=True, text=True
    )
    if not (directory / "r").exists():
        raise SystemExit(done.stderr.strip())
    subject = read_subject(str(directory / "r"))
    assert isinstance(subject, Subject)
    found = verdict(subject, None, Judging(every_outlier=True)).every
    told = [each.text for each in found if each.kind == "outlier-explained" and hit in each.trials]
    return told[0].partition("): ")[2] if told else ""


def main() -> None:
    """Prints a table: of each kind, how often the right cause was named first, none, and another."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experiments", type=int, default=20, help="of each kind [default: 20]")
    parser.add_argument("--trials", type=int, default=14, help="of each experiment [default: 14]")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=KINDS, help="[default: all]")
    parser.add_argument("--seed", type=int, default=1)
    wanted = parser.parse_args()
    rng = random.Random(wanted.seed)
    print("| cause | right first | none | another |\n| --- | ---: | ---: | ---: |")
    for kind in wanted.kinds:
        counts: Counter[str] = Counter()
        for _ in range(wanted.experiments):
            with tempfile.TemporaryDirectory() as directory:
                text = experiment(kind, wanted.trials, rng.randrange(3, wanted.trials - 1), Path(directory))
            right = re.search(KINDS[kind][1], text) is not None
            named = "right" if right else "none" if not text or text.startswith("nothing") else "another"
            counts[named] += 1
            print(f"{kind}: {named}: {text}", file=sys.stderr)
        print(f"| {kind} | {counts['right']} | {counts['none']} | {counts['another']} |", flush=True)


if __name__ == "__main__":
    main()
