"""CPUs: their clock rate, and how some are kept free of interrupts, and of all threads but those of the user."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress

from etude.machine import tree
from etude.machine.quiet import services
from etude.machine.quiet.operation import (
    Change,
    Machine,
    Operation,
    Request,
    Unavailable,
    must_be_writable,
    parent,
    processes,
    start,
    stat,
)

ONLINE = "sys/devices/system/cpu/online"
DEFAULT, WORKQUEUES = "proc/irq/default_smp_affinity", "sys/devices/virtual/workqueue/cpumask"
NO_SETAFFINITY = 0x04000000
"""PF_NO_SETAFFINITY among a thread's flags: kernel threads bound to their CPU."""
SINCE, SHIELDED = "since", "shielded"
MAX_ANCESTORS = 100


def other_cpus(machine: Machine, asked: Request) -> set[int]:
    """The CPUs that remain for everything else.

    Raises:
        Unavailable: none is named, one does not exist, or none is left.
    """
    online = set(tree.read_cpus(machine.root, ONLINE) or ())
    if not asked.cpus:
        raise Unavailable("name the CPUs that are to be kept free: cpus=LIST")
    if missing := asked.cpus - online:
        raise Unavailable(f"there is no CPU {min(missing)}: online are {tree.cpu_ranges(online)}")
    if not online - asked.cpus:
        raise Unavailable("no CPU would be left for the rest of the machine")
    return online - asked.cpus


def mask(cpus: Iterable[int], like: str) -> str:
    """A mask in the kernel's format: hexadecimal, in groups of 32 CPUs, of the same length as `like`."""
    digits = f"{sum(1 << cpu for cpu in cpus):0{len(like.replace(',', ''))}x}"
    groups = [digits[max(end - 8, 0) : end] for end in range(len(digits), 0, -8)]
    return ",".join(reversed(groups))


def of_mask(text: str) -> set[int]:
    """The CPUs of a mask; empty if it is invalid."""
    with suppress(ValueError):
        bits = int(text.replace(",", ""), 16)
        return {cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1}
    return set()


class Interrupts(Operation):
    """Moves interrupts. Some belong to a CPU, and their kernel driver refuses: these stay, without a message."""

    name = "irqs"
    meaning = "Devices interrupt the other CPUs; irqbalance, which would move them back, stops."
    needs_cpus = True

    def changes(self, machine: Machine, asked: Request) -> list[Change]:
        left = other_cpus(machine, asked)
        default = machine.read(DEFAULT)
        if default is None:
            raise Unavailable("the kernel has no /proc/irq")
        if machine.systemd:
            found = services.stop_units(machine, {"irqbalance.service"}, services.units(machine))
        else:
            found = services.freeze(machine, {"irqbalance"})
        found += must_move(
            [Change(DEFAULT, default, mask(of_mask(default) & left or left, default))], machine
        )
        for number in sorted(filter(str.isdecimal, machine.names("proc/irq")), key=int):
            path = f"proc/irq/{number}/smp_affinity_list"
            now = machine.read(path)
            if now:
                put = tree.cpu_ranges(set(tree.to_cpus(now)) & left or left)
                found.append(Change(path, now, put, optional=True))
        return found

    def owns(self, item: str) -> bool:
        return (
            item == DEFAULT
            or bool(re.fullmatch(r"proc/irq/\d+/smp_affinity_list", item))
            or services.owns_daemon(item)
        )

    def read(self, machine: Machine, item: str) -> str | None:
        return services.read_daemon(machine, item) if services.owns_daemon(item) else machine.read(item)

    def put(self, machine: Machine, item: str, value: str) -> None:
        if services.owns_daemon(item):
            services.put_daemon(machine, item, value)
        else:
            machine.write(item, value)


def must_move(changes: list[Change], machine: Machine) -> list[Change]:
    """The same changes.

    Raises:
        Unavailable: a file cannot be written.
    """
    for each in changes:
        if not machine.writable(each.item):
            raise Unavailable(f"/{each.item} cannot be written here")
    return changes


