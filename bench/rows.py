"""What a benchmark of Étude itself reports: ratios against a peer of the same run, with their spread; as Markdown."""

from __future__ import annotations

import argparse
import math
import os
import platform
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing import Pool
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
ETUDE = str(BIN / "etude")
BUILD = ROOT / "build" / "bench"
J = TypeVar("J")
R = TypeVar("R")
sys.path.append(str(ROOT / "tests"))  # tests/support has the servers and clusters that are measured


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
    verdict = "–" if row.reached is None else "yes" if row.reached else "NO"
    return f"| {row.what} | {row.peer} | {row.value} | {row.reach} | {verdict} |"


def shown(what: str, peer: str, value: str) -> Row:
    """A row that is not judged."""
    return Row(what, peer, value, "–", None)


def at_most(what: str, peer: str, ratio: Spread, limit: float) -> Row:
    """A row judged by the median of a ratio, which may not exceed `limit`."""
    return Row(what, peer, f"{ratio} ×", f"≤ {limit:g} ×", ratio.median <= limit)


def options(doc: str | None, *, rounds: int | None = None, record: bool = False) -> argparse.ArgumentParser:
    """A parser whose help begins with a module's text; with options that several tables have."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    if rounds is not None:
        parser.add_argument("--rounds", type=int, default=rounds, help=f"two or more; {rounds} by default")
        parser.add_argument("--no-fifo", action="store_true", help="do not ask for real-time priority")
    if record:
        parser.add_argument("--record", type=Path, metavar="FILE", help="write the page there as well")
    return parser


def names(parser: argparse.ArgumentParser, option: str, text: str, known: Iterable[str]) -> list[str]:
    """The names that an option gives by commas, in the order of those known; ends the program where one is not."""
    given, known = text.split(","), list(known)
    if not set(given) <= set(known):
        parser.error(f"--{option} are {', '.join(known)}")
    return [name for name in known if name in given]


def publish(text: str, record: Path | None, rows: Iterable[Row] = ()) -> int:
    """Print a page, and write it where asked; the exit status: 1 where a row was not reached."""
    print(text, end="")
    if record:
        record.write_text(text, encoding="utf-8")
    return int(any(row.reached is False for row in rows))


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
    return spread([a / b for a, b in zip(values, peer, strict=True)])


def fine(ratio: Spread) -> str:
    """A ratio near 1."""
    return f"{ratio.median:.4f} (quartiles {ratio.low:.4f}–{ratio.high:.4f})"


def need(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            sys.exit(f"bench: {program} is missing: make setup, and packaging/debian-packages.txt")


@contextmanager
def running(*commands: Sequence[str]) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Programs whose output is thrown away, which are killed at the end of the block."""
    with ExitStack() as stack:
        started = []
        for command in commands:
            program = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            stack.callback(program.communicate)
            stack.callback(program.kill)
            started.append(program)
        yield started


def wall_s(command: Sequence[str], **options: object) -> float:
    """Seconds from start to end of a command whose output is thrown away; it must succeed."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)  # type: ignore[call-overload]
    return time.perf_counter() - start


def printed(*command: str | Path, **options: object) -> str:
    """What a command that must succeed writes to standard output."""
    done: subprocess.CompletedProcess[str] = subprocess.run(  # type: ignore[call-overload]
        command, check=True, capture_output=True, text=True, **options
    )
    return done.stdout


@contextmanager
def benched(*words: str) -> Iterator[Path]:
    """The results directory of an `etude bench` call, until the end of the block."""
    with tempfile.TemporaryDirectory() as directory:
        printed(ETUDE, "bench", "-o", f"{directory}/r", *words)
        yield Path(directory, "r")


def etude_bench_s(*words: str) -> float:
    """Wall time of an `etude bench` call, the verdict included."""
    with tempfile.TemporaryDirectory() as directory:
        return wall_s([ETUDE, "bench", "-o", f"{directory}/r", *words])


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


@contextmanager
def on_cpus(cpus: Iterable[int]) -> Iterator[None]:
    """Stay on these CPUs, with all that is started, until the end of the block."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def progress(text: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


def in_processes(work: Callable[[J], R], jobs: Sequence[J], processes: int, what: str) -> Iterator[R]:
    """What comes of each job, in processes of their own, as they end."""
    with Pool(processes) as pool:
        for done, found in enumerate(pool.imap_unordered(work, jobs), 1):
            progress(f"{done}/{len(jobs)} {what}")
            yield found
    progress("")


def quiet_priority() -> str:
    """Ask for real-time priority, which everything started from here inherits; says what was granted."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    except OSError as error:
        return f"ordinary priority ({error.strerror})"
    return "SCHED_FIFO 10"


NOMINAL = 0.95


def cells(values: Sequence[str]) -> str:
    return f"| {' | '.join(values)} |"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table, and the empty line after it."""
    return [cells(header), "|---" * len(header) + "|", *map(cells, rows), ""]


def paragraph(*sentences: str) -> list[str]:
    """Text in lines of a page, and the empty line after it."""
    return [*textwrap.wrap(" ".join(sentences), 110, break_on_hyphens=False), ""]


def section(title: str, text: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"## {title}", "", *paragraph(text), *table(header, rows)]


def percent(value: float) -> str:
    """A share in percent, to a tenth."""
    return f"{100 * value:.1f}"


def share(value: float, replications: int, at_least: float = NOMINAL) -> str:
    """A share in percent; bold where it is below `at_least` by more than two standard errors."""
    text = percent(value)
    return f"**{text}**" if value < at_least - 2.0 * standard_error(at_least, replications) else text


def standard_error(value: float, replications: int) -> float:
    return math.sqrt(value * (1.0 - value) / replications)
