"""`etude record` as the bench runs it, and what it says of a recording."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rows import BIN, BUILD

SUMMARY = re.compile(r"(\d+) of (\d+) reads and (\d+) of (\d+) writes that the kernel counted")
NAMING = (
    "could not be changed",
    "not recorded:",
    "found no room",
    "ended before",
    "incomplete:",
    "ends early",
)
"""What the recorder says of calls that are not in a trace."""


@dataclass(frozen=True)
class Said:
    """What the recorder printed: calls by its record and by the kernel's counters, and what it names as missing."""

    reads: int
    kernel_reads: int
    writes: int
    kernel_writes: int
    named: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether all that the kernel counted is there, over all threads and, as the recorder says, in each."""
        enough = self.reads >= self.kernel_reads and self.writes >= self.kernel_writes
        return enough and not any("incomplete" in line for line in self.named)


def said(text: str) -> Said:
    found = SUMMARY.findall(text)
    if len(found) != 1:
        raise ValueError(f"{len(found)} summaries of a recording instead of one in {text[-300:]!r}")
    reads, kernel_reads, writes, kernel_writes = map(int, found[0])
    lines = [line.removeprefix("etude record: ") for line in text.splitlines()]
    named = tuple(line for line in lines if any(word in line for word in NAMING))
    return Said(reads, kernel_reads, writes, kernel_writes, named)


@dataclass(frozen=True)
class Scratch:
    """A directory in memory, and one on disk in which the recorder keeps what it found in programs."""

    memory: Path
    cache: Path

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "LC_ALL": "C", "XDG_CACHE_HOME": str(self.cache)}

    @property
    def trace(self) -> Path:
        """Where the next trace is written: nothing is there."""
        path = self.memory / "next.trace"
        path.unlink(missing_ok=True)
        return path

    def recorder(self, *options: str) -> list[str]:
        return [str(BIN / "etude-engine"), "record", "-o", str(self.trace), *options, "--"]


@contextmanager
def scratch() -> Iterator[Scratch]:
    BUILD.mkdir(parents=True, exist_ok=True)
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with (
        tempfile.TemporaryDirectory(prefix="etude-bench-", dir=memory) as fast,
        tempfile.TemporaryDirectory(prefix="record-", dir=BUILD) as cache,
    ):
        yield Scratch(Path(fast), Path(cache))


def run(command: Sequence[str], place: Scratch, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command that must succeed."""
    environment = place.environment | variables
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", env=environment)
    if done.returncode:
        sys.exit(f"bench: {' '.join(command)} failed ({done.returncode}): {done.stderr.strip()[-300:]}")
    return done
