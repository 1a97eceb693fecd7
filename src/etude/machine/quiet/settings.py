"""Kernel settings of one file each, and their quiet values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from etude.machine.quiet.machine import Machine
from etude.machine.quiet.operation import Change, Operation, Request, Unavailable, must_be_writable

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
