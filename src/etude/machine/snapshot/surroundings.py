"""Whether this is a virtual machine or a container, and what its control group allows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from etude.machine import tree
from etude.machine.snapshot.processor import cpu_info

Part = dict[str, Any]


CONTAINERS = ("docker", "kubepods", "libpod", "lxc", "machine.slice", "garden", "actions_job")
"""Words of a control group's path that only a container's has."""


def virtualisation(root: Path) -> Part:
    """What the processor and the firmware say of a hypervisor, and what speaks for a container."""
    dmi = "sys/class/dmi/id"
    flags = (cpu_info(root).get("flags") or "").split()
    return {
        "hypervisor_flag": ("hypervisor" in flags) if flags else None,
        "hypervisor": tree.read_text(root, "sys/hypervisor/type"),
        "vendor": tree.read_text(root, f"{dmi}/sys_vendor"),
        "product": tree.read_text(root, f"{dmi}/product_name"),
        "container": container(root),
    }


def container(root: Path) -> str | None:
    """What kind of container this is, as its manager marks it; None where nothing speaks for one."""
    if said := tree.read_text(root, "run/systemd/container", 64):
        return said
    for mark, kind in (("run/.containerenv", "podman"), (".dockerenv", "docker")):
        if os.path.exists(os.path.join(root, mark)):
            return kind
    groups = tree.read_text(root, "proc/self/cgroup", 4096) or ""
    return next((word for word in CONTAINERS if word in groups), None)


def cgroup(root: Path) -> Part:
    """Versions that are mounted, and what limits this process by its own group."""
    lines = tree.read_lines(root, "proc/self/mounts")
    kinds = {fields[2]: fields[1] for fields in (line.split() for line in lines) if len(fields) > 2}
    own = next(
        (line[3:] for line in tree.read_lines(root, "proc/self/cgroup") if line.startswith("0::")), None
    )
    group = kinds.get("cgroup2", "").lstrip("/") + (own or "").rstrip("/")
    controllers = (
        tree.read_text(root, f"{kinds['cgroup2'].lstrip('/')}/cgroup.controllers")
        if "cgroup2" in kinds
        else None
    )
    return {
        "versions": [version for version, kind in ((1, "cgroup"), (2, "cgroup2")) if kind in kinds],
        "controllers": controllers.split() if controllers else None,
        "cpu_max": tree.read_text(root, f"{group}/cpu.max") if "cgroup2" in kinds else None,
        "memory_max": tree.read_text(root, f"{group}/memory.max") if "cgroup2" in kinds else None,
    }
