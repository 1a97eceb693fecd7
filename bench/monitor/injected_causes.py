"""Whether outliers are explained by what caused them: a cause is injected into one trial of each experiment.

Each experiment has a command of about 0.2 s, one trial of which is disturbed on purpose. Counted is how often the first
thing that the explanation names is of the cause's kind. Of `nap` and `longer` a trial sleeps, or computes, by itself.
Of `undisturbed` no trial is: time is added to each trial in turn in the rows as
they were stored, and the monitor's samples stay as they are. Nothing else should run; most kinds need root.
"""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))  # bench/: rows

from etude.analysis.load_subject import read_subject
from etude.analysis.subject import Subject
from etude.analysis.verdict import verdict
from etude.analysis.verdict_options import VerdictOptions
from rows import ETUDE, cells, options, running, table

SPIN = [sys.executable, "-c", "while True: pass"]
CPUS = len(os.sched_getaffinity(0))
LASTS_S = 0.7
DATA_BYTES, LIMIT_BYTES = 48 << 20, 20 << 20
"""Memory that such a trial touches, and the limit below it, bytes."""
SWAP_BYTES = 128 << 20
LINK, PORT = "200mbit", 5299
ADDRESSES = "198.51.100.1", "198.51.100.2"
"""Addresses of the two ends of the link, reserved for documentation (RFC 5737), so that no network has them."""
VICTIM = """
import mmap, os, random, socket, sys, time
seen, hit, work, data, group, address, port = sys.argv[1:]
number = len(os.listdir(seen))
disturbed = number == int(hit)
if group:
    with open(f"{group}/cgroup.procs", "w") as file:
        file.write(str(os.getpid()))
if work == "file":
    file = open(data, "rb", 0)
    while file.read(1 << 20):
        pass
    memory = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    memory.madvise(mmap.MADV_RANDOM)
elif work == "memory":
    memory = mmap.mmap(-1, 48 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory[::4096] = bytes([1]) * (len(memory) >> 12)  # the kernel does not write pages of zeros to swap space
elif work == "exchange":
    server = socket.create_connection((address, int(port)))
with open(f"{seen}/{number}", "w") as file:
    file.write(str(os.getpid()))
for step in range(2500 if disturbed and work == "longer" else 500):
    sum(range(20000))
    if work == "write" and step % 10 == 0:
        with open(f"{data}.own", "wb", 0) as file:
            file.write(bytes(1 << 20))
            os.fsync(file.fileno())
    elif work == "exchange" and step % 10 == 0:
        server.sendall(b"?")
        left = 32768
        while left:
            left -= len(server.recv(left))
    elif work in ("file", "memory"):
        for _ in range(32):
            memory[random.randrange(len(memory) >> 12) << 12]
if disturbed and work == "nap":
    time.sleep(0.7)
"""
SERVER = """
import socket, sys
listening = socket.create_server((sys.argv[1], int(sys.argv[2])))
print("ready", flush=True)
while True:
    client, _ = listening.accept()
    with client:
        while client.recv(1):
            client.sendall(bytes(32768))
"""
TIMER = """
import ctypes, time
ctypes.CDLL(None).prctl(29, 1)  # PR_SET_TIMERSLACK
while True:
    time.sleep(3e-5)
"""


class NotMeasurable(Exception):
    """This machine lacks what a disturbance needs."""


@dataclass(frozen=True)
class Site:
    """Files, group and addresses of the trials of one experiment."""

    data: Path
    """A file of theirs; names that begin with it are free."""
    group: Path | None = None
    """A control group that they enter."""
    address: str = ""
    """A server's, at `PORT`."""
    namespace: str = ""
    """The network namespace of that server."""


@dataclass(frozen=True)
class Disturbance:
    """A kind of them."""

    inject: Callable[[int, Site], None]
    """Disturbs a trial, given its process, until the trial ends or `LASTS_S` have passed."""
    right: str
    """A pattern of the explanation that names it first."""
    work: str = ""
    """The work of the trials besides computing; a word of `VICTIM`."""
    site: Callable[[Path], AbstractContextManager[Site]] | None = None


def wait(pid: int, at_most_s: float = float("inf")) -> None:
    """Until a process has ended, or that time has passed."""
    end = time.monotonic() + at_most_s
    state = Path(f"/proc/{pid}/stat")
    with suppress(OSError):
        while time.monotonic() < end and state.read_text().rpartition(")")[2].split()[0] != "Z":
            time.sleep(0.01)


def nothing(pid: int, _: Site) -> None:
    wait(pid)


