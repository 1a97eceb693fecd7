"""Stops services: units by systemctl; without systemd, processes are frozen.

A frozen process (SIGSTOP) does nothing, and continues unchanged. So it can be undone whatever has started it: an init
script, a supervisor, a person.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Collection

from etude.errors import MachineRefuses
from etude.machine.quiet.machine import Machine, comm, processes, start, stat
from etude.machine.quiet.operation import Change
from etude.osutil.commands import wait_until

FREEZE_S = 5.0
UP = ("active", "activating", "reloading")


def owns(item: str) -> bool:
    return bool(re.fullmatch(r"unit:[\w@.:\\-]+|process:[^:/]+:\d+:\d+", item))


def units(machine: Machine) -> set[str]:
    """Names of the active units, of the kinds that are stopped."""
    said = machine.tool(
        *(
            "systemctl",
            "list-units",
            "--type=service,socket,timer,path",
            "--plain",
            "--no-legend",
            "--no-pager",
        ),
        f"--state={','.join(UP)}",
    )
    return {line.split()[0] for line in said.splitlines() if line.strip()}


def stop_units(machine: Machine, chosen: Collection[str], up: Collection[str]) -> list[Change]:
    """Changes for these units and the units that would start them again: after them, since a socket cannot be opened
    while its service is up."""
    services = sorted(set(chosen) & set(up))
    if not services:
        return []
    said = machine.tool("systemctl", "show", "--property=TriggeredBy", *services)
    triggers = {
        word for line in said.splitlines() if line.startswith("TriggeredBy=") for word in line[12:].split()
    }
    order = [*services, *sorted((triggers & set(up)) - set(services))]
    order.sort(key=lambda name: not name.endswith(".service"))
    return [Change(f"unit:{name}", "active", "inactive") for name in order]


def freeze(machine: Machine, names: Collection[str]) -> list[Change]:
    """Changes for the processes of these names, except ancestors of this one and those that are already frozen."""
    found, spared = [], machine.own()
    for process in processes(machine):
        name, seen = comm(machine, process), stat(machine, process)
        if name in names and process not in spared and seen is not None and seen.state not in "TtZX":
            found.append(Change(f"process:{name}:{process}:{seen.began}", "runs", "frozen", optional=True))
    return found


def read(machine: Machine, item: str) -> str | None:
    kind, _, name = item.partition(":")
    if kind == "unit":
        state = machine.tool("systemctl", "show", "--property=ActiveState", "--value", name).strip()
        return "active" if state in UP else "inactive" if state in ("inactive", "failed") else state
    _, number, started = name.split(":")
    if start(machine, int(number)) != started:
        return None
    seen = stat(machine, int(number))
    return "frozen" if seen is not None and seen.state == "T" else "runs"


def put(machine: Machine, item: str, value: str) -> None:
    kind, _, name = item.partition(":")
    if kind == "unit":
        machine.tool("systemctl", "start" if value == "active" else "stop", name)
        return
    _, number, started = name.split(":")
    if start(machine, int(number)) != started:
        return
    machine.signal(int(number), signal.SIGSTOP if value == "frozen" else signal.SIGCONT)
    if not wait_until(FREEZE_S, lambda: read(machine, item) in (value, None)):
        raise MachineRefuses(f"process {number} does not stop, or does not continue: it waits for a device")
