"""The ways of bringing caches into a state (Auto-pilot paper, section 3.5), each performed and then looked at."""

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
from etude.machine.cool.dataset import DataSet, Residency, look, not_as_declared, watching
from etude.osutil.mounts import Mount, mounts


def memory_bytes(root: Path = Path("/"), table: list[Mount] | None = None) -> int | None:
    """Bytes: the machine's memory, or the smallest limit of the control groups that this process is in (v1 and v2).

    None where the kernel does not tell.
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
    """The limits of a group and of those above it. In a container the group may lie outside of what is mounted."""
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
    """What was done about caches, and what of the data set was in memory before and after.

    `performed` is None where nothing was done, and `why` says why; `wrong` says where the caches are not as the
    way says. `seconds` is what it took, without looking.
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
    """That the data set may be cached in."""

    def members(self) -> dict[str, Any]:
        """The `cache` of a row (docs/formats.md)."""
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
    """Bring the caches into the state that a way names, then look at the data set if one is known.

    Of a way with a reboot only what follows it is done here: `booted` says that there was one. `warm` reads
    nothing: the run that is excluded does.

    Raises:
        MachineRefuses: it cannot be done; says what to do.
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
    wrong = None if after is None else not_as_declared(way, after)
    memory = None if after is None else memory_bytes()
    return Cooled(way, way, None, seconds, tuple(said), before, after, wrong, chilled, memory)


def _eyes(way: str, data: DataSet, watches: ExitStack) -> Callable[[], Residency]:
    """What looks afterwards: where memory is only used up, pages of files may stay whose names are forgotten. To
    watch looks all names up: not behind a restart, where none is in memory."""
    if way == "chill":
        return watches.enter_context(watching(data))
    return lambda: look(data)


def _before(way: str, data: DataSet | None) -> Residency | None:
    """Note what there is and look at it; not after a boot, where that would fill the caches again."""
    if data is None or way in REBOOTS or way == "none":
        return None
    data.list()
    return look(data)


def read_all(data: DataSet) -> Residency:
    """Bring a data set into memory by reading it.

    Raises:
        MachineRefuses: it cannot be listed.
    """
    data.list()
    for record in data.listing.read_bytes().split(b"\0")[:-1]:
        with open(record.split(b" ", 1)[1], "rb", buffering=0) as file:
            while file.read(1 << 20):
                pass
    return look(data)
