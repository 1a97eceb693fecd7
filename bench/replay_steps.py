"""From a program to its replay, by the verbs that a user has: record, script, prepare, compile, replay."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replay_programs import Workload
from rows import BIN, ETUDE

DROP_CACHES = Path("/proc/sys/vm/drop_caches")
NAMES_ONLY = "2"
"""What the kernel drops: directories and inodes. Programs stay in memory: a replay does not load them."""
CHUNK = 1 << 20


@dataclass(frozen=True)
class Place:
    """A directory for everything of one workload, and one in which the recorder keeps what it found in programs."""

    directory: Path
    cache: Path
    engine: str = str(BIN / "etude-engine")

    @property
    def trace(self) -> Path:
        """Of the original."""
        return self.directory / "original.trace"

    @property
    def script(self) -> Path:
        """Made of that."""
        return self.directory / "original.script"

    @property
    def roll(self) -> Path:
        """Made of that."""
        return self.directory / "original.roll"

    @property
    def stage(self) -> Path:
        """Where it is replayed."""
        return self.directory / "stage"

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """What everything is run with."""
        return {**os.environ, "LC_ALL": "C", "XDG_CACHE_HOME": str(self.cache), **(more or {})}


@dataclass(frozen=True)
class Ran:
    """How long a program ran from its start to its end, and what it printed."""

    wall_s: float
    stdout: str


def start(
    command: Sequence[str], cwd: Path, environment: Mapping[str, str], recorded: Sequence[str] = ()
) -> Ran:
    """Run a program that must succeed; `recorded` are the words before it that record it."""
    begin = time.perf_counter()
    done = subprocess.run(
        [*recorded, *command],
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
    )
    wall_s = time.perf_counter() - begin
    if done.returncode:
        sys.exit(
            f"bench: {' '.join([*recorded, *command])} failed ({done.returncode}): {done.stderr.strip()[-300:]}"
        )
    return Ran(wall_s, done.stdout)


def recorder(place: Place, trace: Path) -> list[str]:
    """The words before a command that is to be recorded."""
    trace.unlink(missing_ok=True)
    return [place.engine, "record", "-q", "-o", str(trace), "--"]


def original(workload: Workload, place: Place, trace: Path | None = None, *, cold: bool = False) -> Ran:
    """The program itself, in its directory as it was at the beginning; recorded where a trace is named."""
    workload.fresh()
    settle(workload.directory, cold)
    words = [] if trace is None else recorder(place, trace)
    return start(workload.command, workload.directory, place.environment(workload.variables), words)


def made_script(place: Place) -> Path:
    """The script of the original's trace."""
    place.script.unlink(missing_ok=True)
    words = [place.engine, "script", str(place.trace), "-o", str(place.script)]
    start(words, place.directory, place.environment())
    return place.script


def made_roll(place: Place) -> Path:
    """The roll of the script."""
    place.roll.unlink(missing_ok=True)
    words = [place.engine, "compile", str(place.script), "-o", str(place.roll)]
    start(words, place.directory, place.environment())
    return place.roll


def prepared(place: Place) -> Path:
    """An empty directory with the files that a replay needs."""
    shutil.rmtree(place.stage, ignore_errors=True)
    place.stage.mkdir()
    start(
        [place.engine, "prepare", str(place.script), str(place.stage)], place.directory, place.environment()
    )
    return place.stage


@dataclass(frozen=True)
class Replayed:
    """A replay as it looks from outside, and what it says of itself."""

    wall_s: float
    said: Mapping[str, Any]


def replayed(
    place: Place, trace: Path | None = None, *, cold: bool = False, options: Sequence[str] = ()
) -> Replayed:
    """One replay in a directory that is prepared for it; recorded where a trace is named."""
    stage = prepared(place)
    settle(stage, cold)
    words = [] if trace is None else recorder(place, trace)
    command = [place.engine, "replay", str(place.roll), str(stage), "--json", *options]
    ran = start(command, place.directory, place.environment(), words)
    return Replayed(ran.wall_s, json.loads(ran.stdout))


def settle(directory: Path, cold: bool) -> None:
    """What was written before is on disk; files and names are all in memory, or none is."""
    os.sync()
    for path in (path for path in directory.rglob("*") if path.is_file() and not path.is_symlink()):
        with path.open("rb") as file:
            if cold:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            else:
                while file.read(CHUNK):
                    pass
    if cold:
        with suppress(OSError):
            DROP_CACHES.write_text(NAMES_ONLY)


def cold_by() -> str:
    """What a cold run finds cold here."""
    if os.access(DROP_CACHES, os.W_OK):
        return "files, directories and inodes dropped"
    return "files dropped, directories and inodes not (root alone can)"


def profiles(a: Path, b: Path, place: Place) -> Mapping[str, Any]:
    """`etude profile A B --json`."""
    ran = start([ETUDE, "profile", str(a), str(b), "--json"], place.directory, place.environment())
    found: Mapping[str, Any] = json.loads(ran.stdout)
    return found
