"""A data set, its residency in memory, measured without changing it (docs/howto/residency.md), and the storage below
it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from etude.errors import MachineRefuses
from etude.osutil.commands import run_to_end
from etude.osutil.mounts import Mount, deepest_mount, mounts
from etude.program import engine_path

COLD_SHARE, WARM_SHARE = 0.01, 0.90
"""Maximum share in memory of a cold data set, and minimum share of a warm one."""
LOOP_FILE_SLACK_BYTES = 1 << 20
"""Tolerated resident bytes of a loop device's file: journal and tables, which are written at any time."""


@dataclass(frozen=True)
class DataSet:
    """Files, and all files below directories; `listing` is the file that stores their names between two looks."""

    paths: tuple[str, ...]
    listing: Path

    def list(self) -> None:
        """Store the list of files. This looks up all names: do it before caches are cooled.

        Raises:
            MachineRefuses: a path does not exist.
        """
        listing([os.path.abspath(path) for path in self.paths], self.listing)

    @property
    def listed(self) -> bool:
        """True if the list of files is stored."""
        return self.listing.exists()


@dataclass(frozen=True)
class Residency:
    """Resident parts of a data set, bytes. None: unknown.

    `names_cached` of `files` were in the directory cache, and `inodes_cached` had their inodes in memory, with or
    without a name. Only a watch knows the latter: otherwise files without a cached name count as not in memory, which
    is true after all ways but chill. `backing_resident_bytes` are of loop devices' own files.
    """

    files: int
    bytes: int
    resident_bytes: int
    names_cached: int | None
    backing_resident_bytes: int = 0
    inodes_cached: int | None = None

    @property
    def share(self) -> float:
        """The share that is in memory, either way; 0 for an empty data set."""
        seen = self.resident_bytes + max(self.backing_resident_bytes - LOOP_FILE_SLACK_BYTES, 0)
        return seen / self.bytes if self.bytes else 0.0

    def members(self) -> dict[str, int | None]:
        """Members of a row's `cache`."""
        return {
            "files": self.files,
            "bytes": self.bytes,
            "resident_bytes": self.resident_bytes,
            "names_cached": self.names_cached,
            "inodes_cached": self.inodes_cached,
            "backing_resident_bytes": self.backing_resident_bytes,
        }


def measure_residency(data: DataSet) -> Residency:
    """The data set's present residency.

    Raises:
        MachineRefuses: it cannot be measured.
    """
    return _of_answer(engine_answer("residency", "look", *_words(data)))


@contextmanager
def watched_residency(data: DataSet) -> Iterator[Callable[[], Residency]]:
    """Watches the data set while it is cooled; where this kernel or user may not watch, it is only looked at
    afterwards."""
    watch = Watch(*_words(data))
    try:
        yield (lambda: _of_answer(watch.look())) if watch.works else (lambda: measure_residency(data))
    finally:
        watch.close()


def _words(data: DataSet) -> list[str]:
    backing = sorted({loop.backing for path in data.paths for loop in _loops(path) if not loop.direct})
    return [
        str(data.listing),
        *(word for path in backing if os.path.exists(path) for word in ("--also", path)),
    ]


def _of_answer(seen: Mapping[str, Any]) -> Residency:
    return Residency(
        seen["files"],
        seen["bytes"],
        seen["resident_bytes"],
        seen["names_cached"],
        sum(also["resident_bytes"] for also in seen["also"]),
        seen["inodes_cached"],
    )


def _loops(path: str) -> Sequence[Loop]:
    return loops(mount_of(path)) if os.path.exists(path) else ()


def difference_from_declared(way: str, seen: Residency) -> str | None:
    """Difference of the caches from the declared state, in words; None if they are as declared."""
    share = f"{seen.share:.1%} of the data set"
    if way == "warm":
        known = seen.resident_bytes / seen.bytes if seen.bytes else 1.0
        return (
            f"only {known:.0%} of the data set is in memory: it does not fit" if known < WARM_SHARE else None
        )
    if way == "none" or seen.share <= COLD_SHARE:
        return None
    if seen.backing_resident_bytes > seen.resident_bytes:
        return f"{share} is still in memory, in the page cache of the loop device's own file"
    return f"{share} is still in memory"