def stop(pid: int, _: Site) -> None:
    """SIGSTOP, and SIGCONT later."""
    os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(LASTS_S)
    finally:
        os.kill(pid, signal.SIGCONT)


def hog(pid: int, _: Site) -> None:
    """Three times as many busy loops as CPUs."""
    with running(*[SPIN] * (3 * CPUS)):
        wait(pid)


def pinned(pid: int, _: Site) -> None:
    """The trial shares one CPU with three busy loops; the others are idle."""
    cpu = min(os.sched_getaffinity(0))
    os.sched_setaffinity(pid, {cpu})
    with running(*[["taskset", "-c", str(cpu), *SPIN]] * 3):
        wait(pid)


def short(pid: int, _: Site) -> None:
    """Processes that start and end at once."""
    with running(*[["sh", "-c", "while :; do /bin/true; done"]] * (8 * CPUS)):
        wait(pid)


def timers(pid: int, _: Site) -> None:
    """Processes that sleep for 30 µs, again and again."""
    with running(*[[sys.executable, "-c", TIMER]] * (4 * CPUS)):
        wait(pid)


def writer(pid: int, site: Site) -> None:
    """Large synchronous writes to the file system that the trial writes to."""
    names = [f"{site.data}.{number}" for number in range(3)]
    loop = "while :; do dd if=/dev/zero of={} bs=4M count=16 conv=fsync; done"
    try:
        with running(*(["sh", "-c", loop.format(name)] for name in names)):
            wait(pid)
    finally:
        for name in names:
            Path(name).unlink(missing_ok=True)


def transfer(pid: int, site: Site) -> None:
    """Another program's transfer over the link that the trial uses."""
    within = ["ip", "netns", "exec", site.namespace]
    with running([*within, "iperf3", "-c", ADDRESSES[0], "-p", str(PORT + 1), "-P", "8", "-t", "30"]):
        wait(pid, LASTS_S)
    wait(pid)


def quota(pid: int, _: Site) -> None:
    """A tenth of a CPU for the trial, by a control group of its own."""
    with own_group("cpu") as group:
        (group / "cgroup.procs").write_text(str(pid))
        limit = group / "cpu.max"
        written = ("10000 100000", "max 100000")
        if not limit.exists():
            limit, written = group / "cpu.cfs_quota_us", ("10000", "-1")
        try:
            limit.write_text(written[0])
            wait(pid, LASTS_S)
        finally:
            limit.write_text(written[1])
            wait(pid)


def limit_memory(pid: int, site: Site) -> None:
    """Less memory for the trial's control group than the trial uses."""
    assert site.group is not None
    limit, without = site.group / "memory.max", "max"
    if not limit.exists():
        limit, without = site.group / "memory.limit_in_bytes", "-1"
    try:
        with suppress(OSError):  # where not all can be reclaimed at once
            limit.write_text(str(LIMIT_BYTES))
        wait(pid, LASTS_S)
    finally:
        limit.write_text(without)
        if site.data.exists():
            site.data.read_bytes()  # else the next trial is the slow one
        wait(pid)


@contextmanager
def own_group(controller: str) -> Iterator[Path]:
    """A control group, of either version."""
    parent = Path("/sys/fs/cgroup")
    parent = parent if (parent / "cgroup.controllers").exists() else parent / controller
    group = parent / f"etude-injected-{os.getpid()}"
    names = {"cpu": ("cpu.max", "cpu.cfs_quota_us"), "memory": ("memory.max", "memory.limit_in_bytes")}
    try:
        group.mkdir()
    except OSError as error:
        raise NotMeasurable(f"no control group can be made: {error}") from None
    try:
        if not any((group / name).exists() for name in names[controller]):
            raise NotMeasurable(f"{group}: the controller {controller} is not enabled")
        yield group
    finally:
        removed(group)


def removed(group: Path) -> None:
    """Removes a control group, as soon as its last process has ended."""
    for _ in range(100):
        with suppress(OSError):
            group.rmdir()
            return
        time.sleep(0.05)
    print(f"{group}: cannot be removed", file=sys.stderr)


@contextmanager
def with_file(data: Path) -> Iterator[Site]:
    """A file, and a control group that its pages in memory are charged to."""
    with data.open("wb", 0) as file:
        file.write(os.urandom(DATA_BYTES))
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    with own_group("memory") as group:
        yield Site(data, group)


@contextmanager
def with_swap(data: Path) -> Iterator[Site]:
    """Swap space, and a control group."""
    swap = Path(f"{data}.swap")
    with swap.open("wb", 0) as file:
        for _ in range(SWAP_BYTES >> 20):
            file.write(bytes(1 << 20))
    swap.chmod(0o600)
    with own_group("memory") as group:
        command("mkswap", str(swap))
        command("swapon", str(swap))
        try:
            yield Site(data, group)
        finally:
            command("swapoff", str(swap))


