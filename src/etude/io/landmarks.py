"""Sizes of this machine at which a curve may bend: caches, pages, and what a TLB reaches."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from etude.report.text import digits, scale_of

NEAR = 1.25
"""A knee further than 2 to this power from every landmark is near none."""


@dataclass(frozen=True)
class Landmark:
    """A size in bytes, and what it is of."""

    name: str
    bytes: int

    def __str__(self) -> str:
        return f"{self.name} ({size_text(self.bytes)})"


def size_text(size: float) -> str:
    """`32 KiB`, with at most three digits that say something."""
    divisor, name = scale_of(size, "B")
    return f"{size / divisor:.3g} {name}" if size / divisor < 1000 else f"{digits(size / divisor, 3)} {name}"


def landmarks(experiment: Mapping[str, Any]) -> tuple[Landmark, ...]:
    """Those of the machine that an experiment ran on, in rising order; only what it says of itself."""
    machine = experiment.get("machine") or {}
    before = machine.get("before") or {}
    memory = before.get("memory") or {}
    found = [
        Landmark(f"L{cache['level']}", cache["size_bytes"])
        for cache in (before.get("cpu") or {}).get("caches") or ()
        if cache.get("size_bytes") and cache.get("type") in ("Data", "Unified")
    ]
    page = memory.get("page_bytes")
    found += [Landmark(name, size) for name, size in (("page", page), ("huge page", _huge(memory))) if size]
    found += [
        Landmark(f"L{tlb['level']} TLB reach", tlb["entries"] * tlb["page_bytes"])
        for tlb in machine.get("tlb") or ()
        if tlb["kind"] in ("data", "load", "unified") and tlb["page_bytes"] == (page or 4096)
    ]
    return tuple(sorted(dict.fromkeys(found), key=lambda each: (each.bytes, each.name)))


def _huge(memory: Mapping[str, Any]) -> int | None:
    """The size of huge pages, where the kernel gives any by itself or when asked."""
    return memory.get("huge_page_bytes") if memory.get("huge_pages") in ("always", "madvise") else None


def nearest(size: float, known: Sequence[Landmark]) -> str:
    """Which landmark a size is nearest to, on a logarithmic scale, and how many times it that is."""
    if not known:
        return "no size of this machine is known"
    best = min(known, key=lambda each: abs(math.log2(size / each.bytes)))
    away = size / best.bytes
    if abs(math.log2(away)) > NEAR:
        return "near no cache, TLB or page size of this machine"
    return f"at {best}" if abs(math.log2(away)) < 0.25 else f"{away:.2g} × {best}"
