"""fio's terse lines (`--output-format=terse`, `--minimal`), of versions 2 to 5: one line per job,
fields by position."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from etude.results.table import Quantity, Rows, Table
from etude.units.parsing import KIBIBYTE, MICROSECOND, MILLISECOND, ONE, PER_SECOND, PERCENT, Unit, number_in

_LINE = re.compile(rb"(?m)^(?:2;[^;\n]+|[345];fio-[^;\n]+;[^;\n]*);[0-9]+;[0-9]+;(?:[0-9.]+;){10}")
_START = re.compile(r"(?:2;|(?P<version>[345]);fio-[^;]*;)(?P<rest>[^;]*;[0-9]+;[0-9]+;.*)")
_BEGINNING = re.compile(r"[345];fio-")
_DIRECTIONS = ("read", "write", "trim")
_AMOUNTS: tuple[tuple[str, Unit, str | None], ...] = (
    ("bytes", KIBIBYTE, "count"),
    ("throughput", KIBIBYTE._replace(base="B/s"), None),
    ("iops", PER_SECOND, None),
    ("runtime", MILLISECOND, None),
)
_FIGURES = ("minimum", "maximum", "mean", "deviation")
_PERCENTILES = 20
_BANDWIDTH = {"2": 5, "3": 5, "4": 5, "5": 11}
"""Number of fields on bandwidth and on operations per second at the end of each direction."""
_OF_JOB = (
    ("user_cpu", PERCENT),
    ("system_cpu", PERCENT),
    ("context_switches", ONE),
    ("major_faults", ONE),
    ("minor_faults", ONE),
)


def is_terse(head: bytes) -> bool:
    """True if a file with these first bytes has such a line."""
    return _LINE.search(head) is not None


def read_terse(path: Path) -> Table:
    """One row per job. A repeated name is another worker, as with `numjobs`: terse lines do not separate runs."""
    rows, seen = Rows(path), Counter[str]()
    lines = rows.lines()
    for line in lines:
        match = _START.fullmatch(line) if len(line) < 100_000 else None
        if match is None:
            if _BEGINNING.match(line):
                rows.warn("a line that begins as one of a job and is none is left out")
            continue
        name, _, error, *fields = match["rest"].split(";")
        metrics = _metrics(fields, match["version"] or "2")
        if metrics is None:
            rows.warn("a line with too few fields is left out")
            continue
        status = int(error[:9])
        if status:
            rows.warn(f"{name}: ended with error {status} and is not kept")
        rows.add(name, metrics, trial=1, worker=seen[name], status=status, kept=not status)
        seen[name] += 1
    for name, count in seen.items():
        if count > 1:
            rows.warn(
                f"{name}: {count} lines are taken as jobs of one run: terse lines do not distinguish runs"
            )
    return rows.table()


def _metrics(fields: list[str], version: str) -> dict[str, Quantity] | None:
    each = 4 + 4 + 4 + _PERCENTILES + 4 + _BANDWIDTH[version]
    directions = next((n for n in (3, 2) if len(fields) > n * each and fields[n * each].endswith("%")), 0)
    job = fields[directions * each :]
    if not directions or len(job) < len(_OF_JOB):
        return None
    metrics = {n: Quantity(number_in(t.rstrip("%")), u) for (n, u), t in zip(_OF_JOB, job, strict=False)}
    for place, direction in enumerate(_DIRECTIONS[:directions]):
        part = fields[place * each : (place + 1) * each]
        if number_in(part[0]):
            metrics |= {f"{direction}_{name}": q for name, q in _direction(part).items()}
    return metrics


def _direction(part: list[str]) -> dict[str, Quantity]:
    found = {n: Quantity(number_in(t), u, k) for (n, u, k), t in zip(_AMOUNTS, part, strict=False)}
    for start, name in ((4, "submission"), (8, "completion"), (12 + _PERCENTILES, "latency")):
        texts = part[start : start + 4]
        if number_in(texts[1]):  # it was not measured if even the largest is 0
            found |= {f"{name}_{f}": _time(t) for f, t in zip(_FIGURES, texts, strict=True)}
    for text in part[12 : 12 + _PERCENTILES]:
        percent, _, time = text.partition("%=")
        if number_in(percent):  # 0 means none
            found[f"completion_p{percent.rstrip('0').rstrip('.')}"] = _time(time)
    return found


def _time(text: str) -> Quantity:
    return Quantity(number_in(text), MICROSECOND)
