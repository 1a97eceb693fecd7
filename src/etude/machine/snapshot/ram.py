"""Memory, swap, and how the kernel deals with both."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from etude.machine import tree

Part = dict[str, Any]


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
    """Devices and files that are swapped to, with their priority."""
    lines = [line.split() for line in tree.read_lines(root, "proc/swaps")[1:]]
    return [f"{fields[0]} {fields[-1]}" for fields in lines if len(fields) >= 5]
