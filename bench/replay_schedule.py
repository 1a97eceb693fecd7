"""How far from its schedule a replay begins each call, in absolute time, beside fio: both recorded by `etude record`.

Both play the same reads and writes on files that are open before the first one is due. The error of a call is its start
less that of the first one, against the same by the schedule: what begins too early counts as what is too late.
"""

from __future__ import annotations

import random
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from etude.iotrace.reader import Whole, read_trace
from replay_fio import NS_PER_TICK, Log, Move, log_of, moved, play, stage
from replay_programs import Size, tar
from replay_steps import Place, made_roll, original, recorder, replayed, settle
from rows import Row, Spread, interleave, ratios, shown, spread

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
    """As it was recorded."""
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
    """Pairs of a replay and of fio, in random order."""
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
    """fio on the same files, warm, recorded."""
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
