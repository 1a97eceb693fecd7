"""Resources from tables of TOML: `resource = "quota"` and the options of that kind."""

from __future__ import annotations

import difflib
import os
import re
import shlex
import stat
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from etude.errors import InputError, MachineRefuses
from etude.machine import tree
from etude.machine.resources import levels
from etude.machine.resources.cgroups import CgroupResource, Controller, Place, Writes
from etude.machine.resources.ledger import Ledger
from etude.machine.resources.network import SHAPES, Network
from etude.machine.resources.resource import Resource, Setting
from etude.machine.resources.volume import FILE_SYSTEMS, PROFILES, TRIED_BYTES, Volume
from etude.osutil.commands import tool

LIMITS: dict[str, dict[str, str]] = {
    "bps": {"rbps": "read_bps_device", "wbps": "write_bps_device"},
    "iops": {"riops": "read_iops_device", "wiops": "write_iops_device"},
    "read_bps": {"rbps": "read_bps_device"},
    "write_bps": {"wbps": "write_bps_device"},
    "read_iops": {"riops": "read_iops_device"},
    "write_iops": {"wiops": "write_iops_device"},
}
"""Kinds of limits, with their names in v2 and v1."""

BUFFERED = "cgroup v1 limits writes only where they are direct or synchronous, not those the page cache takes"


@dataclass(frozen=True)
class Io(CgroupResource):
    """A limit on each of the disks."""

    name: ClassVar[str] = "io"
    controller: ClassVar[Controller] = "io"

    device: str = ""
    """Devices or directories on them, separated by blanks; `{devices}` are those of a volume."""
    limit: str = "bps"

    def parse_level(self, level: str) -> int:
        """Bytes or operations per second."""
        return levels.bytes_per_s(level) if self.limit.endswith("bps") else levels.count(level)

    def check(self) -> str | None:
        """Reason why the controller or a named disk is unavailable; None if all are available."""
        try:
            for each in self.device.split() if "{" not in self.device else ():
                number_of(each, self.root)
        except MachineRefuses as error:
            return str(error)
        return super().check()

    def writes(self, level: str, place: Place, so_far: Setting) -> Writes:
        """A line for each disk, and in v1 for each of reads and writes."""
        value = self.parse_level(level)
        try:
            devices = self.device.format_map(so_far.values).split()
        except KeyError as error:
            raise InputError(
                f"device {self.device!r}: no resource before gives {{{error.args[0]}}}"
            ) from None
        numbers = dict.fromkeys(number_of(each, self.root) for each in devices)
        names = LIMITS[self.limit]
        if place.version == 2:
            text = " ".join(f"{name}={value}" for name in names)
            return [("io.max", f"{number} {text}") for number in numbers]
        return [
            (f"blkio.throttle.{name}", f"{number} {value}") for number in numbers for name in names.values()
        ]

    def notes(self, place: Place) -> tuple[str, ...]:
        """Note on buffered writes under version 1."""
        return (BUFFERED,) if place.version == 1 and not self.limit.startswith("read") else ()


def number_of(path: str, root: Path = Path("/")) -> str:
    """`8:0` of the disk: for a partition, or a directory on one, of the whole disk, since limits apply to it."""
    try:
        status = os.stat(path)
    except OSError as error:
        raise MachineRefuses(f"{path}: {error.strerror}; expected a disk, or a directory on one") from None
    device = status.st_rdev if stat.S_ISBLK(status.st_mode) else status.st_dev
    if os.major(device) == 0:
        raise MachineRefuses(f"{path} is on no single disk, as btrfs or tmpfs: name the disks")
    return whole(f"{os.major(device)}:{os.minor(device)}", root)


def whole(number: str, root: Path) -> str:
    """The number of a partition's disk."""
    block = root / "sys/dev/block" / number
    if (block / "partition").exists():
        return tree.read_text(block.resolve().parent, "dev") or number
    return number


PERIOD_US = 100_000
"""The kernel's default."""


@dataclass(frozen=True)
class Quota(CgroupResource):
    """Share of all CPUs together: with 1.5, three threads may run at once, and stop when the period's share is used
    up."""

    name: ClassVar[str] = "quota"
    controller: ClassVar[Controller] = "cpu"

    def parse_level(self, level: str) -> float:
        """Number of CPUs."""
        return levels.share_of_cpus(level)

    def writes(self, level: str, place: Place, so_far: Setting) -> Writes:
        """µs of CPU time in a period."""
        quota_us = round(self.parse_level(level) * PERIOD_US)
        if place.version == 2:
            return [("cpu.max", f"{quota_us} {PERIOD_US}")]
        return [("cpu.cfs_period_us", str(PERIOD_US)), ("cpu.cfs_quota_us", str(quota_us))]


_SWAP = ("memory.memsw.limit_in_bytes", "memory.swap.max")
"""Files that a kernel without swap accounting lacks."""


