"""The peer fio: a trace's data calls as its log of version 3, played; and how far from its schedule each call begins.

Such a log has reads and writes with offsets and times, and no more; fio plays it by one job. In absolute time both play
the same reads and writes on files that are open before the first one is due, recorded by `etude record`. The error of a
call is its start less that of the first one, against the same by the schedule: too early counts as too late.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from etude.iotrace.profile import READS, among, transfers
from etude.iotrace.reader import Trace, Whole, read_trace
from replays.programs import Size, Workload, tar
from replays.steps import Place, made_roll, original, printed, recorder, replayed, settle
from rows import Row, Spread, fine, interleave, ratios, shown, spread

FIRST_LINE = "fio version 3 iolog"
NS_PER_TICK = 1000
"""fio 3.33 writes and reads microseconds."""


@dataclass(frozen=True)
class Move:
    """A read or a write of a file."""

    tick_us: int
    file: str
    reads: bool
    begin: int
    bytes: int


@dataclass(frozen=True)
class Log:
    """What fio is to play, on files `f0`, `f1` …"""

    moves: Sequence[Move]
    left_out: int = 0
    """Calls of the trace that such a log cannot have."""

    @property
    def calls(self) -> int:
        """That it holds."""
        return len(self.moves)

    @property
    def bytes(self) -> int:
        return sum(move.bytes for move in self.moves)

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        found: dict[str, int] = {}
        for move in self.moves:
            found[move.file] = max(found.get(move.file, 0), move.begin + move.bytes)
        return found

    @property
    def text(self) -> str:
        lines = [
            f"{move.tick_us} {move.file} {'read' if move.reads else 'write'} {move.begin} {move.bytes}"
            for move in self.moves
        ]
        head = [f"0 {name} {action}" for action in ("add", "open") for name in self.sizes]
        # fio waits before each line until the time of that line.
        last_us = self.moves[-1].tick_us if self.moves else 0
        tail = [f"{last_us} {name} close" for name in self.sizes]
        return "\n".join([FIRST_LINE, *head, *lines, *tail, ""])


@dataclass(frozen=True, eq=False)
class Moved:
    """Transfers by known files, in the order in which they began; arrays of one length."""

    start_ns: Whole
    paths: Sequence[str]
    reads: NDArray[np.bool_]
    begin: Whole
    end: Whole


def moved(trace: Trace) -> Moved:
    rows = transfers(trace)
    rows = rows[np.argsort(trace.start_ns[rows], kind="stable")]
    begins, reading = trace.place[rows], among(trace, READS)[rows]
    ends = begins + trace.result[rows]
    paths = [trace.files[file] for file in trace.file[rows].tolist()]
    return Moved(trace.start_ns[rows], paths, reading, begins, ends)


def log_of(trace: Trace) -> Log:
    found = moved(trace)
    names: dict[str, str] = {}
    columns = (found.start_ns // NS_PER_TICK, found.reads, found.begin, found.end - found.begin)
    moves = [
        Move(tick, names.setdefault(path, f"f{len(names)}"), reads, begin, length)
        for path, tick, reads, begin, length in zip(found.paths, *(c.tolist() for c in columns), strict=True)
    ]
    return Log(moves, trace.events - len(moves))


@dataclass(frozen=True)
class Fio:
    """A log that was played: what fio says."""

    said: Mapping[str, Any]

    @property
    def calls(self) -> int:
        (job,) = self.said["jobs"]
        return int(job["read"]["total_ios"] + job["write"]["total_ios"])

    @property
    def run_s(self) -> float:
        """Of the job alone, in its own milliseconds: fio takes some tenths of a second to start and to end."""
        (job,) = self.said["jobs"]
        return float(job["job_runtime"]) / 1e3


def stage(log: Log, directory: Path) -> Path:
    """The log in a new directory, with files as they have to be; returns its path."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    for name, size in log.sizes.items():
        with (directory / name).open("wb") as file:
            file.write(bytes(size))
    path = directory / "log"
    path.write_text(log.text)
    os.sync()
    return path


def play(path: Path, recorded: Sequence[str] = (), environment: Mapping[str, str] | None = None) -> Fio:
    """Once, by ordinary reads and writes; `recorded` are the words before it that record it."""
    fio = ["fio", "--name=log", "--ioengine=psync", f"--read_iolog={path.name}", "--output-format=json"]
    words = [*recorded, *fio]
    said = printed(words, path.parent, environment, preexec_fn=as_many_files_as_allowed)
    # Remarks may stand before the document.
    return Fio(json.loads(said[said.index("{") :]))


def as_many_files_as_allowed() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def fio_row(workload: Workload, trace: Trace, place: Place, rounds: int) -> Row:
    """fio on the data calls, warm, without its start; files are as large as they get, and open from the beginning."""
    what = f"run time, fio read_iolog / original: {workload.what}; warm"
    if shutil.which("fio") is None:
        return shown(what, "–", "fio is not installed")
    log = log_of(trace)
    if workload.parallel or log.calls == 0:
        why = "several threads or processes: fio plays one log by one job" if log.calls else "no data calls"
        return shown(what, "–", f"not possible ({why})")
    path = place.directory / "fio"

    def played() -> float:
        found = play(stage(log, path))
        if found.calls != log.calls:
            sys.exit(f"bench: fio made {found.calls} of {log.calls} calls of {workload.name}")
        return found.run_s

    found = interleave({"original": lambda: original(workload, place), "fio": played}, rounds)
    shutil.rmtree(path)
    share = f"{log.calls:,} data calls of {trace.events:,}"
    return shown(what, f"original; {share}", fine(ratios(found["fio"], found["original"])))


