"""Replays beside their originals, beside fio and beside a bare loop: run time, I/O time, sizes, rate, schedule.

python bench/replay.py [--rounds N] [--programs NAME,…] [--states warm,cold] [--parts PART,…] [--small]
                       [--record FILE] [--no-fifo]

Parts, by the modules of replays/: run (run, read and write time, with fio, fio.py), sizes (of rolls) and list
(other results of many programs, listed.py), rate (as fast as possible, rate.py), schedule (in absolute time, fio.py).
"""

from __future__ import annotations

import shutil
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from etude.iotrace.reader import read_trace
from recording import version
from replays.fio import fio_row, schedule_rows
from replays.listed import include_rows, list_rows, size_rows
from replays.programs import BENCH, MAKERS, SMALL, Size, Workload, missing
from replays.rate import rate_rows
from replays.steps import Place, Said, cold_by, original, own_filesystem, whole_way
from rows import (
    BUILD,
    HEADING,
    Row,
    fine,
    interleave,
    line,
    measured_where,
    names,
    options,
    quiet_priority,
    ratios,
    shown,
    spread,
)

FILESYSTEM_BYTES = 4 << 30
STATES = ("warm", "cold")
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
    few = Wanted(rounds, SHORT, ("warm",), fio=False)
    return list(measured(few))


def measured(wanted: Wanted) -> Iterator[Row]:
    if OF_PROGRAMS & set(wanted.parts):
        for name in wanted.programs:
            yield from named_rows(name, wanted)
    for part in wanted.parts:
        if part in OF_ALL:
            step(part)
            with on_disk() as place:
                yield from OF_ALL[part](place, wanted.size, wanted.rounds)


def named_rows(name: str, wanted: Wanted) -> Iterator[Row]:
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
    print(f"{time.strftime('%H:%M:%S')} replay: {text}", file=sys.stderr, flush=True)


def page(header: Sequence[str]) -> str:
    lines = ["# Replays beside their originals, fio and a bare loop", "", *header, "", EXPLAINED, ""]
    return "\n".join([*lines, *HEADING, ""])


def tell(text: str, record: Path | None) -> None:
    """Print it at once, and write it where asked: what comes later may fail."""
    print(text, end="", flush=True)
    if record:
        with record.open("a", encoding="utf-8") as file:
            file.write(text)


def machine(priority: str) -> list[str]:
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


RUN_TIME = {"warm": 0.03, "cold": 0.15}
"""How far a replay's run time may be from the original's."""
IO_TIME = {"warm": 0.10, "cold": 0.20}
JUDGED_S = 1e-3
"""Reads or writes that take less in total are shown, not judged: some interrupts are a share of that."""


@dataclass(frozen=True)
class Pairs:
    """Seconds, aligned by round."""

    original: Sequence[float]
    again: Sequence[float]
    """The original a second time: how far apart two runs are that differ in nothing."""
    replays: Sequence[Said]

    @property
    def replay(self) -> list[float]:
        return [said["run_s"] for said in self.replays]

    @property
    def recording(self) -> list[float]:
        return [said["original"]["run_s"] for said in self.replays]


def pairs(workload: Workload, place: Place, rounds: int, cold: bool) -> Pairs:
    replays: list[Said] = []

    def replay() -> float:
        replays.append(whole_way(workload, place, cold=cold))
        return float(replays[-1]["run_s"])

    parties: dict[str, Callable[[], float]] = {
        "original": lambda: original(workload, place, cold=cold),
        "again": lambda: original(workload, place, cold=cold),
        "replay": replay,
    }
    found = interleave(parties, rounds)
    return Pairs(found["original"], found["again"], replays)


def pair_rows(what: str, state: str, found: Pairs) -> list[Row]:
    """All that is said of a program in a state of the cache."""
    return [run_row(what, state, found), *io_rows(what, state, found)]


def run_row(what: str, state: str, found: Pairs) -> Row:
    """Judged by how far the median is from 1; warm it may be as far as two originals are apart in the same rounds."""
    ratio = ratios(found.replay, found.original)
    allowed = RUN_TIME[state]
    if state == "warm":
        allowed = max(allowed, apart(found))
    about = f"{state}, {cold_by()}" if state == "cold" else state
    floor = f"again / original {fine(ratios(found.again, found.original))}"
    own = f"replay / its own recording {ratios(found.replay, found.recording).median:.4f}"
    base = f"original, {spread(found.original).median:.3g} s; {floor}; {own}"
    reach = (f"within {100 * allowed:.2g} %", abs(ratio.median - 1) <= allowed)
    return Row(f"run time, replay / original: {what}; {about}", base, fine(ratio), *reach)


def apart(found: Pairs) -> float:
    """How far two originals of a round are apart, by the median."""
    pairs = zip(found.again, found.original, strict=True)
    return statistics.median(abs(again / once - 1) for again, once in pairs)


def io_rows(what: str, state: str, found: Pairs) -> list[Row]:
    """Time within calls that read, and that write: each replay's beside that of the recording that it was made of."""
    rows = []
    for name in ("read", "write"):
        values = [said["ratios"][name] for said in found.replays if said["ratios"][name] is not None]
        if len(values) > 1:
            recorded_s = statistics.median(said["original"][f"{name}_s"] for said in found.replays)
            rows.append(io_row(f"{name} time, replay / original: {what}", state, values, recorded_s))
    return rows


def io_row(what: str, state: str, values: Sequence[float], recorded_s: float) -> Row:
    """Judged by the median, where there is enough to be judged."""
    ratio, allowed = spread(values), IO_TIME[state]
    judged = recorded_s >= JUDGED_S
    reached = abs(ratio.median - 1) <= allowed if judged else None
    reach = f"within {100 * allowed:g} %" if judged else f"– (less than {1e3 * JUDGED_S:g} ms in total)"
    base = f"its own recording, {1e3 * recorded_s:.3g} ms"
    return Row(f"{what}; {state}", base, fine(ratio), reach, reached)


if __name__ == "__main__":
    main()
