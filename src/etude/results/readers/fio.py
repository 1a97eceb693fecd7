"""fio: JSON (`json`, `json+`), terse lines, its normal text; and its logs of single operations."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from etude.errors import InputError
from etude.results.readers.fio_terse import is_terse, read_terse
from etude.results.readers.fio_text import is_text, read_text
from etude.results.readers.source import (
    documents,
    head_of,
    items,
    members,
    number,
    text_of,
    whole,
)
from etude.results.table import Quantity, Rows, Table
from etude.units.parsing import (
    BYTE,
    BYTES_PER_SECOND,
    KIBIBYTE,
    MICROSECOND,
    MILLISECOND,
    NANOSECOND,
    ONE,
    PER_SECOND,
    PERCENT,
    Unit,
    number_in,
)

_LINE = r"[0-9]+, [0-9]+, [012], [0-9]+(?:, (?:[0-9]+|0x[0-9a-f]+)){0,4}"
_LINES = re.compile(rf"(?:{_LINE}\n)+".encode())
_FIELDS = re.compile(_LINE)
_NAME = re.compile(r"(?P<test>.*)_(?P<what>slat|clat|lat|bw|iops)(?:\.(?P<job>[0-9]{1,9}))?\.log")
_DIRECTIONS = ("read", "write", "trim")
_METRICS = {"slat": "submission", "clat": "completion", "lat": "elapsed", "bw": "throughput", "iops": "iops"}
_UNITS: dict[str, Unit] = {"bw": KIBIBYTE._replace(base="B/s"), "iops": PER_SECOND}


def is_log(head: bytes) -> bool:
    """True if a file with these first bytes is a log."""
    return _LINES.fullmatch(head[: head.rfind(b"\n") + 1]) is not None


def read_log(path: Path) -> Table:
    """One row per line. Reads, writes and trims are tests of their own; the number in the file's name is the worker.

    Raises:
        InputError: the name does not indicate the kind of values.
    """
    match = _NAME.fullmatch(path.name)
    if match is None:
        raise InputError(
            f"{path}: is a log of fio, whose name must show the meaning of its values: expected a name that ends in "
            "_lat.log, _clat.log, _slat.log, _bw.log or _iops.log, with a number before .log or not"
        )
    rows, what, job = Rows(path), match["what"], int(match["job"] or 1)
    lines = rows.lines()
    for line in lines:
        if not _FIELDS.fullmatch(line):
            rows.warn("a line that is no entry of a log is left out")
            continue
        _, value, direction, size, *rest = line.split(", ")
        # Nanoseconds from fio 3 on, which also always writes an offset.
        unit = _UNITS.get(what) or (NANOSECOND if rest else MICROSECOND)
        rows.add(
            match["test"] or rows.test,
            {_METRICS[what]: Quantity(number_in(value), unit)},
            worker=max(0, job - 1),
            parameters={"direction": _DIRECTIONS[int(direction)]},
            attributes={"bs": size},
        )
    return rows.table()


NAME = "fio"

_OPTIONS = ("rw", "bs", "iodepth", "ioengine", "numjobs", "size", "direct")
_OF_DIRECTION: Mapping[str, tuple[str, Unit, str | None]] = {
    "bw_bytes": ("throughput", BYTES_PER_SECOND, None),
    "iops": ("iops", PER_SECOND, None),
    "io_bytes": ("bytes", BYTE, "count"),
    "total_ios": ("operations", ONE, None),
    "runtime": ("runtime", MILLISECOND, None),
}
_OF_JOB: Mapping[str, tuple[str, Unit, str | None]] = {
    "job_runtime": ("elapsed", MILLISECOND, None),
    "usr_cpu": ("user_cpu", PERCENT, None),
    "sys_cpu": ("system_cpu", PERCENT, None),
    "ctx": ("context_switches", ONE, None),
    "majf": ("major_faults", ONE, None),
    "minf": ("minor_faults", ONE, None),
}
_LATENCIES = {"slat": "submission", "clat": "completion", "lat": "latency"}
_FIGURES = {"mean": "mean", "min": "minimum", "max": "maximum", "stddev": "deviation"}


def detect(path: Path, head: bytes) -> bool:
    return _is_json(head) or any(detects(head) for detects, _ in _OTHERS)


def read(path: Path) -> Table:
    head = head_of(path)
    other = next((reads for detects, reads in _OTHERS if not _is_json(head) and detects(head)), None)
    return _of_json(path) if other is None else other(path)


_OTHERS = ((is_terse, read_terse), (is_text, read_text), (is_log, read_log))


def _is_json(head: bytes) -> bool:
    return re.search(rb'\{\s*"fio version"\s*:', head) is not None


def _of_json(path: Path) -> Table:
    rows = Rows(path)
    wrong = 'what fio writes: expected a document with "fio version"'
    for run, document in enumerate(documents(path, r'\{\s*"fio version"\s*:', wrong, rows.warn), 1):
        jobs = items(document.get("jobs")) or items(document.get("client_stats"))
        seen: Counter[str] = Counter()
        for job in map(members, jobs):
            name = text_of(job.get("jobname", "?"))
            if name != "All clients":
                _job(rows, run, name, seen[name], job, members(document.get("global options")))
                seen[name] += 1
    return rows.table()


def _job(rows: Rows, run: int, name: str, worker: int, job: dict[str, Any], common: dict[str, Any]) -> None:
    options = common | members(job.get("job options"))
    status = whole(job.get("error"))
    if status:
        rows.warn(f"{name}: ended with error {status} and is not kept")
    metrics = dict(_named(job, _OF_JOB))
    for direction in ("read", "write", "trim"):
        part = members(job.get(direction))
        if number(part.get("total_ios")) or number(part.get("io_bytes")):
            metrics |= {f"{direction}_{metric}": q for metric, q in _direction(part)}
    rows.add(
        name,
        metrics,
        trial=run,
        worker=worker,
        status=status,
        kept=not status,
        parameters={o: text_of(options[o]) for o in _OPTIONS if o in options},
    )


def _named(
    part: Mapping[str, Any], table: Mapping[str, tuple[str, Unit, str | None]]
) -> Iterator[tuple[str, Quantity]]:
    for theirs, (ours, unit, kind) in table.items():
        if theirs in part:
            yield ours, Quantity(number(part[theirs]), unit, kind)


def _direction(part: Mapping[str, Any]) -> Iterator[tuple[str, Quantity]]:
    yield from _named(part, _OF_DIRECTION)
    for theirs, ours in _LATENCIES.items():
        # Nanoseconds from fio 3 on, microseconds before; the name has the unit.
        for key, unit in ((f"{theirs}_ns", NANOSECOND), (theirs, MICROSECOND)):
            latency = members(part.get(key))
            if latency.get("N", 1) == 0 or not number(latency.get("max")):
                continue  # was not measured: fio writes zeros
            for figure, name in _FIGURES.items():
                if figure in latency:
                    yield f"{ours}_{name}", Quantity(number(latency[figure]), unit)
            for percent, value in members(latency.get("percentile")).items():
                short = percent.rstrip("0").rstrip(".") if "." in percent else percent
                yield f"{ours}_p{short}", Quantity(number(value), unit)
            break