LEAD_US = 200_000
"""Until the first call is due: all files are open by then."""
CALLS = 2_500
FILES = 500
"""That tar reads: all of them are open at a time."""
SHARE_OF_FIO = 0.1
ABSOLUTE = ("--timing", "absolute")


@dataclass(frozen=True)
class Chance:
    """Reads and writes of 4 KiB here and there in one file, at random times."""

    calls: int
    mean_gap_us: int = 200
    blocks: int = 16_384


def schedule_rows(place: Place, size: Size, rounds: int) -> list[Row]:
    """One schedule that leaves time, and one as close as tar's."""
    calls, few = min(size.rows, CALLS), replace(size, files=min(size.files, FILES))
    random_times = f"{calls:,} reads and writes of 4 KiB at random times"
    return [
        schedule_row(random_times, by_chance(Chance(calls)), place, rounds),
        schedule_row(f"data calls of tar of {few.files:,} files", of_tar(place, few), place, rounds),
    ]


def by_chance(what: Chance, seed: int = 1) -> Log:
    """As requests come: the time between two is exponential."""
    generator, tick, moves = random.Random(seed), 0.0, []
    for _ in range(what.calls):
        tick += generator.expovariate(1 / what.mean_gap_us)
        begin = 4096 * generator.randrange(what.blocks)
        moves.append(Move(int(tick), "f0", generator.random() < 0.5, begin, 4096))
    return due(Log(moves))


def of_tar(place: Place, size: Size) -> Log:
    original(tar(place.directory, size), place, place.trace)
    return due(log_of(read_trace(place.trace)))


def due(log: Log) -> Log:
    """The first call as late as all files need to be opened before it."""
    first = log.moves[0].tick_us
    return Log([replace(move, tick_us=move.tick_us - first + LEAD_US) for move in log.moves], log.left_out)


def script_of(log: Log) -> str:
    """The same as a script: in absolute time, calls of no duration begin at the sum of what is computed before."""
    descriptors = {name: number for number, name in enumerate(log.sizes, 3)}
    lines = [f'file "{name}" {size}' for name, size in log.sizes.items()]
    lines += [f'openat(AT_FDCWD, "{name}", O_RDWR) = {fd} <0.0>' for name, fd in descriptors.items()]
    now = 0
    for move in log.moves:
        if move.tick_us > now:
            lines.append(f"compute({(move.tick_us - now) / 1e6:.6f})")
            now = move.tick_us
        call = "pread64" if move.reads else "pwrite64"
        lines.append(f"{call}({descriptors[move.file]}, {move.bytes}, {move.begin}) = {move.bytes} <0.0>")
    return "\n".join(["etude script 1", *lines, ""])


def schedule_row(what: str, log: Log, place: Place, rounds: int) -> Row:
    what = f"start-time error against the schedule, 99 % below, absolute mode, warm: {what}"
    if shutil.which("fio") is None:
        return shown(what, "–", "fio is not installed")
    place.script.write_text(script_of(log))
    made_roll(place)
    medians: dict[str, list[float]] = {"etude": [], "fio": []}

    def measured(name: str, play_it: Callable[[Path], object]) -> Callable[[], float]:
        def once() -> float:
            play_it(place.trace)
            errors = start_errors(log, place.trace)
            medians[name].append(float(np.median(errors)))
            return float(np.percentile(errors, 99))

        return once

    parties = {
        "etude": measured("etude", lambda trace: replayed(place, trace, options=ABSOLUTE)),
        "fio": measured("fio", lambda trace: recorded_fio(log, place, trace)),
    }
    found = interleave(parties, rounds)
    ratio = ratios(found["etude"], found["fio"])
    ours, peers = (told(spread(found[name]), spread(medians[name])) for name in ("etude", "fio"))
    reach = (f"≤ {SHARE_OF_FIO:g} × fio's", ratio.median <= SHARE_OF_FIO)
    return Row(what, f"fio read_iolog: {peers}", f"{ours}; {ratio} × fio's", *reach)


def told(high: Spread, median: Spread) -> str:
    """In microseconds, from nanoseconds."""
    low, middle, top = (value / 1e3 for value in (high.low, high.median, high.high))
    return f"{middle:.3g} µs (quartiles {low:.3g}–{top:.3g}; median of calls {median.median / 1e3:.3g})"


def recorded_fio(log: Log, place: Place, trace: Path) -> None:
    path = stage(log, place.directory / "fio")
    settle(path.parent, cold=False)
    play(path, recorder(place, trace), place.environment())
    shutil.rmtree(path.parent)


def start_errors(log: Log, trace: Path) -> Whole:
    """Of each call, ns; the recording must hold the calls of the log, and no other on its files."""
    found = moved(read_trace(trace))
    own = np.array([Path(path).name in log.sizes for path in found.paths], bool)
    lengths = (found.end - found.begin)[own].tolist()
    made = list(zip(found.begin[own].tolist(), lengths, found.reads[own].tolist(), strict=True))
    asked = [(move.begin, move.bytes, move.reads) for move in log.moves]
    if made != asked:
        others = f"not the {len(asked)} of the schedule in their order"
        sys.exit(f"bench: {trace.name} has {len(made)} transfers, {others}")
    return errors_of(found.start_ns[own], np.array([move.tick_us for move in log.moves]) * NS_PER_TICK)


def errors_of(start_ns: Whole, due_ns: Whole) -> Whole:
    """How far from its time each call began, by the first one, ns."""
    found: Whole = np.abs((start_ns - start_ns[0]) - (due_ns - due_ns[0]))
    return found
