"""Replays beside their originals and beside fio: run time, read and write time, warm and cold, and the size of rolls.

python bench/replay.py [--rounds N] [--programs NAME,…] [--states warm,cold] [--small] [--no-fifo]
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from etude.iotrace.profile import profile_of
from etude.iotrace.read import Trace, read_trace
from replay_fio import log_of, play, stage
from replay_programs import BENCH, MAKERS, SMALL, Size, Workload, missing
from replay_steps import (
    Place,
    cold_by,
    made_roll,
    made_script,
    original,
    profiles,
    replayed,
)
from rows import BUILD, HEADING, Row, Spread, interleave, line, progress, quiet_priority, ratios, spread

STATES = ("warm", "cold")
RUN_TIME = {"warm": 0.01, "cold": 0.15}
"""How far a replay's run time may be from the original's."""
IO_TIME = {"warm": 0.05, "cold": 0.20}
BYTES_AN_EVENT = 1.0
TIMES_SMALLER = 8.0
ROLL_SHARE = 0.01
PROFILED = 3
"""Pairs that are recorded for the times of reads and writes, at least."""


@dataclass(frozen=True)
class Pairs:
    """Seconds, aligned by round."""

    original: Sequence[float]
    again: Sequence[float]
    """The original a second time: how far apart two runs are that differ in nothing."""
    replay: Sequence[float]


def replay(rounds: int, names: Sequence[str] = tuple(MAKERS), size: Size = BENCH) -> list[Row]:
    """All programs, as rows of `make bench`."""
    return measured(rounds, names, STATES, size)


def measured(rounds: int, names: Sequence[str], states: Sequence[str], size: Size) -> list[Row]:
    """The rows of some programs."""
    found = []
    for name in names:
        lacking = missing(name)
        if lacking:
            what = f"run time, replay / original: {name}"
            found.append(Row(what, "–", f"{', '.join(lacking)} is not installed", "–", None))
            continue
        with on_disk() as place:
            found += program_rows(MAKERS[name](place.directory, size), place, rounds, states)
    return found


@contextmanager
def on_disk() -> Iterator[Place]:
    """Directories on the disk of the build, until the end of the block: what is in memory alone cannot be cold."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="replay-", dir=BUILD) as directory,
        tempfile.TemporaryDirectory(prefix="record-", dir=BUILD) as cache,
    ):
        yield Place(Path(directory), Path(cache))


