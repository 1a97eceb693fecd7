"""What a benchmark of Étude itself reports: ratios against a peer of the same run, with their spread."""

from __future__ import annotations

import os
import platform
import random
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
ETUDE = str(BIN / "etude")
BUILD = ROOT / "build" / "bench"


@dataclass(frozen=True)
class Row:
    """One line of the table: `value` in words, beside its peer; `reached` is None where nothing is to be reached."""

    what: str
    peer: str
    value: str
    reach: str
    reached: bool | None


HEADING = ("| what | peer | measured | reach | reached |", "| --- | --- | --- | --- | --- |")
"""Of the table, in Markdown."""


def line(row: Row) -> str:
    """A row of the table, in Markdown."""
    verdict = "–" if row.reached is None else "yes" if row.reached else "NO"
    return f"| {row.what} | {row.peer} | {row.value} | {row.reach} | {verdict} |"


def measured_where(conditions: str, versions: Sequence[str]) -> list[str]:
    """Where, how and by which command it was measured, as a list in Markdown."""
    model = re.findall(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return [
        f"- {time.strftime('%Y-%m-%d', time.gmtime())}, Linux {platform.release()}, {os.cpu_count()} × "
        f"{model[0] if model else platform.machine()}, load {os.getloadavg()[0]:.2f} before",
        f"- {conditions}",
        f"- {'; '.join(versions)}",
        f"- `python {' '.join([str(Path(sys.argv[0]).resolve().relative_to(ROOT)), *sys.argv[1:]])}`",
    ]


@dataclass(frozen=True)
class Spread:
    """A median with its quartiles."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.3g} (quartiles {self.low:.3g}–{self.high:.3g})"


def spread(values: Sequence[float]) -> Spread:
    """Median and quartiles of two or more values."""
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(median, low, high)


def interleave(
    parties: Mapping[str, Callable[[], float]], rounds: int, seed: int = 1
) -> dict[str, list[float]]:
    """Call every party once a round, in random order; the values by party, aligned by round."""
    generator = random.Random(seed)
    found: dict[str, list[float]] = {name: [] for name in parties}
    for done in range(rounds):
        order = list(parties)
        generator.shuffle(order)
        for name in order:
            found[name].append(parties[name]())
        progress(f"{done + 1}/{rounds} rounds")
    progress("")
    return found


def ratios(values: Sequence[float], peer: Sequence[float]) -> Spread:
    """The spread of value/peer, round by round."""
    return spread([a / b for a, b in zip(values, peer, strict=True)])


def wall_s(command: Sequence[str], **options: object) -> float:
    """Seconds from start to end of a command whose output is thrown away; it must succeed."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)  # type: ignore[call-overload]
    return time.perf_counter() - start


def peer(name: str, *flags: str, libraries: Sequence[str] = ()) -> str:
    """A peer program in C, or in Fortran, compiled, with these flags of the compiler besides -O2, and libraries."""
    BUILD.mkdir(parents=True, exist_ok=True)
    program = BUILD / "".join([name, *flags])
    sources = ROOT / "bench" / "peers"
    source = next(path for path in (sources / f"{name}.c", sources / f"{name}.f90") if path.exists())
    compiler = {".c": "cc", ".f90": "gfortran"}[source.suffix]
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        # Under another name first: a second process may compile it at this moment, or run it.
        made = program.with_name(f"{program.name}.{os.getpid()}")
        subprocess.run([compiler, "-O2", *flags, "-o", str(made), str(source), *libraries], check=True)
        made.replace(program)
    return str(program)


def progress(text: str) -> None:
    """Say on a terminal how far it is."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


def quiet_priority() -> str:
    """Ask for real-time priority, which everything started from here inherits; says what was granted."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    except OSError as error:
        return f"ordinary priority ({error.strerror})"
    return "SCHED_FIFO 10"
