"""Disks: models, queue settings, and offsets of their partitions."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from etude.machine import tree
from etude.osutil.mounts import mounts

Part = dict[str, Any]

SECTOR_BYTES = 512
"""Unit of `size` and `start` in /sys, whatever the disk's own sector size."""
MOST = 64
NO_DISK = ("ram", "sr", "fd")
TEXTS = ("write_cache", "zoned")
NUMBERS = (
    "rotational",
    "nr_requests",
    "read_ahead_kb",
    "max_sectors_kb",
    "max_segments",
    "nomerges",
    "rq_affinity",
    "io_poll",
    "wbt_lat_usec",
    "fua",
    "logical_block_size",
    "physical_block_size",
    "optimal_io_size",
    "discard_granularity",
    "discard_max_bytes",
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
        if not size or others or name.startswith(NO_DISK) or len(found) >= MOST:
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
