"""Turns swap off, and on again with the same priorities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from etude.machine import tree
from etude.machine.quiet.machine import Machine
from etude.machine.quiet.operation import Change, Operation, Request, Unavailable
from etude.osutil.mounts import unescaped

SPARE_SHARE = 0.05
"""Minimum share of memory left free after swapped pages are read back."""
OFF_S = 600.0


@dataclass(frozen=True)
class Area:
    path: str
    used_bytes: int
    priority: int


def areas(machine: Machine) -> list[Area]:
    """Swap areas in use, from /proc/swaps."""
    found = []
    for line in (machine.read("proc/swaps") or "").splitlines()[1:]:
        fields = line.split()
        if len(fields) == 5:
            found.append(Area(unescaped(fields[0]), int(fields[3]) * 1024, int(fields[4])))
    return found


class Swap(Operation):
    name = "swap"
    meaning = "What was swapped out is read back at the speed of the disk, in the middle of a run."

    def changes(self, machine: Machine, asked: Request) -> list[Change]:
        found = areas(machine)
        if gone := [area.path for area in found if area.path.endswith(" (deleted)")]:
            raise Unavailable(f"{gone[0]}: could not be turned on again")
        used = sum(area.used_bytes for area in found)
        sizes = tree.read_sizes(machine.root, "proc/meminfo")
        free = sizes.get("MemAvailable", 0) - SPARE_SHARE * sizes.get("MemTotal", 0)
        if used and used > free:
            raise Unavailable(f"{used >> 20} MiB are swapped out, and memory has no room for them: free some")
        # The kernel numbers areas without a priority downwards in order of activation: the last goes first.
        last_first = sorted(found, key=lambda area: area.priority)
        return [Change(area.path, f"on {area.priority}", "off") for area in last_first]

    def owns(self, item: str) -> bool:
        return item.startswith("/")

    def read(self, machine: Machine, item: str) -> str | None:
        return next((f"on {area.priority}" for area in areas(machine) if area.path == item), "off")

    def same(self, one: str | None, other: str) -> bool:
        """Equal also for two priorities below 0, which the kernel assigns to areas without one."""
        return one == other or ((one or "").startswith("on -") and other.startswith("on -"))

    def put(self, machine: Machine, item: str, value: str) -> None:
        if value == "off":
            machine.tool("swapoff", item, patience_s=OFF_S)
            return
        priority = value.removeprefix("on ")
        given = [] if priority.startswith("-") else ["--priority", priority]
        machine.tool("swapon", *given, *self._discard(machine, item), item)

    def after_restore(self, machine: Machine, changes: Sequence[Change]) -> None:
        """Turn areas without a priority off and on again if one came back late and they are out of order."""
        numbered = [each for each in reversed(changes) if each.was.startswith("on -")]
        now = {area.path: area.priority for area in areas(machine)}
        here = [each.item for each in numbered if each.item in now]
        if len(here) < len(numbered) or here == sorted(here, key=lambda path: -now[path]):
            return
        for path in reversed(here):
            machine.tool("swapoff", path, patience_s=OFF_S)
        for each in numbered:
            self.put(machine, each.item, each.was)

    def _discard(self, machine: Machine, item: str) -> list[str]:
        """Discard options of /etc/fstab: the kernel does not report them."""
        for line in tree.read_lines(machine.root, "etc/fstab"):
            fields = line.split()
            if len(fields) > 3 and unescaped(fields[0]) == item:
                return [f"--{option}" for option in fields[3].split(",") if option.startswith("discard")]
        return []
