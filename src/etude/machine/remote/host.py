"""One remote host: its connection, engines, clock, processes and their CPU time; and the snapshot of such a machine."""

from __future__ import annotations

import hashlib
import io
import os
import shlex
import subprocess
import tarfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from etude import trail
from etude.engine import Engine, EngineLost, Interrupts
from etude.errors import MachineRefuses
from etude.machine import snapshot
from etude.machine.remote.hosts import Entry
from etude.machine.remote.link import (
    SLACK_S,
    TRANSFER_BYTES_PER_S,
    Facts,
    Link,
    StepLink,
    connect_with_retries,
)
from etude.machine.remote.synchronized_start import Offset, measure_offset
from etude.machine.snapshot.software import SYSCTLS
from etude.osutil.files import scratch_directory
from etude.program import engine_path

MIN_KERNEL = (5, 4)
"""Minimum kernel: the engine waits for processes by pollable descriptors (Linux 5.3)."""
PROGRAM = "etude-engine"


@dataclass(frozen=True)
class HostInfo:
    """Facts about a connected host."""

    facts: Facts
    cpus: int
    offset: Offset


class Host:
    """A host. It is connected on first use, and again after a loss."""

    def __init__(
        self, entry: Entry, interrupts: Interrupts | None = None, way: Callable[[Entry], Link] = Link
    ) -> None:
        """`way`: opens the connection; ssh by default."""
        self.entry = entry
        self._way = way
        self.boot_id = ""
        self._interrupts = interrupts
        self._link: Link | None = None
        self._engine: Engine | None = None
        self._keepers: dict[str, Engine] = {}

    @property
    def name(self) -> str:
        """Name in the hosts file."""
        return self.entry.name

    @property
    def is_connected(self) -> bool:
        """True if it was connected, and has not been found lost."""
        return self._link is not None

    @property
    def facts(self) -> Facts:
        """Facts reported by its keeper."""
        return self._connected().facts

    @property
    def engine(self) -> Engine:
        """The engine that measures there."""
        self._connected()
        assert self._engine is not None
        return self._engine

    def connect(self) -> None:
        """Connect, copy the engine and start it, unless that is done.

        Raises:
            MachineRefuses: not possible, with the reason; EngineLost: reconnected, but earlier processes are lost:
            raised once.
        """
        if (
            self._link is not None
            and self._link.is_up()
            and self._engine is not None
            and self._engine.fileno() >= 0
        ):
            return
        again = self._link is not None
        self.close()
        link = connect_with_retries(self._way, self.entry)
        try:
            _check(link.facts, self.entry)
            _copy_engine(link)
            self._engine = self._start(link)
        except BaseException:
            link.close()
            raise
        self._link = link
        trail.note("host", f"{self.entry.shown} is connected")
        former, self.boot_id = self.boot_id, link.facts.boot_id
        restarted = former not in ("", self.boot_id)
        if again or restarted:
            how = "has restarted" if restarted else "was lost and is connected again"
            raise EngineLost(f"{self.entry.shown}: {how}: what was set up there is gone")

    def keeper(self, test: str) -> Engine:
        """The engine that runs a test's set-up there and keeps its processes alive."""
        link = self._connected()
        if test not in self._keepers or self._keepers[test].fileno() < 0:
            self._keepers[test] = self._start(link)
        return self._keepers[test]

    def release(self, test: str) -> None:
        """End the processes of a test's set-up there."""
        keeper = self._keepers.pop(test, None)
        if keeper is not None:
            keeper.close()

    def offset(self) -> Offset:
        """Offset of its clock from ours.

        Raises:
            EngineLost: it does not answer.
        """
        engine, within_s = self.engine, self.entry.silence_s
        return measure_offset(lambda: int(engine.ask("clock", within_s=within_s)["clock_ns"]))

    def processes(self) -> list[Process]:
        """The host's processes to measure, with their CPU time.

        Raises:
            EngineLost: it does not answer.
        """
        answer = self.engine.ask("processes", within_s=self.entry.silence_s, names=list(self.entry.measure))
        return processes_of(answer["processes"])

    def copy_to_host(self, source: str, target: str) -> None:
        """Copy a local file or directory to the host; a relative target is in our directory there.

        Raises:
            MachineRefuses: it cannot be copied.
        """
        link = self._connected()
        link.copy(
            [os.path.abspath(source)],
            link.remote_path(target),
            within_s=_transfer_s(_size(Path(source)), self.entry),
        )

    def copy_from_host(self, source: str, target: Path) -> None:
        """Copy a file or directory of the host here; a relative source is in our directory there.

        Raises:
            MachineRefuses: it cannot be copied.
        """
        link = self._connected()
        there = shlex.quote(os.path.join(link.facts.directory, source))
        size = link.run(f"du -sk -- {there} | cut -f 1").strip()
        kib = int(size) if size.isdigit() else 0
        link.copy(
            [link.remote_path(source)], os.path.abspath(target), within_s=_transfer_s(kib * 1024, self.entry)
        )

    def take(self, names: list[str]) -> list[bytes | None]:
        """Contents of files of our directory there, which are then removed; None for missing ones.

        Raises:
            MachineRefuses: they cannot be read.
        """
        link = self._connected()
        list_ = " ".join(map(shlex.quote, names))
        each = 'if [ -f "$f" ]; then wc -c <"$f"; cat <"$f"; rm -f "$f"; else echo -; fi'
        line = f"cd {shlex.quote(link.facts.directory)} && for f in {list_}; do {each}; done"
        return _parts(link.run(line, within_s=600.0), len(names))

    def run(self, line: str, *, within_s: float) -> bytes:
        """Output of a shell line on the host.

        Raises:
            MachineRefuses: it fails, or takes longer than `within_s`, s.
        """
        return self._connected().run(line, within_s=within_s)

    def follow(self, pipe: str) -> subprocess.Popen[bytes]:
        """A local process that prints what is written into a named pipe in our directory there (Link.follow)."""
        return self._connected().follow(pipe)

    def variables(self) -> dict[str, str]:
        """Environment variables of processes that are started there."""
        own = dict(self.entry.environment or {})
        directory = self.facts.directory
        own["PATH"] = f"{directory}:{own.get('PATH', self.facts.path)}"
        return {**own, "APHOST": self.name, "APTIMER": f"{directory}/aptime"}

    def info(self) -> HostInfo:
        """Facts about the host.

        Raises:
            EngineLost: it does not answer.
        """
        return HostInfo(self.facts, len(self.engine.hello.get("cpus", ())), self.offset())

    def why(self) -> str:
        """Last message of ssh about the loss of the connection."""
        return self._link.why() if self._link is not None else "it is not connected"

    def close(self) -> None:
        """End all processes that were started there, and remove our files."""
        for engine in (*self._keepers.values(), *([self._engine] if self._engine else [])):
            engine.close(wait=False)
        self._keepers.clear()
        if self._link is not None:
            self._link.close()
        self._link, self._engine = None, None

    def _connected(self) -> Link:
        self.connect()
        assert self._link is not None
        return self._link

    def _start(self, link: Link) -> Engine:
        within_s = self.entry.connect_timeout_s + SLACK_S
        transport = link.serve(f"{link.facts.directory}/{PROGRAM}")
        return Engine(self._interrupts, transport=transport, hello_within_s=within_s)


