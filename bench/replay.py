"""Replays beside their originals, beside fio and beside a bare loop: run time, I/O time, sizes, rate, schedule.

python bench/replay.py [--rounds N] [--programs NAME,…] [--states warm,cold] [--parts PART,…] [--small]
                       [--record FILE] [--no-fifo]

Parts, by the modules of replays/: run (run, read and write time, pairs.py, with fio, fio.py), sizes (of rolls) and list
(other results of many programs, listed.py), rate (as fast as possible, rate.py), schedule (in absolute time, fio.py).
"""

from __future__ import annotations

import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from etude.iotrace.reader import read_trace
from recording import version
from replays.fio import fio_row, schedule_rows
from replays.listed import include_rows, list_rows, size_rows
from replays.pairs import STATES, pair_rows, pairs
from replays.programs import BENCH, MAKERS, SMALL, Size, Workload, missing
from replays.rate import rate_rows
from replays.steps import Place, own_filesystem, whole_way
from rows import BUILD, HEADING, Row, line, measured_where, names, options, quiet_priority, shown

FILESYSTEM_BYTES = 4 << 30
PARTS = ("run", "sizes", "list", "rate", "schedule")
OF_PROGRAMS = {"run", "sizes"}
OF_ALL = {"sizes": include_rows, "list": list_rows, "rate": rate_rows, "schedule": schedule_rows}
SHORT = ("tar", "sqlite3", "threads")
"""Programs of `make bench`."""

EXPLAINED = """\
All on an ext4 of its own (in a file; for root). *Run time*: in each round, in random order, the original, the
original again, and the replay of a recording that is made for this replay alone, in a directory that is prepared for
it. Of originals it is the time from start to end, their output thrown away; of replays that from the first call to
the last, as they say it: their own start, which reads the roll and looks at the files, is no part of what is
replayed. A figure is the median over rounds of replay / original, with quartiles. Warm, it may be as far from 1 as
the median of |again / original - 1| of the same rounds, or 3 %. *Read and write time*: time within calls that move
data, as the replay says it, beside that in its own recording. *fio*: the data calls as its log of version 3, by
psync, its own run time. *Bytes of the roll*: fixed records are 60 bytes an event and the texts, each by zlib. *Other
results*: each program is recorded once and replayed once; what its verdict misses is refused by `etude replay
--judge`. *Rate without gaps*: the calls of a script and the descriptors that they lead to, data from one place, in a
directory prepared anew each time; both made the same calls. tar's script is without calls about memory. *Start-time
error*: both recorded by `etude record`, the same reads and writes on files that are open before; of each call the
start less that of the first one, against the same by the schedule, too early as well as too late; the 99 % point of
each run, of which the median over runs is shown, with quartiles."""


@dataclass(frozen=True)
class Wanted:
    """What is measured, and how often."""

    rounds: int
    programs: Sequence[str] = tuple(MAKERS)
    states: Sequence[str] = STATES
    parts: Sequence[str] = PARTS
    size: Size = BENCH
    fio: bool = True


def replay(rounds: int) -> list[Row]:
    """A short selection, as rows of `make bench`."""
    few = Wanted(rounds, SHORT, ("warm",), fio=False)
    return list(measured(few))


def measured(wanted: Wanted) -> Iterator[Row]:
    """The rows of all that is wanted, as they come."""
    if OF_PROGRAMS & set(wanted.parts):
        for name in wanted.programs:
            yield from named_rows(name, wanted)
    for part in wanted.parts:
        if part in OF_ALL:
            step(part)
            with on_disk() as place:
                yield from OF_ALL[part](place, wanted.size, wanted.rounds)


def named_rows(name: str, wanted: Wanted) -> Iterator[Row]:
    """Of a program, or that it is not there."""
    lacking = missing(name)
    if lacking:
        what = f"run time, replay / original: {name}"
        yield shown(what, "–", f"{', '.join(lacking)} is not installed")
        return
    with on_disk() as place:
        yield from program_rows(MAKERS[name](place.directory, wanted.size), place, wanted)


@contextmanager
def on_disk() -> Iterator[Place]:
    """Directories on the disk of the build, until the end of the block: what is in memory alone cannot be cold."""
    with own_filesystem(BUILD, FILESYSTEM_BYTES) as place:
        directory, cache = place / "replay", place / "record"
        directory.mkdir()
        cache.mkdir()
        yield Place(directory, cache)


def program_rows(workload: Workload, place: Place, wanted: Wanted) -> Iterator[Row]:
    """Once for the trace and the roll whose size is told, then the rounds in each state of the cache."""
    step(f"{workload.name}: first")
    said = whole_way(workload, place)
    trace, roll_bytes = read_trace(place.trace), place.roll.stat().st_size
    if "run" in wanted.parts:
        for state in wanted.states:
            step(f"{workload.name}: {state}")
            found = pairs(workload, place, wanted.rounds, state == "cold")
            yield from pair_rows(workload.what, state, found)
        if wanted.fio:
            step(f"{workload.name}: fio")
            yield fio_row(workload, trace, place, max(2, wanted.rounds // 2))
    if "sizes" in wanted.parts:
        yield from size_rows(workload, trace, said, roll_bytes)


def step(text: str) -> None:
    """Say what is done now."""
    print(f"{time.strftime('%H:%M:%S')} replay: {text}", file=sys.stderr, flush=True)


def page(header: Sequence[str]) -> str:
    """All of it in Markdown, but the rows."""
    lines = ["# Replays beside their originals, fio and a bare loop", "", *header, "", EXPLAINED, ""]
    return "\n".join([*lines, *HEADING, ""])


def tell(text: str, record: Path | None) -> None:
    """Print it at once, and write it where asked: what comes later may fail."""
    print(text, end="", flush=True)
    if record:
        with record.open("a", encoding="utf-8") as file:
            file.write(text)


def machine(priority: str) -> list[str]:
    """Where and how it was measured."""
    programs = ("tar", "sqlite3", "gcc", "git", "fio")
    return measured_where(priority, [version(name) for name in programs if shutil.which(name)])


def asked() -> tuple[Wanted, Path | None, bool]:
    """By the options: what, where to write it, and whether without real-time priority."""
    # What is mounted is unmounted then, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    parser = options(__doc__, rounds=7, record=True)
    known = {"programs": tuple(MAKERS), "states": STATES, "parts": PARTS}
    for option, every in known.items():
        parser.add_argument(f"--{option}", default=",".join(every), help="by commas; by default %(default)s")
    parser.add_argument("--small", action="store_true", help="at the size of the tests: shows that it runs")
    given = parser.parse_args()
    chosen = [names(parser, option, getattr(given, option), every) for option, every in known.items()]
    if given.rounds < 2:
        parser.error("--rounds is two or more: quartiles need two values")
    size = SMALL if given.small else BENCH
    return Wanted(given.rounds, *chosen, size), given.record, given.no_fifo


def main() -> None:
    """Measure, print the page, and write it where asked; the exit code is 1 when something was not reached."""
    wanted, record, no_fifo = asked()
    header = machine("ordinary priority" if no_fifo else quiet_priority())
    if record:
        record.write_text("", encoding="utf-8")
    tell(page(header), record)
    missed = False
    for row in measured(wanted):
        tell(f"{line(row)}\n", record)
        missed |= row.reached is False
    step("done")
    sys.exit(missed)


if __name__ == "__main__":
    main()
