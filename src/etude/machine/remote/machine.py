"""Snapshot of another machine: the files that a snapshot reads are copied here, and read here as a tree."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from etude.errors import MachineRefuses
from etude.machine import snapshot
from etude.machine.snapshot.settings import SYSCTLS
from etude.osutil.files import scratch_directory

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

WITHIN_S = 60.0
_LARGEST = 64 << 20
_LINE = r"""
d=$(mktemp -d) || exit; trap 'rm -rf "$d"' EXIT
cd / && cp --parents FILES "$d" 2>/dev/null
tar -C "$d" -c .
"""

Run = Callable[[str], bytes]
"""Runs a shell line on the other machine; returns its output."""


def take(run: Run) -> dict[str, Any]:
    """A snapshot of another machine, without its programs, free space and other data that only its kernel has.

    Raises:
        MachineRefuses: it cannot be read there.
    """
    with scratch_directory() as root:
        fetch(run, root)
        return snapshot.take(root, Path("/"), files=False)


def fetch(run: Run, root: Path) -> None:
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
