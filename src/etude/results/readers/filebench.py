"""The summary that filebench prints after a run; runs may be appended."""

from __future__ import annotations

import re
from pathlib import Path

from etude.results.table import Quantity, Rows, Table
from etude.units.parsing import MEBIBYTE, MICROSECOND, MILLISECOND, ONE, PER_SECOND, number_in

NAME = "filebench"

_N = r"([0-9]+(?:\.[0-9]+)?)"
# 1.5: 1234 ops 123.4 ops/s 12/34 rd/wr 5.6mb/s 0.789ms/op
_NEW = re.compile(rf".*IO Summary:\s+{_N} ops,? {_N} ops/s,? {_N}/{_N} rd/wr,?\s+{_N}mb/s,?\s+{_N}ms/op\s*")
# 1.4: 1234 ops, 123.4 ops/s, (12/34 r/w), 5.6mb/s, 78us cpu/op, 9.0ms latency
_OLD = re.compile(
    rf".*IO Summary:\s+{_N} ops,?\s+{_N} ops/s,?\s+\({_N}/{_N} r/w\),?\s+{_N}mb/s,?"
    rf"\s+{_N}us cpu/op,?\s+{_N}ms latency\s*"
)
_RATE = MEBIBYTE._replace(base="B/s")


def detect(path: Path, head: bytes) -> bool:
    return b"IO Summary:" in head and b"ops/s" in head and b"mb/s" in head


def read(path: Path) -> Table:
    rows = Rows(path)
    lines = rows.lines()
    for line in lines:
        match = (_NEW.fullmatch(line) or _OLD.fullmatch(line)) if len(line) < 10_000 else None
        if match is not None:
            _add(rows, [number_in(text) for text in match.groups()])
        elif "IO Summary:" in line:
            rows.warn("a summary in a form that is not known is left out")
        elif "NO VALID RESULTS" in line:
            rows.warn("a run that ended early has no results")
    return rows.table()


def _add(rows: Rows, values: list[float | None]) -> None:
    operations, rate, reads, writes, throughput, *rest = values
    cpu = {"cpu_per_operation": Quantity(rest[0], MICROSECOND)} if len(rest) == 2 else {}
    rows.add(
        rows.test,
        {
            "operations": Quantity(operations, ONE),
            "operation_rate": Quantity(rate, PER_SECOND),
            "read_rate": Quantity(reads, PER_SECOND),
            "write_rate": Quantity(writes, PER_SECOND),
            "throughput": Quantity(throughput, _RATE),
            "latency_mean": Quantity(rest[-1], MILLISECOND),
            **cpu,
        },
    )
