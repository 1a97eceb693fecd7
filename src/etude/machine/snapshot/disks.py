"""Disks, and mounted file systems: models, queue settings, options, free space and its fragmentation."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from etude.machine import tree
from etude.osutil.mounts import Mount, deepest_mount, mounts

Part = dict[str, Any]

SECTOR_BYTES = 512
"""Unit of `size` and `start` in /sys, whatever the disk's own sector size."""
MAX_DISKS = 64
NO_DISK = ("ram", "sr", "fd")
TEXTS = ("write_cache", "zoned")
NUMBERS = (
    *("rotational", "nr_requests", "read_ahead_kb", "max_sectors_kb", "max_segments", "nomerges"),
    *("rq_affinity", "io_poll", "wbt_lat_usec", "fua", "logical_block_size", "physical_block_size"),
    *("optimal_io_size", "discard_granularity", "discard_max_bytes"),
)


def block_devices(root: Path) -> Part:
    """Disks and loop devices that are mounted here, by name; those without a size are left out.

    Other loop devices belong to others: they come and go.
    """
    used = {mount.source for mount in mounts(root)}
    found: Part = {}
    for name in tree.names(root, "sys/block"):
        size = tree.read_int(root, f"sys/block/{name}/size")
        others = name.startswith("loop") and f"/dev/{name}" not in used
        if not size or others or name.startswith(NO_DISK) or len(found) >= MAX_DISKS:
            continue
        found[name] = _disk(root, f"sys/block/{name}", size)
    return found


def _disk(root: Path, base: str, sectors: int) -> Part:
    queue = f"{base}/queue"
    return {
        "model": tree.read_text(root, f"{base}/device/model")
        or tree.read_text(root, f"{base}/device/vendor"),
        "firmware": tree.read_text(root, f"{base}/device/firmware_rev")
        or tree.read_text(root, f"{base}/device/rev"),
        "size_bytes": sectors * SECTOR_BYTES,
        "read_only": tree.read_int(root, f"{base}/ro"),
        "backing_file": tree.read_text(root, f"{base}/loop/backing_file"),
        "direct_io": tree.read_int(root, f"{base}/loop/dio"),
        "scheduler": tree.read_chosen(root, f"{queue}/scheduler"),
        **{name: tree.read_text(root, f"{queue}/{name}") for name in TEXTS},
        **{name: tree.read_int(root, f"{queue}/{name}") for name in NUMBERS},
        "partitions": _partitions(root, base),
    }


def _partitions(root: Path, base: str) -> Part:
    """Offset on the disk and size of each partition, by name. Serial numbers and labels are not read."""
    disk = os.path.basename(base)
    found = {}
    for name in tree.names(root, base):
        start = tree.read_int(root, f"{base}/{name}/start") if name.startswith(disk) else None
        if start is not None:
            sectors = tree.read_int(root, f"{base}/{name}/size")
            found[name] = {
                "offset_bytes": start * SECTOR_BYTES,
                "size_bytes": None if sectors is None else sectors * SECTOR_BYTES,
            }
    return found


NO_STORE = frozenset(
    (
        *("autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts"),
        *("devtmpfs", "efivarfs", "fusectl", "fuse.gvfsd-fuse", "fuse.portal", "hugetlbfs"),
        *("mqueue", "nsfs", "proc", "pstore", "rpc_pipefs", "securityfs", "selinuxfs", "sysfs"),
        *("tracefs",),
    )
)
"""Kinds that hold no user files."""
TEMPORARY_MOUNTS = re.compile(
    r"/run/(?:user|credentials|netns|docker)/|/snap/|/var/lib/(?:docker|containers|kubelet)/"
)
"""Temporary mount points of logins, services and containers."""
MAX_MOUNTS = 100
LONGEST = 400
SECRET_OPTION = re.compile(r"^((?:user(?:name)?|pass(?:word)?|cred(?:entials)?|domain|secret|key)=).*", re.I)


def shown_options(mount: Mount) -> str:
    """Mount options without credentials."""
    return ",".join(SECRET_OPTION.sub(r"\1(masked)", option) for option in mount.options)[:LONGEST]


def file_system(root: Path, directory: str) -> Part:
    """The file system of a directory: the deepest mount above it; the last of several at one place."""
    best = deepest_mount(directory, mounts(root))
    return {
        "path": directory,
        "mount_point": best and best.target,
        "type": best and best.kind,
        "device": best and best.source,
        "options": best and shown_options(best),
        "scheduler": scheduler(root, best.number) if best else None,
        **free_space(root, directory),
    }


def mounted(root: Path) -> Part:
    """File systems that hold files, by mount point; the last of several at one place."""
    found = {}
    for mount in mounts(root):
        if mount.kind in NO_STORE or TEMPORARY_MOUNTS.search(mount.target + "/"):
            continue
        found[mount.target] = mount
    return {
        point: {
            "type": mount.kind,
            "device": mount.source,
            "options": shown_options(mount),
            **_local_room(root, mount),
        }
        for point, mount in list(found.items())[:MAX_MOUNTS]
    }


def _local_room(root: Path, mount: Mount) -> Part:
    """Free space of a local disk's file system; others, such as network file systems, may not answer for minutes."""
    if not mount.source.startswith("/dev/"):
        return {}
    return free_space(root, mount.target) | {"free_fragment_bytes": free_fragment(root, mount)}


def free_space(root: Path, path: str) -> Part:
    """Bytes and inodes of a file system, total and available to users."""
    try:
        found = os.statvfs(path) if root == Path("/") else None
    except OSError:
        found = None
    return {
        "size_bytes": found and found.f_blocks * found.f_frsize,
        "free_bytes": found and found.f_bavail * found.f_frsize,
        "free_inodes": found and found.f_favail,
    }


def free_fragment(root: Path, mount: Mount) -> int | None:
    """Median over the groups of an ext4 file system of the average length of free extents, bytes.

    The kernel keeps groups in lists by powers of two (Linux 5.14 and later, `mb_optimize_scan`), so it is known within
    a factor of two. `mb_groups` is more precise, but reads all bitmaps from the disk first.
    """
    if mount.kind != "ext4":
        return None
    name = os.path.basename(os.path.realpath(mount.source))
    summary = tree.read_text(root, f"proc/fs/ext4/{name}/mb_structs_summary", 1 << 14) or ""
    counts = re.findall(r"list_order_(\d+)_groups: (\d+)", summary.partition("avg_fragment_size_lists:")[2])
    groups = sum(int(count) for _, count in counts)
    below = 0
    for order, count in counts:
        below += int(count)
        if 2 * below >= groups > 0:
            return _block_bytes(root, mount) << int(order)
    return None


def _block_bytes(root: Path, mount: Mount) -> int:
    try:
        return os.statvfs(mount.target).f_bsize if root == Path("/") else 4096
    except OSError:
        return 4096


def scheduler(root: Path, number: str) -> str | None:
    """The I/O scheduler of a block device; that of a partition belongs to its disk."""
    base = f"sys/dev/block/{number}"
    return tree.read_chosen(root, f"{base}/queue/scheduler") or tree.read_chosen(
        root, f"{base}/../queue/scheduler"
    )
