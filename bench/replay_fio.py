"""The peer fio: a trace's data calls as its log of version 3, played in a directory with files as large as it needs.

Such a log has reads and writes with offsets and times, and no more; fio plays it by one job.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from etude.iotrace.calls import READS
from etude.iotrace.files import files_of, processes_of
from etude.iotrace.profile import transfers
from etude.iotrace.reader import Trace, Whole
from replay_pairs import fine
from replay_programs import Workload
from replay_steps import Place, original, printed
from rows import Row, interleave, ratios, shown

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
        """That these move."""
        return sum(move.bytes for move in self.moves)

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """How large its files have to be before."""
        found: dict[str, int] = {}
        for move in self.moves:
            found[move.file] = max(found.get(move.file, 0), move.begin + move.bytes)
        return found

    @property
    def text(self) -> str:
        """As fio reads it."""
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
    """All of a trace."""
    files = files_of(trace, processes_of(trace))
    rows, begins, ends = transfers(trace, files)
    order = np.argsort(trace.start_ns[rows], kind="stable")
    rows, begins, ends = rows[order], begins[order], ends[order]
    reading = np.isin(trace.call[rows], [n for n, name in enumerate(trace.names) if name in READS])
    paths = [files.names[file] for file in files.file[rows].tolist()]
    return Moved(trace.start_ns[rows], paths, reading, begins, ends)


def log_of(trace: Trace) -> Log:
    """Of what a program moved."""
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
        """That fio made."""
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
    """All files of a log are open at a time."""
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
