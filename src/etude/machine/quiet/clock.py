"""The CPU's clock rate: governor, and rates above the nominal one."""

from __future__ import annotations

import re

from etude.machine.quiet.machine import Machine
from etude.machine.quiet.operation import Change, Operation, Request, Unavailable, must_be_writable

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
