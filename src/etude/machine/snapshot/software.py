"""The kernel that runs and the system around it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from etude.machine import tree

Part = dict[str, Any]


def system(root: Path) -> Part:
    """Kernel, command line, distribution, and since when it runs."""
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
    """/proc/sys/kernel/arch exists since Linux 6.1; before that only the running machine can be asked."""
    recorded = tree.read_text(root, "proc/sys/kernel/arch")
    return recorded or (os.uname().machine if root == Path("/") else None)
