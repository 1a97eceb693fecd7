"""From a program to its replay, by the verbs that a user has: record, script, prepare, compile, replay; and where."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from replays.programs import Workload
from rows import BIN

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
        return self.directory / "original.trace"

    @property
    def script(self) -> Path:
        return self.directory / "original.script"

    @property
    def roll(self) -> Path:
        return self.directory / "original.roll"

    @property
    def stage(self) -> Path:
        return self.directory / "stage"

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        return {**os.environ, "LC_ALL": "C", "XDG_CACHE_HOME": str(self.cache), **(more or {})}


def elapsed_s(command: Sequence[str], cwd: Path, environment: Mapping[str, str]) -> float:
    """From the start of a program, which must succeed, to its end; what it prints is thrown away, not read."""
    program = shutil.which(command[0], path=environment.get("PATH"))
    if program is None:
        sys.exit(f"bench: {command[0]} is missing (packaging/debian-packages.txt)")
    with tempfile.TemporaryFile() as errors, chdir(cwd):
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_DUP2, errors.fileno(), 2),
        ]
        begin = time.perf_counter()
        pid = os.posix_spawn(program, list(command), environment, file_actions=actions)
        _, status, _ = os.wait4(pid, 0)
        took_s = time.perf_counter() - begin
        if status:
            errors.seek(0)
            failed(command, os.waitstatus_to_exitcode(status), errors.read().decode(errors="replace"))
    return took_s


def printed(command: Sequence[str], cwd: Path, environment: Mapping[str, str] | None, **others: Any) -> str:
    done: subprocess.CompletedProcess[str] = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, errors="replace", **others
    )
    if done.returncode:
        failed(command, done.returncode, done.stderr)
    return done.stdout


def failed(command: Sequence[str], status: int, said: str) -> NoReturn:
    sys.exit(f"bench: {' '.join(command)} failed ({status}): {said.strip()[-300:]}")


def recorder(place: Place, trace: Path) -> list[str]:
    trace.unlink(missing_ok=True)
    return [place.engine, "record", "-q", "-o", str(trace), "--"]


def original(workload: Workload, place: Place, trace: Path | None = None, *, cold: bool = False) -> float:
    """The program itself, in its directory as it was at the beginning; recorded where a trace is named. Seconds."""
    workload.fresh()
    settle(workload.directory, cold)
    words = [] if trace is None else recorder(place, trace)
    return elapsed_s([*words, *workload.command], workload.directory, place.environment(workload.variables))


def made_script(place: Place) -> Path:
    place.script.unlink(missing_ok=True)
    engine(place, "script", str(place.trace), "-o", str(place.script))
    return place.script


def made_roll(place: Place) -> Path:
    place.roll.unlink(missing_ok=True)
    engine(place, "compile", str(place.script), "-o", str(place.roll))
    return place.roll


def prepared(place: Place) -> Path:
    shutil.rmtree(place.stage, ignore_errors=True)
    place.stage.mkdir()
    engine(place, "prepare", str(place.script), str(place.stage))
    return place.stage


def engine(place: Place, *words: str) -> str:
    return printed([place.engine, *words], place.directory, place.environment())


Said = Mapping[str, Any]
"""What a replay says of itself, and of its original (docs/howto/replay.md, `--json`)."""


def replayed(
    place: Place, trace: Path | None = None, *, cold: bool = False, options: Sequence[str] = ()
) -> Said:
    """One replay in a directory that is prepared for it; recorded where a trace is named."""
    stage = prepared(place)
    settle(stage, cold)
    words = [] if trace is None else recorder(place, trace)
    command = [*words, place.engine, "replay", str(place.roll), str(stage), "--json", *options]
    said: Said = json.loads(printed(command, place.directory, place.environment()))
    return said


def whole_way(workload: Workload, place: Place, *, cold: bool = False) -> Said:
    """The program recorded anew, its script, its roll, and one replay of that."""
    original(workload, place, place.trace, cold=cold)
    made_script(place)
    made_roll(place)
    return replayed(place, cold=cold)


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


PROGRAMS = ("fallocate", "mkfs.ext4", "mount", "umount")


@contextmanager
def own_filesystem(within: Path, size_bytes: int) -> Iterator[Path]:
    """A directory in a new ext4 in a file of `within`, until the end of the block; in `within` where that cannot be."""
    within.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fs-", dir=within) as directory:
        if os.geteuid() != 0 or not all(map(shutil.which, PROGRAMS)):
            yield Path(directory)
            return
        image, place = Path(directory, "image"), Path(directory, "place")
        place.mkdir()
        _run("fallocate", "-l", str(size_bytes), str(image))
        _run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", str(image))
        try:
            _run("mount", "-o", "loop", str(image), str(place))
        except subprocess.CalledProcessError:
            yield place
            return
        try:
            yield place
        finally:
            _run("umount", str(place))


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)
