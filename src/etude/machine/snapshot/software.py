"""System software: kernel and distribution, memory, virtualisation and cgroup, environment."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from etude.machine import tree
from etude.machine.snapshot.processor import cpu_info
from etude.masking import MASKED, SECRET_VARIABLE, Mask

Part = dict[str, Any]


def system(root: Path) -> Part:
    """Kernel, command line, distribution, and boot time."""
    release = os_release(root)
    uptime = (tree.read_text(root, "proc/uptime") or "").split()
    return {
        "kernel_release": tree.read_text(root, "proc/sys/kernel/osrelease"),
        "kernel_version": tree.read_text(root, "proc/sys/kernel/version"),
        "command_line": tree.read_text(root, "proc/cmdline"),
        "distribution": release.get("PRETTY_NAME"),
        "distribution_id": release.get("ID"),
        "distribution_version": release.get("VERSION_ID"),
        "architecture": architecture(root),
        "hostname": tree.read_text(root, "proc/sys/kernel/hostname"),
        "boot_id": tree.read_text(root, "proc/sys/kernel/random/boot_id"),
        "uptime_s": tree.to_float(uptime[0]) if uptime else None,
    }


def os_release(root: Path) -> dict[str, str]:
    lines = tree.read_lines(root, "etc/os-release") or tree.read_lines(root, "usr/lib/os-release")
    pairs = (line.partition("=") for line in lines if "=" in line)
    return {name.strip(): value.strip().strip("\"'") for name, _, value in pairs}


def architecture(root: Path) -> str | None:
    """Architecture from /proc/sys/kernel/arch, which exists since Linux 6.1; before that, of the running machine
    only."""
    recorded = tree.read_text(root, "proc/sys/kernel/arch")
    return recorded or (os.uname().machine if root == Path("/") else None)


def memory(root: Path) -> Part:
    """Sizes in bytes."""
    sizes = tree.read_sizes(root, "proc/meminfo")
    swap_total, swap_free = sizes.get("SwapTotal"), sizes.get("SwapFree")
    return {
        "total_bytes": sizes.get("MemTotal"),
        "available_bytes": sizes.get("MemAvailable"),
        "swap_total_bytes": swap_total,
        "swap_used_bytes": None if swap_total is None or swap_free is None else swap_total - swap_free,
        "swappiness": tree.read_int(root, "proc/sys/vm/swappiness"),
        "free_bytes": sizes.get("MemFree"),
        "cached_bytes": sizes.get("Cached"),
        "dirty_bytes": sizes.get("Dirty"),
        "swaps": swaps(root),
        "page_bytes": os.sysconf("SC_PAGE_SIZE") if root == Path("/") else None,
        "huge_page_bytes": sizes.get("Hugepagesize"),
        "huge_pages": tree.read_chosen(root, "sys/kernel/mm/transparent_hugepage/enabled"),
        "huge_pages_defrag": tree.read_chosen(root, "sys/kernel/mm/transparent_hugepage/defrag"),
        "huge_pages_reserved": sizes.get("HugePages_Total"),
        "same_page_merging": tree.read_int(root, "sys/kernel/mm/ksm/run"),
        "compressed_swap": tree.read_text(root, "sys/module/zswap/parameters/enabled"),
        "dirty_ratio": tree.read_int(root, "proc/sys/vm/dirty_ratio"),
        "dirty_background_ratio": tree.read_int(root, "proc/sys/vm/dirty_background_ratio"),
    }


def swaps(root: Path) -> list[str]:
    """Swap devices and files, with their priority."""
    lines = [line.split() for line in tree.read_lines(root, "proc/swaps")[1:]]
    return [f"{fields[0]} {fields[-1]}" for fields in lines if len(fields) >= 5]


_USUAL = Mask()
LONGEST = 500
"""Maximum characters of a value."""
PERSONAL = re.compile(
    r"^(?:USER|LOGNAME|USERNAME|MAIL|EMAIL|HOSTNAME|HOST|NAME|SUDO_.*|SSH_.*|GIT_(?:AUTHOR|COMMITTER)_.*|DEBEMAIL"
    r"|DEBFULLNAME|DBUS_SESSION_BUS_ADDRESS|XAUTHORITY|SESSION_MANAGER|KRB5CCNAME|SLURMD?_.*|ETUDE_(?:JOB|NODE|RUN|SETTLED))$"
)
"""Variables of a user, login, scheduler's job or boot: they influence no result."""
RANDOM = re.compile(
    r"(?<![\w./+-])(?=[\w+/=-]*\d)(?=[\w+/=-]*[a-z])(?=[\w+=-]*[A-Z])[A-Za-z0-9+=_-]{24,}(?![\w./])"
)
"""A long word of digits, small and capital letters, that is no path: a likely key."""


def variables(environment: Mapping[str, str]) -> Part:
    """All variables, with secrets masked; and their total bytes, which shift the stack of programs."""
    shown = {name: value_shown(name, environment[name]) for name in sorted(environment)}
    size = sum(len(name) + len(value) + 2 for name, value in environment.items())
    return {"variables": {_plain(name): value for name, value in shown.items()}, "size_bytes": size}


def value_shown(name: str, value: str) -> str:
    """The value, masked and shortened for publication."""
    if value and (SECRET_VARIABLE.search(name) or PERSONAL.match(name)):
        return MASKED
    return _plain(RANDOM.sub(MASKED, _USUAL.text(value)))[:LONGEST]


def _plain(text: str) -> str:
    """The text with invalid UTF-8 replaced, so that it can be written as JSON."""
    return text.encode("utf-8", "replace").decode("utf-8")


CONTAINERS = ("docker", "kubepods", "libpod", "lxc", "machine.slice", "garden", "actions_job")
"""Words of a control group's path that only containers have."""


def virtualisation(root: Path) -> Part:
    """Signs of a hypervisor from processor and firmware, and signs of a container."""
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
    """Kind of container, by its manager's mark; None without any sign."""
    if said := tree.read_text(root, "run/systemd/container", 64):
        return said
    for mark, kind in (("run/.containerenv", "podman"), (".dockerenv", "docker")):
        if os.path.exists(os.path.join(root, mark)):
            return kind
    groups = tree.read_text(root, "proc/self/cgroup", 4096) or ""
    return next((word for word in CONTAINERS if word in groups), None)


def cgroup(root: Path) -> Part:
    """Mounted versions, and the limits of this process's own group."""
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
