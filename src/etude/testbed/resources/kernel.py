"""What the kernel has, or has a module for."""

from __future__ import annotations

import os
from pathlib import Path

from etude.testbed import tree


def file_system_lacking(kind: str, root: Path = Path("/")) -> str | None:
    """Why the file system cannot be mounted."""
    known = {line.split()[-1] for line in tree.read_lines(root, "proc/filesystems") if line.strip()}
    if kind in known or _module(kind, root):
        return None
    return f"the kernel has no {kind}: it is not in /proc/filesystems, and no module of it is there"


def md_lacking(root: Path = Path("/")) -> str | None:
    """Why there can be no array of disks."""
    if (root / "proc/mdstat").exists() or _module("raid0", root):
        return None
    return 'the kernel has no md: no /proc/mdstat, and no module raid0 is there; join = "btrfs" needs none'


def _module(name: str, root: Path) -> bool:
    release = tree.read_text(root, "proc/sys/kernel/osrelease") or os.uname().release
    lines = tree.read_lines(root, f"lib/modules/{release}/modules.dep")
    return any(f"/{name}.ko" in line.partition(":")[0] for line in lines)
