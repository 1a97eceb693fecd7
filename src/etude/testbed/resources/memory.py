"""How much memory a command gets, its page cache and sockets with it: bytes, as 512M."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from etude.testbed.resources import levels
from etude.testbed.resources.cgroups import Controller, Place
from etude.testbed.resources.confined import Confined, Writes
from etude.testbed.resources.resource import Setting

_SWAP = ("memory.memsw.limit_in_bytes", "memory.swap.max")
"""A kernel without accounting of swap lacks these."""


@dataclass(frozen=True)
class Memory(Confined):
    """No swap beyond it: above the limit the kernel takes back page cache, then kills."""

    name: ClassVar[str] = "memory"
    controller: ClassVar[Controller] = "memory"

    def understood(self, level: str) -> int:
        """Bytes."""
        return levels.size(level)

    def writes(self, level: str, place: Place, so_far: Setting) -> Writes:
        """v1 counts memory and swap together, v2 each by itself. In v1 their sum may not be less: memory first."""
        limit = str(self.understood(level))
        if place.version == 2:
            return [("memory.max", limit), ("memory.swap.max", "0")]
        return [("memory.limit_in_bytes", limit), ("memory.memsw.limit_in_bytes", limit)]

    def there(self, group: Path, name: str) -> bool:
        """Swap may not be accounted for."""
        return name not in _SWAP or (group / name).exists()