@dataclass(frozen=True)
class Memory(CgroupResource):
    """Limit without additional swap: above it the kernel reclaims page cache, then kills."""

    name: ClassVar[str] = "memory"
    controller: ClassVar[Controller] = "memory"

    def parse_level(self, level: str) -> int:
        """Bytes."""
        return levels.size(level)

    def writes(self, level: str, place: Place, so_far: Setting) -> Writes:
        """v1 limits memory and the sum of memory and swap, which may not be less: memory first. v2 limits each by
        itself."""
        limit = str(self.parse_level(level))
        if place.version == 2:
            return [("memory.max", limit), ("memory.swap.max", "0")]
        return [("memory.limit_in_bytes", limit), ("memory.memsw.limit_in_bytes", limit)]

    def has_file(self, group: Path, name: str) -> bool:
        """False for swap files that the kernel lacks."""
        return name not in _SWAP or (group / name).exists()


PATIENCE_S = 600.0
_NAME = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True)
class Hook:
    """Shell commands; `{level}`, `{volume}` and the like are replaced by one word each."""

    name: ClassVar[str] = "hook"
    is_cgroup: ClassVar[bool] = False

    command: str
    undo: str = ""
    """Run also if `command` failed, and perhaps twice: it must be harmless then."""
    test: str = ""
    """Fails if the resource is unavailable."""
    words: str = ""
    """Words before commands, such as `ssh guest`."""
    directory: Path = Path()
    """Working directory of the commands."""

    def accept(self, level: str) -> None:
        """Raises InputError for a level that no hook can have."""
        if "\0" in level:
            raise InputError(f"level {level!r}: expected no NUL in it")

    def check(self) -> str | None:
        """Failure of the test, or None."""
        try:
            if self.test:
                self._run(self.test)
        except MachineRefuses as error:
            return str(error)
        return None

    def apply(self, level: str, so_far: Setting, ledger: Ledger) -> Setting:
        """Run the command, with its undo command in the ledger first."""
        values = {**so_far.values, "level": level}
        if self.undo:
            ledger.record_undo(
                "run", command=with_values(self.undo, values), directory=str(self.directory.absolute())
            )
        self._run(with_values(self.command, values))
        return Setting(words=tuple(shlex.split(with_values(self.words, values))))

    def _run(self, command: str) -> None:
        tool("sh", "-c", command, directory=str(self.directory.absolute()), patience_s=PATIENCE_S)


def with_values(command: str, values: dict[str, str]) -> str:
    """The command with each known `{name}` replaced by one shell word; other braces stay, since the shell uses them."""
    return _NAME.sub(lambda match: shlex.quote(values[match[1]]) if match[1] in values else match[0], command)


@dataclass(frozen=True)
class Cpus(CgroupResource):
    """A number selects the first allowed CPUs; to choose cores rather than threads, give a list."""

    name: ClassVar[str] = "cpus"
    controller: ClassVar[Controller] = "cpuset"

    def parse_level(self, level: str) -> list[int]:
        """CPUs, without a bound on their number."""
        return levels.cpus(level)

    def writes(self, level: str, place: Place, so_far: Setting) -> Writes:
        """One file; memory nodes are those of the parent."""
        return [("cpuset.cpus", tree.cpu_ranges(levels.cpus(level, allowed_resources(place.base))))]


def allowed_resources(group: Path) -> list[int]:
    """The CPUs of a group: v2 has them in `effective`, which a group without the controller lacks."""
    for folder in (group, *group.parents):
        for name in ("cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"):
            if found := tree.read_cpus(folder, name):
                return found
        if not (folder / "cgroup.procs").exists():
            break
    raise MachineRefuses(f"{group}: no list of CPUs in it or above")


def resource_of(
    table: Mapping[str, Any], where: str, base: Path = Path(), others: Collection[str] = ()
) -> Resource:
    """The resource of one table. `where`: prefix of errors, such as `surface.toml: [factor.cpu]`; relative paths are
    below `base`; keys in `others` are ignored.

    Raises:
        InputError: one line, with what was expected.
    """
    options = _Options({key: value for key, value in table.items() if key not in others}, where, base)
    kind = options.one_of("resource", tuple(KINDS), None)
    reader, known = KINDS[kind]
    options.only(("resource", *known), kind)
    return reader(options)


def check_levels(resource: Resource, values: Collection[str], where: str) -> None:
    """Raises InputError, with the place, for the first invalid level."""
    for value in values:
        try:
            resource.accept(value)
        except InputError as error:
            raise InputError(f"{where}: {error}") from None