def node_of(job: str, name: str, interrupts: Interrupts | None = None, directory: str = "/tmp") -> Host:
    """A node of a running job as a host; the engine is copied into `directory`."""
    entry = Entry(name, name, directory=directory)
    return Host(entry, interrupts, partial(StepLink, job=job))


def _check(facts: Facts, entry: Entry) -> None:
    """Refuse a machine on which the engine cannot run.

    Raises:
        MachineRefuses: the reason.
    """
    here = os.uname().machine
    if facts.machine != here:
        raise MachineRefuses(f"{entry.shown}: is {facts.machine or 'unknown'}, the engine here is for {here}")
    numbers = tuple(int(word) for word in facts.release.split("-")[0].split(".")[:2] if word.isdecimal())
    if numbers < MIN_KERNEL:
        least = ".".join(map(str, MIN_KERNEL))
        raise MachineRefuses(f"{entry.shown}: runs Linux {facts.release}; the engine needs {least} or newer")


def _copy_engine(link: Link) -> None:
    """Copy the engine, and check that it is complete.

    Raises:
        MachineRefuses: no space there, or another reason.
    """
    program = Path(engine_path())
    data = program.read_bytes()
    free, shown, directory = link.facts.free_bytes, link.entry.shown, link.facts.directory
    if free is not None and free < len(data):
        raise MachineRefuses(
            f"{shown}: {link.entry.directory} has {free / 1e6:.1f} MB free, the engine needs {len(data) / 1e6:.1f} MB; "
            "choose another directory in the hosts file"
        )
    there = shlex.quote(f"{directory}/{PROGRAM}")
    line = f"cat >{there} && chmod 700 {there} && sha256sum <{there}"
    said = link.run(line, data=program, within_s=_transfer_s(len(data), link.entry)).split()
    if said[:1] != [hashlib.sha256(data).hexdigest().encode()]:
        raise MachineRefuses(f"{shown}: the engine that was copied there has another SHA-256 than here")


