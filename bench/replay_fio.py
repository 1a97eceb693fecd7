"""The peer fio: a trace's data calls as its log of version 3, played in a directory with files as large as it needs.

Such a log has reads and writes with offsets and times, and no more; fio plays it by one job.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from etude.iotrace.calls import READS
from etude.iotrace.files import files_of, processes_of
from etude.iotrace.places import transfers
from etude.iotrace.read import Trace, read_trace

FIRST_LINE = "fio version 3 iolog"
NS_PER_TICK = 1000
"""fio 3.33 writes and reads microseconds."""


@dataclass(frozen=True)
class Log:
    """The log, how large its files (`f0`, `f1` …) have to be before, and what it holds."""

    text: str
    sizes: Mapping[str, int]
    calls: int
    bytes: int
    left_out: int
    """Calls of the trace that such a log cannot have."""


def log_of(trace: Trace) -> Log:
    """All transfers by known files, in the order in which they began."""
    files = files_of(trace, processes_of(trace))
    rows, begins, ends = transfers(trace, files)
    order = np.argsort(trace.start_ns[rows], kind="stable")
    rows, begins, ends = rows[order], begins[order], ends[order]
    reading = np.isin(trace.call[rows], [n for n, name in enumerate(trace.names) if name in READS])
    ticks = (trace.start_ns[rows] // NS_PER_TICK).tolist()
    names: dict[int, str] = {}
    sizes: dict[str, int] = {}
    lines = []
    columns = (ticks, files.file[rows].tolist(), reading.tolist(), begins.tolist(), ends.tolist())
    for tick, file, reads, begin, end in zip(*columns, strict=True):
        name = names.setdefault(file, f"f{len(names)}")
        sizes[name] = max(sizes.get(name, 0), end)
        lines.append(f"{tick} {name} {'read' if reads else 'write'} {begin} {end - begin}")
    head = [f"0 {name} {action}" for action in ("add", "open") for name in names.values()]
    # fio waits before each line until the time of that line.
    tail = [f"{ticks[-1] if ticks else 0} {name} close" for name in names.values()]
    text = "\n".join([FIRST_LINE, *head, *lines, *tail, ""])
    return Log(text, sizes, len(lines), int((ends - begins).sum()), trace.events - len(lines))


@dataclass(frozen=True)
class Fio:
    """A log that was played: how long all of fio took, and what it says."""

    wall_s: float
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


def play(path: Path) -> Fio:
    """Once, by ordinary reads and writes."""
    words = ["fio", "--name=log", "--ioengine=psync", f"--read_iolog={path.name}", "--output-format=json"]
    begin = time.perf_counter()
    done = subprocess.run(words, cwd=path.parent, capture_output=True, text=True)
    wall_s = time.perf_counter() - begin
    if done.returncode:
        sys.exit(f"bench: {' '.join(words)} failed ({done.returncode}): {done.stderr.strip()[-300:]}")
    # Remarks may stand before the document.
    return Fio(wall_s, json.loads(done.stdout[done.stdout.index("{") :]))


def log_of_path(path: Path) -> Log:
    """The same of a trace on disk."""
    return log_of(read_trace(path))
