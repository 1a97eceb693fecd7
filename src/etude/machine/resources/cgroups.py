"""Places for cgroups: hierarchies of version 1, the one of version 2, and machines that have both.

A group is made below the one that this process is in, so that its own limits still apply. Version 2 gives
controllers only to children of groups without processes ("no internal processes", cgroup-v2.rst of the kernel): there
it is the nearest such group above, on a machine with systemd the user's slice.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import ClassVar, Literal

from etude.errors import MachineRefuses
from etude.machine.resources.ledger import Ledger
from etude.machine.resources.levels import UNLIMITED
from etude.machine.resources.resource import Setting
from etude.osutil.mounts import Mount, mounts

Controller = Literal["cpuset", "cpu", "memory", "io"]

_OF_V1 = {"io": "blkio"}
"""Controllers that have another name in version 1."""


@dataclass(frozen=True, slots=True)
class Place:
    """Place for a controller's group."""

    version: Literal[1, 2]
    base: Path
    """Directory of the parent group."""
    enable: tuple[Path, ...] = ()
    """Groups whose children must be given the controller, top down (version 2)."""


def cgroup_place(controller: Controller, root: Path = Path("/")) -> Place | str:
    """Place for a group of this controller, or the reason why there is none. Version 1 first: a controller that is
    bound to it is not in version 2."""
    mounted = mounts(root)
    own = _own_groups(root)
    name = _OF_V1.get(controller, controller)
    for mount in mounted:
        if mount.kind == "cgroup" and name in mount.options:
            base = _below(mount, own.get(name, "/"), root)
            return _read_only(mount) or Place(1, base)
    for mount in mounted:
        if mount.kind == "cgroup2":
            top = root / mount.target.lstrip("/")
            if controller in _words(top / "cgroup.controllers"):
                return _read_only(mount) or _in_v2(controller, top, _below(mount, own.get("", "/"), root))
    return f"the kernel offers no cgroup controller {name} here: no cgroup v1 mount has it, and v2 does not list it"


def _read_only(mount: Mount) -> str | None:
    if "ro" in mount.options:
        return (
            f"{mount.target} is mounted read-only, as in a container: run outside of it, or give it cgroups"
        )
    return None


def _in_v2(controller: str, top: Path, own: Path) -> Place | str:
    above = [own, *own.parents]
    chain = above[: above.index(top) + 1]
    for number, base in enumerate(chain):
        if _takes_children(base):
            down = reversed(chain[number:])
            lacking = [each for each in down if controller not in _words(each / "cgroup.subtree_control")]
            if all(_takes_children(each) for each in lacking):
                return Place(2, base, tuple(lacking))
    return (
        f"{top}: each cgroup above this process holds processes, and v2 gives their children no controllers: "
        "start it by systemd-run --scope"
    )


def _takes_children(group: Path) -> bool:
    """True if the group may have children with controllers. Only the machine's root, without cgroup.type, may have
    processes too."""
    if not (group / "cgroup.type").exists():
        return True
    return not _words(group / "cgroup.procs") and "threaded" not in " ".join(_words(group / "cgroup.type"))


def _own_groups(root: Path) -> dict[str, str]:
    """This process's group by controller; under "" that of version 2 (cgroups(7))."""
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    parts = [line.split(":", 2) for line in lines if line.count(":") >= 2]
    return {name: path for _, names, path in parts for name in names.split(",")}


def _below(mount: Mount, group: str, root: Path) -> Path:
    """The directory of a group in a mount, which may show only a part of the hierarchy."""
    top = root / mount.target.lstrip("/")
    path = PurePosixPath(group)
    if ".." in path.parts or not path.is_relative_to(mount.within):
        return top
    base = top / path.relative_to(mount.within)
    return base if base.is_dir() else top


def make_group(place: Place, controller: str, ledger: Ledger) -> Path:
    """The group of this ledger at a place, created on first use."""
    for group in place.enable:
        if controller not in _words(group / "cgroup.subtree_control"):
            ledger.record_undo("withdraw_controller", group=str(group), controller=controller)
            write_value(group / "cgroup.subtree_control", f"+{controller}")
    path = place.base / ledger.name
    if not path.exists():
        ledger.record_undo("remove_group", path=str(path))
        try:
            path.mkdir()
        except OSError as error:
            raise MachineRefuses(f"{path} cannot be made: {error.strerror}") from None
        if place.version == 1:
            _inherit(place.base, path)
    return path


def _inherit(above: Path, group: Path) -> None:
    """Copy CPUs and memory nodes to a new group of the v1 controller cpuset, which takes no process before."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        if (above / name).exists() and (words := _words(above / name)):
            write_value(group / name, words[0])


def write_value(file: Path, text: str) -> None:
    """Write into a file of the kernel, in one write."""
    try:
        file.write_text(text)
    except OSError as error:
        raise MachineRefuses(f"{file} does not take {text!r}: {error.strerror}") from None


def put_all(group: Path, writes: Iterable[tuple[str, str]]) -> None:
    """Write texts to the files of these names, in order."""
    for name, text in writes:
        write_value(group / name, text)


def _words(file: Path) -> list[str]:
    try:
        return file.read_text().split()
    except OSError:
        return []


Writes = list[tuple[str, str]]
"""Names of files in the group and their texts, in order."""


@dataclass(frozen=True, kw_only=True)
class CgroupResource(ABC):
    """A resource whose level is in files of a cgroup. Level `max` makes no group."""

    name: ClassVar[str]
    controller: ClassVar[Controller]
    is_cgroup: ClassVar[bool] = True

    root: Path = Path("/")
    """Root of /proc and the cgroup mounts."""

    def accept(self, level: str) -> None:
        """Raises InputError for an invalid level."""
        if level != UNLIMITED:
            self.parse_level(level)

    def check(self) -> str | None:
        """Reason why a group of the controller cannot be made; None if it can."""
        place = cgroup_place(self.controller, self.root)
        if isinstance(place, str):
            return place
        return None if os.access(place.base, os.W_OK) else f"{place.base}: only root may make cgroups in it"

    def apply(self, level: str, so_far: Setting, ledger: Ledger) -> Setting:
        """Set this limit in the group of the ledger."""
        if level == UNLIMITED:
            return Setting()
        place = cgroup_place(self.controller, self.root)
        if isinstance(place, str):
            raise MachineRefuses(place)
        writes = self.writes(level, place, so_far)
        group = make_group(place, self.controller, ledger)
        put_all(group, [(name, text) for name, text in writes if self.has_file(group, name)])
        return Setting((str(group),), notes=self.notes(place))

    @abstractmethod
    def parse_level(self, level: str) -> object:
        """The level as a value; raises InputError."""

    @abstractmethod
    def writes(self, level: str, place: Place, so_far: Setting) -> Writes:
        """Files of the group and their texts."""

    def has_file(self, group: Path, name: str) -> bool:
        """True if a file has to be written; files that a kernel may lack are checked."""
        return True

    def notes(self, place: Place) -> tuple[str, ...]:
        """Notes for readers of the results."""
        return ()


_FILES = ("memory.events", "memory.oom_control")
"""Files of version 2, and of version 1 from Linux 4.13 on; each has a line `oom_kill COUNT`."""


def oom_kills(groups: Iterable[str]) -> int:
    """Number of OOM kills since these groups were made; 0 without a memory controller, or if the kernel does not
    count."""
    return sum(_count(Path(group) / name) for group in groups for name in _FILES)


def _count(file: Path) -> int:
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return 0
    counts = [line.split()[1] for line in lines if line.startswith("oom_kill ")]
    return int(counts[0]) if counts else 0
