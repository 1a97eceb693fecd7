"""Waits until a freshly booted machine has settled."""

from __future__ import annotations

import math
import os
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from etude.errors import UsageError
from etude.machine import tree
from etude.osutil.commands import run_to_end
from etude.osutil.trust import tool_environment

MAX_WAIT_S = 180.0
VARIABLE = "ETUDE_SETTLE_S"
"""Variable with the maximum wait, s, of the environment in which the script was started."""
BETWEEN_S = 5.0
"""Interval between two polls, s: each starts systemctl, which itself loads the machine."""
MAX_LOAD_PER_CPU = 0.5
MAX_PRESSURE = 0.05
RESOURCES = ("cpu", "io", "memory")


@dataclass(frozen=True)
class Busy:
    """Activity of a machine: load of the last minute, shares of the last 10 s with PSI stalls by resource, and
    unfinished start-up jobs. Unknown values are None, or left out."""

    load: float | None = None
    pressure: dict[str, float] = field(default_factory=dict)
    jobs: int | None = None
    cpus: int = 1

    def reasons(self) -> list[str]:
        """Reasons why it has not settled, in words."""
        found = []
        if self.jobs:
            found.append(f"{self.jobs} start-up jobs")
        if self.load is not None and self.load > MAX_LOAD_PER_CPU * self.cpus:
            found.append(f"load {self.load:g} on {self.cpus} CPUs")
        high = {name: share for name, share in self.pressure.items() if share > MAX_PRESSURE}
        return [*found, *(f"{name} pressure {share:.0%}" for name, share in high.items())]


@dataclass(frozen=True)
class BootState:
    """Seconds waited, True if the machine settled, and its last activity."""

    waited_s: float
    settled: bool
    load: float | None
    pressure: dict[str, float]
    jobs: int | None
    why: str = ""
    """Remaining activity, if it did not settle."""


def wait(
    most_s: float = MAX_WAIT_S,
    *,
    read: Callable[[], Busy] | None = None,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], object] = time.sleep,
) -> BootState:
    """Wait until load and pressure are low and no start-up job is left, but at most `most_s`."""
    look = read or read_busy
    began = clock()
    while True:
        busy = look()
        reasons, waited = busy.reasons(), clock() - began
        if not reasons or waited >= most_s:
            why = ", ".join(reasons)
            return BootState(round(waited, 1), not reasons, busy.load, busy.pressure, busy.jobs, why)
        pause(min(BETWEEN_S, most_s - waited))


def most_seconds(environment: Mapping[str, str]) -> float:
    """Maximum wait by the environment, s.

    Raises:
        UsageError: it is no number of seconds.
    """
    text = environment.get(VARIABLE) or str(MAX_WAIT_S)
    seconds = tree.to_float(text)
    if seconds is None or not 0 <= seconds < math.inf:
        raise UsageError(f"{VARIABLE}={text}: expected a number of seconds, such as {MAX_WAIT_S:g}")
    return seconds


def read_busy(root: Path = Path("/"), jobs: Callable[[], int | None] | None = None) -> Busy:
    """Present activity of the machine below `root`."""
    load = (tree.read_text(root, "proc/loadavg") or "").split()
    shares = {name: _some_avg10(root, name) for name in RESOURCES}
    return Busy(
        load=tree.to_float(load[0]) if load else None,
        pressure={name: share for name, share in shares.items() if share is not None},
        jobs=(jobs or systemd_jobs)(),
        cpus=len(tree.read_cpus(root, "sys/devices/system/cpu/online") or []) or os.cpu_count() or 1,
    )


def systemd_jobs() -> int | None:
    """Jobs in systemd's queue; at least one while systemd reports that the system is starting; None without systemd."""
    if not os.path.isdir("/run/systemd/system"):
        return None
    words = ["systemctl", "show", "--property=NJobs,SystemState"]
    try:
        done = run_to_end(words, patience_s=30.0, environment=tool_environment())
    except (OSError, subprocess.TimeoutExpired):
        return None
    return jobs_of(done.text)


def jobs_of(said: str) -> int | None:
    """The number of jobs in the output of `systemctl show`."""
    members = dict(line.split("=", 1) for line in said.splitlines() if "=" in line)
    jobs = tree.to_int(members.get("NJobs"))
    starting = members.get("SystemState") in ("initializing", "starting")
    return max(jobs or 0, 1) if starting else jobs


def _some_avg10(root: Path, name: str) -> float | None:
    for line in tree.read_lines(root, f"proc/pressure/{name}"):
        kind, *members = line.split()
        values = dict(member.split("=", 1) for member in members if "=" in member)
        if kind == "some" and (percent := tree.to_float(values.get("avg10"))) is not None:
            return percent / 100
    return None