def _transfer_s(size_bytes: int, entry: Entry) -> float:
    return entry.connect_timeout_s + SLACK_S + size_bytes / TRANSFER_BYTES_PER_S


def _size(path: Path) -> int:
    if path.is_dir():
        return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return path.stat().st_size if path.exists() else 0


def _parts(data: bytes, count: int) -> list[bytes | None]:
    """Concatenated files: each a line with its length, or `-`, followed by its bytes."""
    parts: list[bytes | None] = []
    for _ in range(count):
        head, _, rest = data.partition(b"\n")
        length = int(head) if head.strip().isdigit() else None
        parts.append(None if length is None else rest[:length])
        data = rest if length is None else rest[length:]
    return parts


NAME_BYTES = 15
"""Maximum length of a program's name in the kernel."""


class Process(NamedTuple):
    """One process at a moment, as docs/reference/formats.md specifies for the request `processes`."""

    pid: int
    name: str
    began: int
    cpu_ns: int
    threads: Mapping[int, int]


def processes_of(answer: Iterable[Mapping[str, Any]]) -> list[Process]:
    """Processes in the engine's answer."""
    return [Process(p["pid"], p["name"], p["began"], p["cpu_ns"], dict(p["threads"])) for p in answer]


def used_ns(before: Sequence[Process], after: Sequence[Process]) -> int:
    """CPU time between two readings, ns. Processes that have ended are left out: their last usage is unknown.

    Exact as long as no thread of a process has ended; then in the kernel's ticks (10 ms).
    """
    former = {(process.pid, process.began): process for process in before}
    return sum(_used(former.get((process.pid, process.began)), process) for process in after)


def _used(before: Process | None, after: Process) -> int:
    if before is None:
        return max(after.cpu_ns, sum(after.threads.values()))
    if before.threads.keys() <= after.threads.keys():
        return sum(ns - before.threads.get(thread, 0) for thread, ns in after.threads.items())
    return max(0, after.cpu_ns - before.cpu_ns)


def usage_metrics(
    host: str, names: Sequence[str], before: Sequence[Process], after: Sequence[Process]
) -> tuple[dict[str, list[Any]], list[str]]:
    """Metrics `HOST.NAME.cpu`, s, and descriptions of processes that have all ended."""
    found: dict[str, list[Any]] = {}
    gone: list[str] = []
    for name in names:
        then, now = ([p for p in processes if _is_called(p, name)] for processes in (before, after))
        metric = f"{host}.{name}.cpu"
        if then and not {(p.pid, p.began) for p in then} & {(p.pid, p.began) for p in now}:
            gone.append(f"{name} (process {then[0].pid}) on {host} has ended")
            found[metric] = [None, "s", "it has ended during the trial"]
        elif now:
            found[metric] = [used_ns(then, now) / 1e9, "s"]
        else:
            found[metric] = [None, "s", f"no process of that name on {host}"]
    return found, gone


