"""Facts of a snapshot that influence performance: hardware, kernel, and their settings (docs/store.md, "Machines")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from etude.store.column_encoding import clean, key
from etude.store.entry import Machine

_GIB = 2**30

_MEMBERS = {
    "architecture": "system.architecture",
    "caches": "cpu.caches",
    "cores": "cpu.online",
    "cores allowed": "cpu.allowed",
    "governor": "frequency.governors",
    "hypervisor": "virtualisation.hypervisor",
    "kernel": "system.kernel_release",
    "memory": "memory.total_bytes",
    "microcode": "cpu.microcode",
    "NUMA nodes": "cpu.numa_nodes",
    "processor": "cpu.model",
    "SMT": "cpu.smt",
    "sockets": "cpu.sockets",
    "turbo": "frequency.turbo",
}
"""Each fact, and the member of a snapshot that it is read from."""


def machine_of(name: str, snapshot: Mapping[str, Any] | None) -> Machine:
    """A machine by its snapshot (docs/snapshot.md); without one it has no facts and no digest."""
    found = {fact: _text(fact, _member(snapshot or {}, path)) for fact, path in _MEMBERS.items()}
    return of_facts(name, {fact: text for fact, text in found.items() if text})


def of_facts(name: str, facts: Mapping[str, str]) -> Machine:
    """A machine by facts from another source."""
    ordered = tuple(sorted((fact, clean(text)) for fact, text in facts.items()))
    return Machine(clean(name), key(*(word for fact in ordered for word in fact)) if ordered else "", ordered)


def _member(part: Any, path: str) -> Any:
    for name in path.split("."):
        part = part.get(name) if isinstance(part, Mapping) else None
    return part


def _text(fact: str, value: Any) -> str:
    """The fact as text; empty if unknown."""
    if value is None or value == []:
        return ""
    if fact == "memory" and isinstance(
        value, int
    ):  # the kernel reserves some, a little more or less each boot
        return f"{value / _GIB:.2g} GiB" if value < 10 * _GIB else f"{value / _GIB:.0f} GiB"
    if fact == "cores allowed" and isinstance(value, list):
        return str(len(value))
    if fact == "caches" and isinstance(value, list):
        return ", ".join(_cache(cache) for cache in value if isinstance(cache, Mapping))
    if isinstance(value, bool):
        return "on" if value else "off"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _cache(cache: Mapping[str, Any]) -> str:
    size = cache.get("size_bytes")
    kib = f"{size // 1024} KiB" if isinstance(size, int) else "?"
    return f"L{cache.get('level')} {str(cache.get('type')).lower()} {kib}"
