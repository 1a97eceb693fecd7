"""The text output of fio 3 (`--output-format=normal`, its default): figures are rounded."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from etude.errors import InputError
from etude.results.readers.source import read_lines
from etude.results.table import Quantity, Rows, Table
from etude.units.parsing import (
    BYTE,
    MICROSECOND,
    MILLISECOND,
    NANOSECOND,
    ONE,
    PER_SECOND,
    PERCENT,
    Unit,
    number_in,
)

_STARTED = re.compile(r"fio-[0-9]\S*")
_JOB = re.compile(r"(?P<name>.*): \(groupid=[0-9]+, jobs=(?P<jobs>[0-9]+)\): err= *(?P<error>[0-9]{1,9})\b.*")
_DIRECTION = re.compile(
    r" +(?P<what>read|write|trim): IOPS=(?P<iops>[^,]+), BW=(?P<bandwidth>[^ ]+) \([^)]*\)"
    r"\((?P<size>[^/]+)/(?P<runtime>[0-9]+)msec\).*"
)
_LATENCY = re.compile(
    r" +(?P<what>slat|clat|lat) \((?P<unit>[num]sec)\): "
    r"min= *(?P<minimum>[^,]+), max= *(?P<maximum>[^,]+), avg= *(?P<mean>[^,]+), stdev= *(?P<deviation>\S+)"
)
_PERCENTILES = re.compile(r" +(?P<what>slat|clat|lat) percentiles \((?P<unit>[num]sec)\):")
_PERCENTILE = re.compile(r"([0-9.]+)th=\[ *([0-9]+)\]")
_CPU = re.compile(
    r" +cpu +: usr=(?P<user_cpu>[0-9.]+)%, sys=(?P<system_cpu>[0-9.]+)%, "
    r"ctx=(?P<context_switches>[0-9]+), majf=(?P<major_faults>[0-9]+), minf=(?P<minor_faults>[0-9]+)"
)
_ISSUED = re.compile(r" +issued rwts?: total=(?P<read>[0-9]+),(?P<write>[0-9]+),(?P<trim>[0-9]+),.*")
_QUANTITY = re.compile(r"(?P<number>[0-9.]+)(?P<prefix>[kKMGTP]?)(?P<unit>i?B|B|)(?:/s)?")
_UNITS = {"nsec": NANOSECOND, "usec": MICROSECOND, "msec": MILLISECOND}
_LATENCIES = {"slat": "submission", "clat": "completion", "lat": "latency"}
_FIGURES = ("mean", "minimum", "maximum", "deviation")


def is_text(head: bytes) -> bool:
    """True if a file with these first bytes is such a report."""
    return b": (groupid=" in head and b": err=" in head


def read_text(path: Path) -> Table:
    """One row per job, or per group of jobs with `group_reporting`, of each run in turn.

    A name repeated within one run is another worker.
    """
    rows, seen = Rows(path), Counter[str]()
    lines, cut = read_lines(path)
    job: _Job | None = None
    run = 0
    for line in (line for line in lines if len(line) < 2000):
        if _STARTED.fullmatch(line):
            _end(rows, job, seen, run)
            job, run, seen = None, run + 1, Counter()
        elif match := _JOB.fullmatch(line):
            _end(rows, job, seen, run)
            job = _Job(match["name"], match["jobs"], int(match["error"]))
        elif job is not None:
            job.take(line)
    _end(rows, job, seen, run)
    if cut:
        rows.warn("a last line that was cut short is left out")
    if not len(rows):
        raise InputError(
            f"{path}: holds no whole job of fio 3; use --output-format=json, which every version has"
        )
    rows.warn("fio rounds the figures of its normal output; --output-format=json has all digits")
    return rows.table()


@dataclass
class _Job:
    name: str
    jobs: str
    status: int
    metrics: dict[str, Quantity] = field(default_factory=dict)
    direction: str = ""
    listed: tuple[str, Unit] | None = None
    """Name and unit of the percentiles in the next lines."""
    whole: bool = False

    def take(self, line: str) -> None:
        """Add one more line of the job; `issued` is the last relevant one."""
        if match := _DIRECTION.fullmatch(line):
            self.direction = match["what"]
            found = {
                "throughput": _scaled(match["bandwidth"], Unit("B/s")),
                "iops": _scaled(match["iops"], PER_SECOND),
                "bytes": _scaled(match["size"], BYTE)._replace(kind="count"),
                "runtime": Quantity(number_in(match["runtime"]), MILLISECOND),
            }
            self.metrics |= {f"{self.direction}_{name}": q for name, q in found.items()}
        elif (match := _LATENCY.fullmatch(line)) and self.direction:
            name, unit = f"{self.direction}_{_LATENCIES[match['what']]}", _UNITS[match["unit"]]
            self.metrics |= {f"{name}_{figure}": _scaled(match[figure], unit) for figure in _FIGURES}
        elif match := _PERCENTILES.fullmatch(line):
            self.listed = f"{self.direction}_{_LATENCIES[match['what']]}", _UNITS[match["unit"]]
        elif self.listed and line.lstrip().startswith("|"):
            self.metrics |= dict(_percentiles(line, *self.listed))
        elif match := _CPU.fullmatch(line):
            units = {"user_cpu": PERCENT, "system_cpu": PERCENT}
            self.metrics |= {
                n: Quantity(number_in(t), units.get(n, ONE)) for n, t in match.groupdict().items()
            }
        elif match := _ISSUED.fullmatch(line):
            counts = {n: number_in(t) for n, t in match.groupdict().items()}
            self.metrics |= {f"{n}_operations": Quantity(c, ONE) for n, c in counts.items() if c}
            self.whole = True


def _percentiles(line: str, name: str, unit: Unit) -> Iterator[tuple[str, Quantity]]:
    for percent, value in _PERCENTILE.findall(line):
        short = percent.rstrip("0").rstrip(".") if "." in percent else percent
        yield f"{name}_p{short}", Quantity(number_in(value), unit)


def _scaled(text: str, unit: Unit) -> Quantity:
    """`11.2MiB/s`, `541kB`, `12.3k`: prefixes of bytes with an i are powers of 1024, all others of 1000."""
    match = _QUANTITY.fullmatch(text.strip())
    if match is None:
        return Quantity(None, unit)
    power = " kMGTP".index(match["prefix"].replace("K", "k") or " ")
    base = 1024 if match["unit"] == "iB" else 1000
    return Quantity(number_in(match["number"]), unit._replace(times=unit.times * base**power))


def _end(rows: Rows, job: _Job | None, seen: Counter[str], run: int) -> None:
    if job is None:
        return
    if not job.whole and not job.status:
        rows.warn(f"{job.name}: a job that was cut short is left out")
        return
    if job.status:
        rows.warn(f"{job.name}: ended with error {job.status} and is not kept")
    rows.add(
        job.name,
        job.metrics,
        trial=max(1, run),
        worker=seen[job.name],
        status=job.status,
        kept=not job.status,
        parameters={"jobs": job.jobs},
    )
    seen[job.name] += 1