def _is_called(process: Process, name: str) -> bool:
    return process.name == name or (
        len(name.encode()) > NAME_BYTES and process.name.encode() == name.encode()[:15]
    )


_CPU, _BLOCK = "sys/devices/system/cpu", "sys/block/*"
FILES = (
    *(f"proc/{name}" for name in ("uptime", "cmdline", "cpuinfo", "meminfo", "swaps", "loadavg", "stat")),
    *(f"proc/self/{name}" for name in ("limits", "cgroup", "mounts", "mountinfo", "status")),
    *("proc/pressure/*", "proc/fs/ext4/*/mb_structs_summary", "proc/sys/kernel/random/boot_id"),
    *(f"proc/sys/{name.replace('.', '/')}" for name in SYSCTLS),
    *(f"proc/sys/kernel/{name}" for name in ("osrelease", "version", "hostname", "arch", "tainted")),
    *("proc/sys/kernel/randomize_va_space", "proc/sys/vm/*"),
    *(f"{_CPU}/{name}" for name in ("online", "possible", "isolated", "nohz_full", "smt/*")),
    *(f"{_CPU}/{name}" for name in ("vulnerabilities/*", "intel_pstate/*", "cpufreq/boost", "cpuidle/*")),
    *(f"{_CPU}/{name}" for name in ("cpu0/cache/index*/*", "cpu*/topology/physical_package_id")),
    *(f"{_CPU}/cpufreq/policy*/{name}" for name in ("scaling_*", "energy_performance_preference")),
    *("sys/devices/system/clocksource/clocksource0/*", "sys/devices/system/node/online"),
    *("sys/kernel/mm/transparent_hugepage/*", "sys/kernel/mm/ksm/run", "sys/module/zswap/parameters/enabled"),
    *("sys/class/dmi/id/sys_vendor", "sys/class/dmi/id/product_name", "sys/hypervisor/type"),
    *(f"{_BLOCK}/{name}" for name in ("size", "ro", "queue/*", "device/*", "loop/*", "*/start", "*/size")),
    *("sys/dev/block/*/queue/scheduler", "sys/dev/block/*/../queue/scheduler"),
    *("sys/fs/cgroup/cgroup.controllers", "sys/fs/cgroup/unified/cgroup.controllers"),
    *("sys/fs/cgroup/cpu.max", "sys/fs/cgroup/memory.max"),
    *("etc/os-release", "usr/lib/os-release", "run/systemd/container", "run/.containerenv", ".dockerenv"),
)
"""Shell patterns, below the root."""

SNAPSHOT_S = 60.0
_LARGEST = 64 << 20
_LINE = r"""
d=$(mktemp -d) || exit; trap 'rm -rf "$d"' EXIT
cd / && cp --parents FILES "$d" 2>/dev/null
tar -C "$d" -c .
"""

Run = Callable[[str], bytes]
"""Runs a shell line on the other machine; returns its output."""


def take_snapshot(run: Run) -> dict[str, Any]:
    """A snapshot of another machine, without its programs, free space and other data that only its kernel has.

    Raises:
        MachineRefuses: it cannot be read there.
    """
    with scratch_directory() as root:
        fetch_files(run, root)
        return snapshot.take(root, Path("/"), files=False)


def fetch_files(run: Run, root: Path) -> None:
    """Copy the files that a snapshot reads to below `root`.

    Raises:
        MachineRefuses: they cannot be read there, or the archive is invalid.
    """
    data = run(_LINE.replace("FILES", " ".join(FILES)))
    try:
        with tarfile.open(fileobj=io.BytesIO(data[:_LARGEST]), mode="r:") as archive:
            archive.extractall(root, filter="data")
    except (tarfile.TarError, OSError) as error:
        raise MachineRefuses(f"the description of a node cannot be read: {error}") from None