@dataclass(frozen=True)
class _Options:
    """Typed access to the table."""

    values: Mapping[str, Any]
    where: str
    base: Path

    def fail(self, what: str) -> NoReturn:
        raise InputError(f"{self.where}: {what}")

    def only(self, known: Collection[str], kind: str) -> None:
        for key in self.values:
            if key not in known:
                alike = difflib.get_close_matches(key, known, 1)
                hint = f"{alike[0]}?" if alike else f"{kind} has {', '.join(known)}"
                self.fail(f"{key} is not known: {hint}")

    def text(self, key: str, default: str | None = None) -> str:
        value = self.values.get(key, default)
        if value is None:
            self.fail(f"{key} is missing: expected a text")
        if not isinstance(value, str) or (not value and default is None) or "\0" in value:
            self.fail(f"{key} is {value!r}: expected a text in quotes")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
            self.fail(f"{key} is {value!r}: expected a list of texts")
        if len(set(value)) < len(value):
            self.fail(f"{key} names one thing twice: {value!r}")
        return tuple(value)

    def one_of(self, key: str, known: Collection[str], default: str | None) -> str:
        value = self.values.get(key, default)
        if not isinstance(value, str) or value not in known:
            said = "is missing" if value is None else f"is {value!r}"
            self.fail(f"{key} {said}: expected {', '.join(known)}")
        return value

    def flag(self, key: str) -> bool:
        value = self.values.get(key, False)
        if not isinstance(value, bool):
            self.fail(f"{key} is {value!r}: expected true or false")
        return value

    def path(self, key: str) -> Path | None:
        return self.base / self.text(key) if key in self.values else None

    def size(self, key: str, least: int, default: int | None) -> int | None:
        """Bytes of a text such as "1G"."""
        if key not in self.values:
            return default
        try:
            found = levels.size(self.text(key))
        except InputError as error:
            self.fail(f"{key}: {error}")
        if found < least:
            self.fail(f"{key} is {found} B: expected at least {least >> 20} MiB")
        return found


def _io(options: _Options) -> Resource:
    return Io(device=options.text("device"), limit=options.one_of("limit", tuple(LIMITS), "bps"))


def _volume(options: _Options) -> Resource:
    devices, files = options.texts("devices"), options.texts("files")
    if given := [key for key in ("devices", "files", "directory") if key in options.values][1:]:
        options.fail(f"{given[0]} beside another place for disks: expected one of devices, files, directory")
    if (devices or files) and not options.flag("erase"):
        options.fail("erase is missing: devices and files are erased for each level; expected erase = true")
    join = options.one_of("join", ("btrfs", "md"), "btrfs")
    for key, of in (("profile", "btrfs"), ("filesystem", "md")):
        if key in options.values and join != of:
            options.fail(f'{key} goes with join = "{of}"')
    return Volume(
        join=join,
        profile=options.one_of("profile", PROFILES, "raid0"),
        filesystem=options.one_of("filesystem", FILE_SYSTEMS, "ext4"),
        devices=devices,
        files=tuple(str(options.base / file) for file in files),
        directory=options.path("directory"),
        size_bytes=options.size("size", TRIED_BYTES, None) or 1 << 30,
        mount=options.path("mount"),
    )


def _network(options: _Options) -> Resource:
    shape = options.one_of("shape", SHAPES, "tbf")
    for key in ("burst", "latency"):
        if key in options.values and shape != "tbf":
            options.fail(f'{key} goes with shape = "tbf"')
    latency = options.text("latency", "50ms")
    try:
        levels.tc_time(latency)
    except InputError as error:
        options.fail(f"latency: {error}")
    namespace = options.text("namespace", "")
    return Network(
        interface=options.text("interface"),
        shape=shape,
        # directory of ip netns; a path such as /proc/4711/ns/net is used as it is
        namespace=namespace if "/" in namespace or not namespace else f"/run/netns/{namespace}",
        burst_bytes=options.size("burst", 1, None),
        latency=latency,
    )


def _hook(options: _Options) -> Resource:
    return Hook(
        command=options.text("apply"),
        undo=options.text("undo", ""),
        test=options.text("check", ""),
        words=_shell_words(options, "prefix"),
        directory=options.base,
    )


def _shell_words(options: _Options, key: str) -> str:
    text = options.text(key, "")
    try:
        shlex.split(text)
    except ValueError as error:
        options.fail(f"{key} is {text!r}: {error}")
    return text


KINDS: dict[str, tuple[Callable[[_Options], Resource], tuple[str, ...]]] = {
    "cpus": (lambda _: Cpus(), ()),
    "quota": (lambda _: Quota(), ()),
    "memory": (lambda _: Memory(), ()),
    "io": (_io, ("device", "limit")),
    "volume": (
        _volume,
        ("join", "profile", "filesystem", "devices", "files", "directory", "size", "mount", "erase"),
    ),
    "network": (_network, ("interface", "namespace", "shape", "burst", "latency")),
    "hook": (_hook, ("apply", "undo", "check", "prefix")),
}
"""Constructor and options of each kind."""