def engine_answer(*words: str) -> dict[str, Any]:
    """The JSON object that it answers with.

    Raises:
        MachineRefuses: it fails, with its reason.
    """
    found: dict[str, Any] = json.loads(_run(words))
    return found


def listing(paths: list[str], place: Path) -> None:
    """Write the list of the files below `paths`, in the format of `residency look`.

    Raises:
        MachineRefuses: a path is missing, or the list cannot be written.
    """
    try:
        with open(place, "wb") as out:
            _run(("residency", "list", *paths), out.fileno())
    except OSError as error:
        raise MachineRefuses(f"{place}: cannot be written: {error.strerror}") from None


class Watch:
    """`etude-engine residency watch`: started before caches are cooled, it also sees files whose names were evicted."""

    def __init__(self, *words: str) -> None:
        self._process = subprocess.Popen(
            (engine_path(), "residency", "watch", *words),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.works = bool(self._line())

    def look(self) -> dict[str, Any]:
        """Present residency; can be called once.

        Raises:
            MachineRefuses: it has ended.
        """
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(b"\n")
            self._process.stdin.flush()
            found: dict[str, Any] = json.loads(self._line())
            return found
        except (OSError, ValueError):
            raise MachineRefuses("etude-engine residency watch: ended without an answer") from None

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


def _run(words: tuple[str, ...], into: int | None = None) -> bytes:
    """Run the engine in a session of its own: Ctrl-C ends Étude, which ends its processes itself."""
    done = run_to_end((engine_path(), *words), into=into, apart=True)
    if done.status:
        raise MachineRefuses(done.why if done.errors else f"etude-engine {words[0]}: {done.why}")
    return done.output


@dataclass(frozen=True)
class Loop:
    """A loop device; the kernel may cache its file `backing` a second time unless `direct`."""

    device: str
    backing: str
    direct: bool
    cleared: bool
    """It is detached at the last close, such as that of an unmount."""


def mount_of(path: str, table: Sequence[Mount] | None = None) -> Mount:
    """The mount that a path lies on: the one with the longest directory; of several there, the last.

    Raises:
        MachineRefuses: nothing is mounted there.
    """
    real = os.path.realpath(path)
    best = deepest_mount(real, mounts() if table is None else table)
    if best is None:
        raise MachineRefuses(f"{path}: on no file system that /proc/self/mountinfo names")
    return best


def loops(mount: Mount, sys: Path = Path("/sys")) -> list[Loop]:
    """The loop devices below a mount, also below its partitions, volumes and arrays."""
    found = {}
    for name in _device_names(mount, sys):
        for block in _blocks(sys / "class/block" / name):
            if (loop := _loop(block)) is not None:
                found[loop.device] = loop
    return list(found.values())


def _device_names(mount: Mount, sys: Path) -> list[str]:
    """Names of the devices of a file system: btrfs may have several."""
    name = os.path.basename(os.path.realpath(mount.source))
    if mount.kind == "btrfs":
        for devices in sys.glob("fs/btrfs/*/devices"):
            names = [entry.name for entry in devices.iterdir()]
            if name in names:
                return sorted(names)
    return [name] if mount.source.startswith("/") else []


def _blocks(link: Path) -> Iterator[Path]:
    """Directories of a block device, of its disk, and of the devices below it."""
    if not link.exists():
        return
    block = link.resolve()
    yield block
    if (block / "partition").exists():
        yield block.parent
    for slave in sorted((block / "slaves").glob("*")):
        yield from _blocks(slave)


def _loop(block: Path) -> Loop | None:
    try:
        backing = (block / "loop/backing_file").read_text(errors="surrogateescape").rstrip("\n")
        direct, cleared = (
            (block / "loop" / name).read_text().strip() == "1" for name in ("dio", "autoclear")
        )
    except OSError:
        return None
    return Loop(f"/dev/{block.name}", backing, direct, cleared)