def program_rows(workload: Workload, place: Place, rounds: int, states: Sequence[str]) -> list[Row]:
    """Record, compile, and compare in each state of the cache."""
    progress(workload.what)
    original(workload, place)
    original(workload, place, place.trace)
    made_script(place)
    made_roll(place)
    found = []
    for state in states:
        cold = state == "cold"
        found.append(run_row(workload.what, state, pairs(workload, place, rounds, cold)))
        found += io_rows(workload, place, max(PROFILED, rounds // 2), cold)
    trace = read_trace(place.trace)
    found.append(fio_row(workload, trace, place, rounds))
    found += size_rows(workload, trace, place.roll.stat().st_size)
    return found


def pairs(workload: Workload, place: Place, rounds: int, cold: bool) -> Pairs:
    """Original, original again, and replay, in random order each round."""
    parties: dict[str, Callable[[], float]] = {
        "original": lambda: original(workload, place, cold=cold).wall_s,
        "again": lambda: original(workload, place, cold=cold).wall_s,
        "replay": lambda: replayed(place, cold=cold).wall_s,
    }
    found = interleave(parties, rounds)
    return Pairs(found["original"], found["again"], found["replay"])


def run_row(what: str, state: str, found: Pairs) -> Row:
    """Judged by how far the median is from 1; warm it may be as far as two originals are apart in the same rounds."""
    ratio, floor = ratios(found.replay, found.original), ratios(found.again, found.original)
    allowed = RUN_TIME[state]
    if state == "warm":
        allowed = max(allowed, abs(floor.median - 1))
    about = f"{state}, {cold_by()}" if state == "cold" else state
    return Row(
        f"run time, replay / original: {what}; {about}",
        f"original, {spread(found.original).median:.3g} s; again / original {fine(floor)}",
        fine(ratio),
        f"within {100 * allowed:.2g} %",
        abs(ratio.median - 1) <= allowed,
    )


def fine(ratio: Spread) -> str:
    """A ratio near 1."""
    return f"{ratio.median:.4f} (quartiles {ratio.low:.4f}–{ratio.high:.4f})"


def io_rows(workload: Workload, place: Place, rounds: int, cold: bool) -> list[Row]:
    """Original and replay both recorded, in random order; the ratios of a round are those of `etude profile`."""
    a, b = place.directory / "a.trace", place.directory / "b.trace"
    parties: dict[str, Callable[[], float]] = {
        "original": lambda: original(workload, place, a, cold=cold).wall_s,
        "replay": lambda: replayed(place, b, cold=cold).wall_s,
    }
    found: dict[str, list[float]] = {"reads": [], "writes": []}
    for seed in range(rounds):
        interleave(parties, 1, seed)
        told = profiles(a, b, place)["ratios"]
        for name, values in found.items():
            if told[name]["time_s"] is not None:
                values.append(told[name]["time_s"])
    return [
        io_row(f"{name} time, replay / original: {workload.what}", state_of(cold), values)
        for name, values in (("read", found["reads"]), ("write", found["writes"]))
        if len(values) > 1
    ]


def state_of(cold: bool) -> str:
    """Of the cache."""
    return "cold" if cold else "warm"


def io_row(what: str, state: str, values: Sequence[float]) -> Row:
    """Judged by the median."""
    found, allowed = spread(values), IO_TIME[state]
    reached = abs(found.median - 1) <= allowed
    return Row(
        f"{what}; {state}", "original, recorded as well", fine(found), f"within {allowed:.0%}", reached
    )


def fio_row(workload: Workload, trace: Trace, place: Place, rounds: int) -> Row:
    """fio on the data calls, warm, without its start; files are as large as they get, and open from the beginning."""
    what = f"run time, fio read_iolog / original: {workload.what}; warm"
    if shutil.which("fio") is None:
        return Row(what, "–", "fio is not installed", "–", None)
    log = log_of(trace)
    if workload.parallel or log.calls == 0:
        why = "several threads or processes: fio plays one log by one job" if log.calls else "no data calls"
        return Row(what, "–", f"not possible ({why})", "–", None)
    path = place.directory / "fio"

    def played() -> float:
        found = play(stage(log, path))
        if found.calls != log.calls:
            sys.exit(f"bench: fio made {found.calls} of {log.calls} calls of {workload.name}")
        return found.run_s

    parties = {"original": lambda: original(workload, place).wall_s, "fio": played}
    found = interleave(parties, max(2, rounds // 2))
    shutil.rmtree(path)
    share = f"{log.calls:,} data calls of {trace.events:,}"
    return Row(what, f"original; {share}", fine(ratios(found["fio"], found["original"])), "–", None)


def size_rows(workload: Workload, trace: Trace, roll_bytes: int) -> list[Row]:
    """What the roll takes, beside fixed records; judged for tar, as that is what others have numbers of."""
    judged = workload.name == "tar"
    each, fixed = roll_bytes / trace.events, fixed_bytes(trace) / trace.events
    profile = profile_of(trace)
    share = roll_bytes / max(profile.reads.bytes + profile.writes.bytes, 1)
    return [
        Row(
            f"bytes of the roll an event: {workload.what}, {trace.events:,} events",
            f"fixed records and texts, zlib: {fixed:.3g} B",
            f"{each:.3g} B, {fixed / each:.3g} × smaller",
            f"≤ {BYTES_AN_EVENT:g} B, ≥ {TIMES_SMALLER:g} ×" if judged else "–",
            each <= BYTES_AN_EVENT and fixed / each >= TIMES_SMALLER if judged else None,
        ),
        Row(
            f"roll / bytes moved: {workload.what}",
            "–",
            f"{100 * share:.3g} %",
            f"≤ {100 * ROLL_SHARE:g} %" if judged else "–",
            share <= ROLL_SHARE if judged else None,
        ),
    ]


def fixed_bytes(trace: Trace) -> int:
    """As Pianola has it: a record of 60 bytes an event (what, gap, result, five arguments), and the texts in order,
    both by zlib."""
    order = np.argsort(trace.start_ns, kind="stable")
    ends = (trace.start_ns + trace.duration_ns)[order]
    records = np.zeros(trace.events, np.dtype([("call", "<u4"), ("gap", "<f8"), ("rest", "<i8", (6,))]))
    records["call"] = trace.call[order]
    records["gap"][1:] = np.maximum(trace.start_ns[order][1:] - ends[:-1], 0) * 1e-9
    records["rest"][:, 0] = trace.result[order]
    for number in range(5):
        records["rest"][:, 1 + number] = trace.arguments[number][order]
    codes = np.column_stack(trace.texts)[order].ravel()
    texts = b"".join(trace.text(code) + b"\0" for code in codes[codes > 0].tolist())
    return len(zlib.compress(records.tobytes(), 6)) + len(zlib.compress(texts, 6))


def main() -> None:
    """Measure and print the rows; the exit code is 1 when something was not reached."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9, help="two or more; 9 by default")
    parser.add_argument("--programs", help=f"by commas; by default all: {', '.join(MAKERS)}")
    parser.add_argument("--states", default=",".join(STATES), help="by commas: warm, cold")
    parser.add_argument("--small", action="store_true", help="at the size of the tests: shows that it runs")
    parser.add_argument("--no-fifo", action="store_true", help="do not ask for real-time priority")
    options = parser.parse_args()
    chosen: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
        "--programs": (options.programs.split(",") if options.programs else list(MAKERS), list(MAKERS)),
        "--states": (options.states.split(","), STATES),
    }
    for option, (given, known) in chosen.items():
        if not set(given) <= set(known):
            parser.error(f"{option} are {', '.join(known)}")
    if options.rounds < 2:
        parser.error("--rounds is two or more: quartiles need two values")
    print("ordinary priority" if options.no_fifo else quiet_priority())
    print(*HEADING, sep="\n")
    names, states = (given for given, _ in chosen.values())
    found = measured(options.rounds, names, states, SMALL if options.small else BENCH)
    print(*map(line, found), sep="\n")
    sys.exit(any(row.reached is False for row in found))


if __name__ == "__main__":
    main()