class Shield(Operation):
    """Sets the affinity of each thread, without cpusets: commands can still be pinned to the free CPUs by taskset.

    Threads created meanwhile inherit their parent's affinity; on restoring they get the parent's former one.
    """

    name = "shield"
    meaning = "All other threads run on the other CPUs; yours can be pinned to the free ones (taskset)."
    needs_cpus = True
    passes = 3

    def changes(self, machine: Machine, asked: Request) -> list[Change]:
        left, found = other_cpus(machine, asked), [Change(SINCE, self._now(machine), SHIELDED)]
        if (queues := machine.read(WORKQUEUES)) is not None:
            put = mask(of_mask(queues) & left or left, queues)
            found.append(Change(WORKQUEUES, queues, put, optional=True))
        for process, thread in self._threads(machine, self._mine(machine)):
            with suppress(OSError):
                now = machine.affinity(thread)
                if now & left and now - left:
                    item = f"thread:{process}:{thread}:{start(machine, process, thread)}"
                    found.append(
                        Change(item, tree.cpu_ranges(now), tree.cpu_ranges(now & left), optional=True)
                    )
        return found if any(each.was != each.put for each in found[1:]) else []

    def owns(self, item: str) -> bool:
        return item in (SINCE, WORKQUEUES) or bool(re.fullmatch(r"thread:\d+:\d+:\d*", item))

    def read(self, machine: Machine, item: str) -> str | None:
        if item == SINCE:
            return SHIELDED
        if item == WORKQUEUES:
            return machine.read(item)
        _, process, thread, started = item.split(":")
        if start(machine, int(process), int(thread)) != started:
            return None
        with suppress(ProcessLookupError):
            return tree.cpu_ranges(machine.affinity(int(thread)))
        return None

    def put(self, machine: Machine, item: str, value: str) -> None:
        if item == WORKQUEUES:
            machine.write(item, value)
        elif item != SINCE:
            _, process, thread, started = item.split(":")
            if start(machine, int(process), int(thread)) == started:
                with suppress(ProcessLookupError):
                    machine.set_affinity(int(thread), set(tree.to_cpus(value)))

    def restore(self, machine: Machine, change: Change) -> None:
        if change.item != SINCE:
            super().restore(machine, change)

    def after_restore(self, machine: Machine, changes: Sequence[Change]) -> None:
        """Restore threads created meanwhile, whose parent had been moved."""
        since = min((int(each.was) for each in changes if each.item == SINCE), default=0)
        moved = {each.item.split(":")[2]: each for each in changes if each.item.startswith("thread:")}
        usual = {each.put: each.was for each in moved.values()}
        for process, thread in self._threads(machine, set()):
            started = start(machine, process, thread)
            if str(thread) in moved or not started or int(started) < since:
                continue
            with suppress(OSError):
                now = tree.cpu_ranges(machine.affinity(thread))
                above = moved.get(str(process)) or moved.get(str(parent(machine, process)))
                was = above.was if above is not None and above.put == now else usual.get(now)
                if was is not None:
                    machine.set_affinity(thread, set(tree.to_cpus(was)))

    def in_force(self, machine: Machine, changes: Sequence[Change]) -> dict[str, list[str]]:
        """Threads by their number only: there are hundreds."""
        found = super().in_force(machine, [each for each in changes if each.item == WORKQUEUES])
        for each in changes:
            if each.item.startswith("thread:") and self.read(machine, each.item) == each.put:
                kind = f"threads on {each.was}, now on {each.put}"
                count = int(found.get(kind, ["", "0"])[1]) + 1
                found[kind] = ["0", str(count)]
        return found

    def _threads(self, machine: Machine, spared: set[int]) -> Iterable[tuple[int, int]]:
        """All threads that may be moved, each with its process."""
        for process in processes(machine):
            if process in spared:
                continue
            for name in machine.names(f"proc/{process}/task"):
                seen = stat(machine, process, int(name))
                if seen is not None and not seen.flags & NO_SETAFFINITY:
                    yield process, int(name)

    def _mine(self, machine: Machine) -> set[int]:
        """Ancestors and descendants of this process: the measured command is among them."""
        found, own = machine.own(), os.getpid()
        for process in processes(machine):
            above, seen = process, 0
            while above > 1 and above != own and seen < MAX_ANCESTORS:
                above, seen = parent(machine, above), seen + 1
            if above == own:
                found.add(process)
        return found

    def _now(self, machine: Machine) -> str:
        """Ticks since boot, as in a thread's stat."""
        uptime = (machine.read("proc/uptime") or "0").split()[0]
        return str(int(float(uptime) * os.sysconf("SC_CLK_TCK")))


