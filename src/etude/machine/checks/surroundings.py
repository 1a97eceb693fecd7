"""What measuring needs around it."""

import os

from etude.machine import snapshot, tree
from etude.machine.finding import NOTHING_TO_DO, Finding, Machine

GIB = 1 << 30
LEAST_FREE_SHARE = 0.05


def cgroups(machine: Machine) -> Finding:
    meaning = "Only a group of its own tells the CPU time and peak memory of all that a command starts."
    seen = snapshot.cgroup(machine.root)
    mounted = " and ".join(f"v{version}" for version in seen["versions"])
    if not mounted:
        return Finding("cgroups", "not mounted", "unknown", meaning, "mount the cgroup2 file system")
    if {"cpu", "memory"} <= set(seen["controllers"] or []):
        state = f"{mounted}, with cpu and memory"
    elif {"cpuacct", "memory"} <= controllers_of_version_1(machine):
        state = f"{mounted}, with cpuacct and memory"
    else:
        advice = "enable the cpu and memory controllers in cgroup.subtree_control"
        return Finding("cgroups", f"{mounted}, without cpu or memory", "unknown", meaning, advice)
    if not machine.privileged:
        advice = "run as root, or under systemd-run --user --scope -p Delegate=yes"
        return Finding("cgroups", f"{state}; yours only if delegated", "unknown", meaning, advice)
    return Finding("cgroups", state, "good", meaning, NOTHING_TO_DO)


def controllers_of_version_1(machine: Machine) -> set[str]:
    """Each line of /proc/self/cgroup is `number:controllers:path`."""
    fields = (line.split(":") for line in tree.read_lines(machine.root, "proc/self/cgroup"))
    return {name for field in fields if len(field) > 2 for name in field[1].split(",") if name}


def free_space(machine: Machine) -> Finding:
    meaning = "File systems slow down as they fill up, and results need room."
    try:
        seen = os.statvfs(machine.directory)
    except OSError as error:
        advice = "change to a directory that can be read"
        return Finding("free space", f"not readable: {error.strerror}", "unknown", meaning, advice)
    free, total = seen.f_bavail * seen.f_frsize, seen.f_blocks * seen.f_frsize
    state = f"{free / GIB:.1f} of {total / GIB:.1f} GiB"
    if free < GIB or free < LEAST_FREE_SHARE * total:
        return Finding("free space", state, "noisy", meaning, "make room, or work on another file system")
    return Finding("free space", state, "good", meaning, NOTHING_TO_DO)