@contextmanager
def with_link(data: Path) -> Iterator[Site]:
    """A server in a network namespace, behind a link that carries `LINK`."""
    if shutil.which("iperf3") is None:
        raise NotMeasurable("iperf3 is not installed")
    name = f"etude{os.getpid()}"
    ends = f"{name}a", f"{name}b"
    inside = ("ip", "netns", "exec", name)
    with ExitStack() as stack:
        command("ip", "netns", "add", name)
        stack.callback(command, "ip", "netns", "delete", name)
        command("ip", "link", "add", ends[0], "type", "veth", "peer", "name", ends[1], "netns", name)
        stack.callback(command, "ip", "link", "delete", ends[0])  # else it goes some time after the namespace
        command("ip", "addr", "add", f"{ADDRESSES[0]}/30", "dev", ends[0])
        command("ip", "link", "set", ends[0], "up")
        command(*inside, "ip", "addr", "add", f"{ADDRESSES[1]}/30", "dev", ends[1])
        command(*inside, "ip", "link", "set", ends[1], "up")
        shape = ("root", "tbf", "rate", LINK, "burst", "64kb", "latency", "20ms")
        command(*inside, "tc", "qdisc", "add", "dev", ends[1], *shape)
        server = [*inside, sys.executable, "-c", SERVER, ADDRESSES[1], str(PORT)]
        program = subprocess.Popen(server, stdout=subprocess.PIPE)
        stack.callback(program.wait)
        stack.callback(program.kill)
        assert program.stdout is not None
        program.stdout.readline()
        stack.enter_context(running(["iperf3", "-s", "-p", str(PORT + 1)]))
        yield Site(data, address=ADDRESSES[1], namespace=name)


def command(*words: str) -> None:
    """Runs a command of the system.

    Raises:
        NotMeasurable: it failed.
    """
    try:
        done = subprocess.run(words, check=False, capture_output=True, text=True)
    except OSError as error:
        raise NotMeasurable(f"{words[0]}: {error.strerror}") from None
    if done.returncode:
        raise NotMeasurable(f"{' '.join(words)}: {done.stderr.strip()}")


SLEPT, COMPUTED = r"^for [^;]* it neither ran nor waited", r"^it used [^;]* itself"
UNEXPLAINED = rf"^$|^nothing in the monitor|{SLEPT}|{COMPUTED}"
OTHERS = r"^other processes used|^CPU pressure"
WRITER = r"^other processes used [^;]*\bdd |^\S+ (busy|written)|^waiting for I/O|^I/O pressure"
MEMORY = r"^(it had \d+ |memory pressure|major faults)(?!.*swap)"
TIMERS = r"^(?=.*(interrupts|context switches))(other processes used|interrupts|context switches)"
CAUSES: dict[str, Disturbance] = {
    "hog": Disturbance(hog, OTHERS),
    "writer": Disturbance(writer, WRITER, "write"),
    "network": Disturbance(transfer, r"^etude\d+a received", "exchange", with_link),
    "memory": Disturbance(limit_memory, MEMORY, "file", with_file),
    "swap": Disturbance(limit_memory, r"^(it had \d+ [^;]*swap|pages swapped)", "memory", with_swap),
    "timers": Disturbance(timers, TIMERS),
    "short": Disturbance(short, OTHERS),
    "pinned": Disturbance(pinned, r"^other processes used .*python|CPUs that it may use"),
    "stop": Disturbance(stop, r"^[^;]*SIGSTOP"),
    "quota": Disturbance(quota, r"^[^;]*(cpu\.max|CPU quota)"),
    "nap": Disturbance(nothing, SLEPT, "nap"),
    "longer": Disturbance(nothing, COMPUTED, "longer"),
}
UNDISTURBED = "undisturbed"
OUTCOMES = ("none", "another", "no outlier")
WORKS = ("hog", "writer", "network", "memory")
"""Causes whose trials are measured without them, in turn, as the undisturbed ones."""
AFTER_S = 0.03
"""From a trial's first step to its disturbance."""


