"""Services that run at their own times, logins, and ssh: units are stopped; without systemd, processes are frozen.

A frozen process (SIGSTOP) does nothing, and continues unchanged. So it can be undone whatever has started it: an init
script, a supervisor, a person.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Collection
from contextlib import suppress

from etude.errors import MachineRefuses
from etude.machine import tree
from etude.machine.quiet.operation import (
    Change,
    Machine,
    Operation,
    Request,
    Unavailable,
    comm,
    parent,
    processes,
    start,
    stat,
)
from etude.osutil.commands import wait_until

SCHEDULERS = ("cron", "crond", "cronie", "fcron", "anacron", "atd")
MAIL = ("exim4", "postfix", "sendmail", "opensmtpd", "master", "smtpd", "dovecot")
PRINTING = ("cups", "cupsd", "cups-browsed", "lpd", "lprng")
OTHER_SERVICES = (
    *("inetd", "xinetd", "openbsd-inetd", "avahi-daemon", "bluetooth", "bluetoothd", "ModemManager"),
    *("fwupd", "snapd", "smartd", "smartmontools", "sysstat", "boinc-client", "boinc", "udisks2"),
)
KNOWN = frozenset((*SCHEDULERS, *MAIL, *PRINTING, *OTHER_SERVICES))
"""Units of systemd, or names of processes."""


class Daemons(Operation):
    """Base of operations whose items are units and processes."""

    def owns(self, item: str) -> bool:
        return owns_daemon(item)

    def read(self, machine: Machine, item: str) -> str | None:
        return read_daemon(machine, item)

    def put(self, machine: Machine, item: str, value: str) -> None:
        put_daemon(machine, item, value)


class Services(Daemons):
    name = "services"
    meaning = "Cron, mail, printing, updates and their like work at their own times, not at yours."
    choices = ("UNIT,…",)
    passes = 2

    def changes(self, machine: Machine, asked: Request) -> list[Change]:
        named = [name for name in asked.value(self).split(",") if name]
        if not machine.systemd:
            return freeze(machine, named or KNOWN)
        up = units(machine)
        chosen = {name if "." in name else f"{name}.service" for name in named or KNOWN}
        timers = set() if named else {name for name in up if name.endswith(".timer")}
        return stop_units(machine, chosen | timers, up)


class Ssh(Daemons):
    name = "ssh"
    meaning = "No logins over ssh, and no password guessing. Refused while a user is logged in over ssh."
    usual = False

    def changes(self, machine: Machine, asked: Request) -> list[Change]:
        if session := self._session(machine):
            raise Unavailable(f"a user is logged in over it (process {session})")
        if not machine.systemd:
            return freeze(machine, {"sshd"})
        names = {"ssh.service", "sshd.service", "ssh.socket", "sshd.socket"}
        return stop_units(machine, names, units(machine))

    def _session(self, machine: Machine) -> int:
        """A process of an OpenSSH session: `sshd-session` since 9.8, before that a child of the listening sshd; else
        0."""
        for process in processes(machine):
            name = comm(machine, process)
            if name in ("sshd-session", "sshd-auth"):
                return process
            if name == "sshd" and comm(machine, parent(machine, process)) == "sshd":
                return process
        return 0


NOTICE = "Benchmarks run on this machine: logins are refused until they are done (etude quiet off)."
ABSENT = "absent"
PLACES = ("run/nologin", "etc/nologin")


class Logins(Operation):
    """The file is in /run where that is cleared by a restart: nobody is locked out for longer."""

    name = "logins"
    meaning = "Only root can log in: pam_nologin refuses others, and shows why."
    usual = False

    def changes(self, machine: Machine, asked: Request) -> list[Change]:
        for place in PLACES:
            if (now := self.read(machine, place)) not in (ABSENT, None):
                return [Change(place, str(now), str(now))]
        mounts = (line.split() for line in tree.read_lines(machine.root, "proc/self/mounts"))
        in_memory = any(fields[1:3] == ["/run", "tmpfs"] for fields in mounts)
        place = PLACES[0] if in_memory else PLACES[1]
        if not machine.writable(os.path.dirname(place)):
            raise Unavailable(f"/{place} cannot be written here")
        return [Change(place, ABSENT, NOTICE)]

    def owns(self, item: str) -> bool:
        return item in PLACES

    def survives_boot(self, item: str) -> bool:
        return item == PLACES[1]

    def read(self, machine: Machine, item: str) -> str | None:
        text = machine.read(item)
        return ABSENT if text is None else text

    def put(self, machine: Machine, item: str, value: str) -> None:
        """Write the file atomically, and never replace another's."""
        file, new = machine.root / item, machine.root / f"{item}.etude"
        if value == ABSENT:
            file.unlink(missing_ok=True)
            return
        new.write_text(f"{value}\n", encoding="utf-8")
        new.chmod(0o644)
        try:
            os.link(new, file)
        finally:
            new.unlink()

    def restore(self, machine: Machine, change: Change) -> None:
        with suppress(FileNotFoundError):
            (machine.root / f"{change.item}.etude").unlink()
        if self.read(machine, change.item) == change.put:  # another's refusal stays
            self.put(machine, change.item, ABSENT)


FREEZE_S = 5.0
UP = ("active", "activating", "reloading")


def owns_daemon(item: str) -> bool:
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


def read_daemon(machine: Machine, item: str) -> str | None:
    kind, _, name = item.partition(":")
    if kind == "unit":
        state = machine.tool("systemctl", "show", "--property=ActiveState", "--value", name).strip()
        return "active" if state in UP else "inactive" if state in ("inactive", "failed") else state
    _, number, started = name.split(":")
    if start(machine, int(number)) != started:
        return None
    seen = stat(machine, int(number))
    return "frozen" if seen is not None and seen.state == "T" else "runs"


def put_daemon(machine: Machine, item: str, value: str) -> None:
    kind, _, name = item.partition(":")
    if kind == "unit":
        machine.tool("systemctl", "start" if value == "active" else "stop", name)
        return
    _, number, started = name.split(":")
    if start(machine, int(number)) != started:
        return
    machine.signal(int(number), signal.SIGSTOP if value == "frozen" else signal.SIGCONT)
    if not wait_until(FREEZE_S, lambda: read_daemon(machine, item) in (value, None)):
        raise MachineRefuses(f"process {number} does not stop, or does not continue: it waits for a device")
