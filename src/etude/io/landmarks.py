"""Sizes of this machine at which a curve may bend: caches, pages, and what a TLB reaches."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from etude.report.text import scale_of

AT, NEAR = 0.25, 1.25
"""Powers of 2: a knee that is closer to a landmark is at it; one that is further from every landmark is near none."""


@dataclass(frozen=True)
class Landmark:
    """A size in bytes, and what it is of."""

    name: str
    bytes: int

    def __str__(self) -> str:
        return f"{self.name} ({size_text(self.bytes)})"


def size_text(size: float) -> str:
    """`32 KiB`, with at most three digits that say something."""
    divisor, name = scale_of(size * 1024 / 1000, "B")  # 1,000 KiB and more are told in MiB
    return f"{size / divisor:.3g} {name}"


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
    """Which landmark a size is nearest to, on a logarithmic scale, or which two it lies between."""
    if not known:
        return "no size of this machine is known"
    away = {each: math.log2(size / each.bytes) for each in known}
    best = min(known, key=lambda each: abs(away[each]))
    if abs(away[best]) < AT:
        return f"at {best}"
    below = [each for each in known if 0.0 <= away[each] < 1.0]
    above = [each for each in known if -1.0 < away[each] <= 0.0]
    if below and above:
        return f"between {below[-1]} and {above[0]}"
    if abs(away[best]) > NEAR:
        return "near no cache, TLB or page size of this machine"
    return f"{2 ** away[best]:.2g} × {best}"
