"""Methods of preparing caches (Auto-pilot paper, section 3.5), each followed by a check."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from etude.errors import MachineRefuses
from etude.machine import tree
from etude.machine.cool import steps
from etude.machine.cool.dataset import (
    DataSet,
    Residency,
    difference_from_declared,
    measure_residency,
    watched_residency,
)
from etude.osutil.mounts import Mount, mounts


def memory_bytes(root: Path = Path("/"), table: list[Mount] | None = None) -> int | None:
    """Bytes of memory: the machine's, or the smallest limit of the control groups of this process (v1 and v2).

    None if the kernel does not report it.
    """
    total = tree.read_sizes(root, "proc/meminfo").get("MemTotal")
    limits = _limits(root, mounts() if table is None else table)
    return total and min([total, *limits])


def _limits(root: Path, table: list[Mount]) -> list[int]:
    found = []
    for line in tree.read_lines(root, "proc/self/cgroup"):
        _, controllers, group = (*line.split(":", 2), "", "")[:3]
        kind = "cgroup2" if not controllers else "cgroup" if "memory" in controllers.split(",") else ""
        for mount in table:
            if mount.kind == kind and (
                kind == "cgroup2" or "memory" in mount.target.split("/")[-1].split(",")
            ):
                found += _of_group(root, mount, group, ("memory.max", "memory.high", "memory.limit_in_bytes"))
    return found


def _of_group(root: Path, mount: Mount, group: str, names: tuple[str, ...]) -> list[int]:
    """The limits of a group and of those above it. In a container the group may lie outside of the mount."""
    below = Path(group.removeprefix(mount.within.rstrip("/")).lstrip("/"))
    texts = [
        tree.read_text(root, f"{mount.target.lstrip('/')}/{place}/{name}")
        for place in (below, *below.parents)
        for name in names
    ]
    return [int(text) for text in texts if text and text.strip().isdigit() and int(text) > 0]


REBOOTS = frozenset({"reboot", "reboot+chill"})
REMOUNTS = frozenset({"remount", "remount+chill"})
CHILLS = frozenset({"chill", "remount+chill", "reboot+chill"})


@dataclass(frozen=True)
class Cooled:
    """A preparation of the caches, with the data set's residency before and after.

    `performed` is None if nothing was done, and `why` is the reason; `wrong` describes a difference from the declared
    state. `seconds` is the duration, without the checks.
    """

    declared: str
    performed: str | None
    why: str | None = None
    seconds: float = 0.0
    said: tuple[str, ...] = ()
    before: Residency | None = None
    after: Residency | None = None
    wrong: str | None = None
    chill: Mapping[str, Any] = field(default_factory=dict)
    memory_bytes: int | None = None
    """Memory that the data set may be cached in."""

    def members(self) -> dict[str, Any]:
        """The `cache` of a row (docs/reference/formats.md)."""
        found: dict[str, Any] = {"declared": self.declared, "performed": self.performed}
        if self.performed is not None:
            found["cooling_s"] = round(self.seconds, 6)
        for name, value in (("why", self.why), ("wrong", self.wrong)):
            if value is not None:
                found[name] = value
        if self.before is not None:
            found["resident_before_bytes"] = self.before.resident_bytes
        if self.after is not None:
            found |= self.after.members()
        if self.memory_bytes is not None:
            found["memory_bytes"] = self.memory_bytes
        if self.chill:
            found["chilled_bytes"] = self.chill["allocated_bytes"]
        return found


def cool(way: str, data: DataSet | None, *, booted: bool = False) -> Cooled:
    """Prepare the caches by the method `way`, then check the data set if one is known.

    A method with a reboot does only its later steps here: `booted` is True after the reboot. `warm` reads nothing: the
    warm-up run does.

    Raises:
        MachineRefuses: it cannot be done, with advice.
    """
    if way in REBOOTS and not booted:
        raise MachineRefuses(
            f"cache {way}: nothing here restarts the machine; a script with CACHE {way} does"
        )
    before = _before(way, data)
    known = data if data is not None and data.listed and way != "none" else None
    with ExitStack() as watches:
        see = None if known is None else _eyes(way, known, watches)
        began, said, chilled = time.monotonic(), list[str](), dict[str, Any]()
        if way == "drop":
            said.append(steps.drop())
        if way in REMOUNTS:
            said += steps.remount(data.paths if data is not None else ())
        if way in CHILLS:
            words, answer = steps.chill()
            said.append(words)
            chilled |= answer
        seconds = time.monotonic() - began
        after = None if see is None else see()
    wrong = None if after is None else difference_from_declared(way, after)
    memory = None if after is None else memory_bytes()
    return Cooled(way, way, None, seconds, tuple(said), before, after, wrong, chilled, memory)


def _eyes(way: str, data: DataSet, watches: ExitStack) -> Callable[[], Residency]:
    """Function for the check afterwards: with `chill`, pages may stay after their names were evicted, so a watch is
    needed. A watch looks up all names, so there is none after a restart, when no name is in memory."""
    if way == "chill":
        return watches.enter_context(watched_residency(data))
    return lambda: measure_residency(data)


def _before(way: str, data: DataSet | None) -> Residency | None:
    """List and check the data set; not after a boot, since that would fill the caches again."""
    if data is None or way in REBOOTS or way == "none":
        return None
    data.list()
    return measure_residency(data)


def read_all(data: DataSet) -> Residency:
    """Read a data set into memory.

    Raises:
        MachineRefuses: it cannot be listed.
    """
    data.list()
    for record in data.listing.read_bytes().split(b"\0")[:-1]:
        with open(record.split(b" ", 1)[1], "rb", buffering=0) as file:
            while file.read(1 << 20):
                pass
    return measure_residency(data)
