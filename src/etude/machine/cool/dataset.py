"""A data set, and its residency in memory, measured without changing it (docs/residency.md)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from etude.machine.cool import engine
from etude.machine.cool.backing_devices import Loop, loops, mount_of

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
        engine.listing([os.path.abspath(path) for path in self.paths], self.listing)

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
    return _of_answer(engine.engine_answer("residency", "look", *_words(data)))


@contextmanager
def watched_residency(data: DataSet) -> Iterator[Callable[[], Residency]]:
    """Watches the data set while it is cooled; where this kernel or user may not watch, it is only looked at
    afterwards."""
    watch = engine.Watch(*_words(data))
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
