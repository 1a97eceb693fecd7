"""Kernel settings of one file each, with their quiet values; and swap, turned off and on again with its priorities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from etude.machine import tree
from etude.machine.quiet.operation import Change, Machine, Operation, Request, Unavailable, must_be_writable
from etude.osutil.mounts import unescaped

KERNEL, MEMORY = "proc/sys/kernel", "proc/sys/vm"
HUGE = "sys/kernel/mm/transparent_hugepage"
NOT_QUIET = ""
"""Key in a rule for all values that are not named."""


@dataclass(frozen=True)
class Rules:
    """The quiet value of each file by its present one; a value without a rule stays."""

    files: Mapping[str, Mapping[str, str]]

    def changes(self, machine: Machine) -> list[Change]:
        found = []
        for path, rule in self.files.items():
            now = machine.read(path)
            if now is not None:
                found.append(Change(path, now, rule.get(now, rule.get(NOT_QUIET, now))))
        return found


class Settings(Operation):
    """Base of operations on files with rules."""

    rules: ClassVar[Rules]
    absent: ClassVar[str]
    """Reason why none of the files may exist."""

    def changes(self, machine: Machine, asked: Request) -> list[Change]:
        found = self.rules.changes(machine)
        if not found:
            raise Unavailable(self.absent)
        value = asked.value(self)
        if value:  # it belongs to the first file
            found[0] = Change(found[0].item, found[0].was, value)
        return must_be_writable(machine, found)

    def owns(self, item: str) -> bool:
        return item in self.rules.files


class Layout(Settings):
    name = "aslr"
    meaning = "Random layouts of memory let trials average over that luck; a fixed one is a bias."
    choices = ("0", "1", "2")
    rules = Rules({f"{KERNEL}/randomize_va_space": {NOT_QUIET: "2"}})
    absent = "the kernel has no randomize_va_space, or /proc is not mounted"


class HugePages(Settings):
    name = "thp"
    meaning = "Huge pages for whoever asks for them, rather than by the luck of free memory."
    choices = ("always", "madvise", "never")
    rules = Rules(
        {
            f"{HUGE}/enabled": {"always": "madvise"},
            f"{HUGE}/defrag": {"always": "madvise", "defer": "madvise"},
        }
    )
    absent = "the kernel has no transparent huge pages"


class Watchdogs(Settings):
    name = "watchdogs"
    meaning = "They interrupt every CPU now and then, and occupy a hardware counter."
    rules = Rules({f"{KERNEL}/nmi_watchdog": {NOT_QUIET: "0"}, f"{KERNEL}/soft_watchdog": {NOT_QUIET: "0"}})
    absent = "the kernel has no watchdogs"


class Sampling(Settings):
    name = "perf"
    meaning = "Whoever samples with perf meanwhile interrupts at most once a second."
    rules = Rules({f"{KERNEL}/perf_event_max_sample_rate": {NOT_QUIET: "1"}})
    absent = "the kernel has no perf events"

    def changes(self, machine: Machine, asked: Request) -> list[Change]:
        # Linux refuses a new rate while its own limit is off (perf_event_max_sample_rate_handler, EINVAL).
        limit = machine.read(f"{KERNEL}/perf_cpu_time_max_percent")
        if limit in ("0", "100"):
            raise Unavailable(f"perf_cpu_time_max_percent is {limit}: the kernel takes no rate then")
        return super().changes(machine, asked)


class Background(Settings):
    name = "background"
    meaning = "The kernel neither merges equal pages, nor moves them between nodes, nor compacts free memory."
    rules = Rules(
        {
            "sys/kernel/mm/ksm/run": {"1": "0"},
            f"{KERNEL}/numa_balancing": {NOT_QUIET: "0"},
            f"{MEMORY}/compaction_proactiveness": {NOT_QUIET: "0"},
        }
    )
    absent = "the kernel does none of this"


LIMITS = {f"{MEMORY}/dirty_background": "50", f"{MEMORY}/dirty": "80"}
"""Percent of memory that may be dirty before the kernel starts to write, and before writers wait."""
PERIOD = f"{MEMORY}/dirty_writeback_centisecs"


class Writeback(Operation):
    """A limit is in bytes or in percent, and setting one resets the other to 0: both are one item here."""

    name = "writeback"
    meaning = "Dirty pages stay in memory until they are many, or synced: no writing at odd times."
    usual = False

    def changes(self, machine: Machine, asked: Request) -> list[Change]:
        found = []
        for item, percent in LIMITS.items():
            if (now := self.read(machine, item)) is None:
                raise Unavailable(f"the kernel has no /{item}_ratio, or /proc is not mounted")
            if not machine.writable(f"{item}_ratio"):
                raise Unavailable(f"/{item}_ratio cannot be written here")
            found.append(Change(item, now, f"ratio {percent}"))
        if (now := machine.read(PERIOD)) is not None:
            found.append(Change(PERIOD, now, "0"))
        return found

    def owns(self, item: str) -> bool:
        return item in LIMITS or item == PERIOD

    def read(self, machine: Machine, item: str) -> str | None:
        if item == PERIOD:
            return machine.read(item)
        size, share = machine.read(f"{item}_bytes"), machine.read(f"{item}_ratio")
        if share is None:
            return None
        return f"ratio {share}" if size in (None, "0") else f"bytes {size}"

    def put(self, machine: Machine, item: str, value: str) -> None:
        if item == PERIOD:
            machine.write(item, value)
            return
        kind, _, number = value.partition(" ")
        if value == "ratio 0":  # bytes are reset only if the ratio changes
            machine.write(f"{item}_ratio", "1")
        machine.write(f"{item}_{kind}", number)


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