CPUS = "sys/devices/system/cpu"
POLICIES = f"{CPUS}/cpufreq"
PREFERENCE, SPEED, GOVERNOR = "energy_performance_preference", "scaling_setspeed", "scaling_governor"
REMEMBERED = ""
"""Quiet value of settings that vanish with the former governor: they are restored after it."""


def policies(machine: Machine) -> list[str]:
    return [f"{POLICIES}/{name}" for name in machine.names(POLICIES) if re.fullmatch(r"policy\d+", name)]


class Governor(Operation):
    """A governor's own settings are lost with it, and so are recorded: its speed, tunables and preference."""

    name = "governor"
    meaning = (
        "The clock rate does not follow the load, so that a run's speed does not depend on what ran before."
    )
    choices = ("performance", "powersave", "schedutil", "ondemand", "conservative")

    def changes(self, machine: Machine, asked: Request) -> list[Change]:
        wanted, found = asked.value(self) or "performance", []
        if not policies(machine):
            raise Unavailable("no CPU frequency is visible: on a virtual machine only its host can fix it")
        for policy in policies(machine):
            now = machine.read(f"{policy}/{GOVERNOR}")
            offered = (machine.read(f"{policy}/scaling_available_governors") or wanted).split()
            if now is None:
                continue
            if wanted not in offered:
                raise Unavailable(f"/{policy} offers no governor {wanted}, only {' '.join(offered)}")
            if now != wanted:
                found += self._lost(machine, policy, now)
            preference = machine.read(f"{policy}/{PREFERENCE}")
            if preference is not None and wanted == "performance":
                # drivers set it with the governor, and not all restore it: while the former governor still runs
                put = preference if now == wanted else "performance"
                found.append(Change(f"{policy}/{PREFERENCE}", preference, put, optional=True))
            found.append(Change(f"{policy}/{GOVERNOR}", now, wanted))
        return must_be_writable(machine, found)

    def _lost(self, machine: Machine, policy: str, governor: str) -> list[Change]:
        tunables = [
            f"{place}/{name}"
            for place in (f"{policy}/{governor}", f"{POLICIES}/{governor}")
            for name in machine.names(place)
        ]
        speed = [f"{policy}/{SPEED}"] if governor == "userspace" else []
        values = [(path, machine.read(path)) for path in [*tunables, *speed] if machine.writable(path)]
        return [Change(path, value, REMEMBERED, optional=True) for path, value in values if value is not None]

    def owns(self, item: str) -> bool:
        policy = rf"{POLICIES}/policy\d+"
        return bool(
            re.fullmatch(rf"{policy}/({GOVERNOR}|{PREFERENCE}|{SPEED})", item)
            or re.fullmatch(rf"({policy}|{POLICIES})/[a-z_]+/[a-z_]+", item)
        )

    def put(self, machine: Machine, item: str, value: str) -> None:
        if value != REMEMBERED:
            machine.write(item, value)


class Turbo(Operation):
    """One switch for all CPUs; if each policy has its own, the switch for all changes them too."""

    name = "turbo"
    meaning = "Rates above the nominal one depend on temperature and on how many cores are busy."

    def changes(self, machine: Machine, asked: Request) -> list[Change]:
        found = [(f"{policy}/boost", "0") for policy in policies(machine)]
        found += [(f"{POLICIES}/boost", "0"), (f"{CPUS}/intel_pstate/no_turbo", "1")]
        values = [(path, machine.read(path), put) for path, put in found]
        there = [Change(path, now, put) for path, now, put in values if now is not None]
        if not there:
            raise Unavailable("no switch is visible: look for it in the firmware's settings")
        return must_be_writable(machine, there)

    def owns(self, item: str) -> bool:
        return item == f"{CPUS}/intel_pstate/no_turbo" or bool(
            re.fullmatch(rf"{POLICIES}/(policy\d+/)?boost", item)
        )
