"""Sizes of this machine at which a curve may bend: caches, pages, and what a TLB reaches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from etude.results.results import machine_member
from etude.units.formatting import scale_of


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
    memory = machine_member(experiment, "memory") or {}
    found = [
        Landmark(f"L{cache['level']}", cache["size_bytes"])
        for cache in _objects(machine_member(experiment, "cpu", "caches"), "level", "size_bytes")
        if cache.get("type") in ("Data", "Unified")
    ]
    page = memory.get("page_bytes")
    found += [Landmark(name, size) for name, size in (("page", page), ("huge page", _huge(memory))) if size]
    found += [
        Landmark(f"L{tlb['level']} TLB reach", tlb["entries"] * tlb["page_bytes"])
        for tlb in _objects(machine.get("tlb"), "level", "entries", "page_bytes")
        if tlb.get("kind") in ("data", "load", "unified") and tlb["page_bytes"] == (page or 4096)
    ]
    return tuple(sorted(dict.fromkeys(found), key=lambda each: (each.bytes, each.name)))


def _objects(found: Any, *counts: str) -> list[Mapping[str, Any]]:
    """Those of a list that hold these counts, each above 0."""
    return [
        each
        for each in found or ()
        if isinstance(each, dict) and all(type(each.get(name)) is int and each[name] > 0 for name in counts)
    ]


def _huge(memory: Mapping[str, Any]) -> int | None:
    """The size of huge pages, where the kernel gives any by itself or when asked."""
    return memory.get("huge_page_bytes") if memory.get("huge_pages") in ("always", "madvise") else None
