"""The memory that a data set may be cached in: the machine's, or what a control group leaves of it."""

from __future__ import annotations

from pathlib import Path

from etude.testbed import tree
from etude.testbed.resources.mounts import Mount, mounts


def memory_bytes(root: Path = Path("/"), table: list[Mount] | None = None) -> int | None:
    """Bytes: the machine's memory, or the smallest limit of the control groups that this process is in (v1 and v2).

    None where the kernel does not tell.
    """
    total = tree.read_sizes(root, "proc/meminfo").get("MemTotal")
    limits = _limits(root, mounts() if table is None else table)
    return total and min([total, *limits])


def _limits(root: Path, table: list[Mount]) -> list[int]:
    found = []
    for line in tree.read_lines(root, "proc/self/cgroup"):
        _, controllers, group = (*line.split(":", 2), "", "")[:3]
        kind = "cgroup2" if not controllers else "cgroup" if "memory" in controllers.split(",") else ""
        for mount in table:
            if mount.kind == kind and (
                kind == "cgroup2" or "memory" in mount.target.split("/")[-1].split(",")
            ):
                found += _of_group(root, mount, group, ("memory.max", "memory.high", "memory.limit_in_bytes"))
    return found


def _of_group(root: Path, mount: Mount, group: str, names: tuple[str, ...]) -> list[int]:
    """The limits of a group and of those above it. In a container the group may lie outside of what is mounted."""
    below = Path(group.removeprefix(mount.within.rstrip("/")).lstrip("/"))
    texts = [
        tree.read_text(root, f"{mount.target.lstrip('/')}/{place}/{name}")
        for place in (below, *below.parents)
        for name in names
    ]
    return [int(text) for text in texts if text and text.strip().isdigit() and int(text) > 0]