def measured(cause: Disturbance, site: Site, hit: int, trials: int, directory: Path) -> Path:
    """The results of an experiment whose trial `hit` is disturbed."""
    seen, program, results = directory / "seen", directory / "victim.py", directory / "r"
    seen.mkdir()
    program.write_text(VICTIM)
    over = threading.Event()

    def inject() -> None:
        pid_file = seen / str(hit)
        while not (pid_file.exists() and (pid := pid_file.read_text())):
            if over.wait(0.005):
                return
        time.sleep(AFTER_S)
        with suppress(ProcessLookupError):
            cause.inject(int(pid), site)

    where = (site.data, site.group or "", site.address, PORT)
    victim = shlex.join(map(str, (sys.executable, program, seen, hit, cause.work, *where)))
    etude = [ETUDE, "bench", "-o", str(results), "--trials", str(trials), "--monitor", "100ms", victim]
    with ThreadPoolExecutor(1) as pool:
        injected = pool.submit(inject)
        try:
            done = subprocess.run(etude, check=False, capture_output=True, text=True)
        finally:
            over.set()
        injected.result()
    if not results.exists():
        raise SystemExit(done.stderr.strip())
    return results


def told(results: Path) -> dict[int, str]:
    """The explanations of outliers, by trial; empty of one that has none."""
    subject = read_subject(str(results))
    assert isinstance(subject, Subject)
    found = verdict(subject, None, VerdictOptions(every_outlier=True)).every
    apart = {trial: "" for each in found if each.kind == "outliers" for trial in each.trials}
    explained = (each for each in found if each.kind == "outlier-explained")
    return apart | {trial: each.text.partition("): ")[2] for each in explained for trial in each.trials}


@contextmanager
def place(cause: Disturbance) -> Iterator[tuple[Site, Path]]:
    """Where an experiment is made: on a disk, as /tmp may be none."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        data = Path(name, "data")
        with cause.site(data) if cause.site else nullcontext(Site(data)) as site:
            yield site, Path(name)


def disturbed(kind: str, trials: int, rng: random.Random) -> list[str | None]:
    """The explanation of the disturbed trial of an experiment; None where the trial is no outlier."""
    cause = CAUSES[kind]
    hit = rng.randrange(3, trials - 1)
    with place(cause) as (site, directory):
        return [told(measured(cause, site, hit, trials, directory)).get(hit)]


def undisturbed(number: int, trials: int, rng: random.Random) -> list[str | None]:
    """The explanations of trials to which time was added, each in turn."""
    cause = replace(CAUSES[WORKS[number % len(WORKS)]], inject=nothing)
    with place(cause) as (site, directory):
        results = measured(cause, site, 1, trials, directory)
        (path,) = results.glob("*/results.jsonl")
        stored = [json.loads(line) for line in path.read_text().splitlines()]
        usual = sorted(row["metrics"]["elapsed"][0] for row in stored)[len(stored) // 2]
        texts: list[str | None] = []
        for row in (row for row in stored if row["kept"]):
            elapsed = row["metrics"]["elapsed"]
            whole = elapsed[0]
            elapsed[0] += usual * rng.uniform(0.5, 5.0)
            path.write_text("".join(json.dumps(each) + "\n" for each in stored))
            elapsed[0] = whole
            texts += [text for trial, text in told(results).items() if trial == row["trial"]]
    return texts


def judged(text: str | None, right: str) -> str:
    """Whether an explanation is `right`, `none` or `another`, or of no `outlier`."""
    if text is None:
        return "no outlier"
    if re.search(right, text):
        return "right"
    return "none" if re.search(UNEXPLAINED, text) else "another"


def main() -> None:
    """Prints a table: of each kind, how often the right cause was named first, none, and another."""
    parser = options(__doc__)
    kinds = [*CAUSES, UNDISTURBED]
    parser.add_argument("--experiments", type=int, default=20, help="of each kind [default: 20]")
    parser.add_argument("--trials", type=int, default=12, help="of each experiment [default: 12]")
    parser.add_argument("--kinds", nargs="*", default=kinds, choices=kinds, help="[default: all]")
    parser.add_argument("--seed", type=int, default=1)
    wanted = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that all is removed
    rng = random.Random(wanted.seed)
    print(*table(("cause", "right first", *OUTCOMES), ())[:2], sep="\n")
    for kind in wanted.kinds:
        counts: Counter[str] = Counter()
        try:
            for number in range(wanted.experiments):
                if kind == UNDISTURBED:
                    texts, right = undisturbed(number, wanted.trials, rng), UNEXPLAINED
                else:
                    texts, right = disturbed(kind, wanted.trials, rng), CAUSES[kind].right
                for text in texts:
                    named = judged(text, right)
                    counts[named] += 1
                    print(f"{kind}: {named}: {text}", file=sys.stderr)
        except NotMeasurable as error:
            print(cells((kind, f"not measurable: {error}", "", "", "")), flush=True)
            continue
        print(cells((kind, *(str(counts[each]) for each in ("right", *OUTCOMES)))), flush=True)


if __name__ == "__main__":
    main()
