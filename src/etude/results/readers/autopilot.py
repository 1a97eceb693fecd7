"""Auto-pilot's `.res`: text in blocks, with a row for each `[measurement]`."""

from __future__ import annotations

import re
from pathlib import Path

from etude.results.model import Measurement, metric_kind
from etude.results.readers.source import number
from etude.results.res import read_res
from etude.results.table import Quantity, Rows, Table
from etude.units.parsing import Unit

NAME = "autopilot"

_HEADER = re.compile(rb"(?m)^\[measurement\]\r?$")


def detect(path: Path, head: bytes) -> bool:
    if _HEADER.search(head) and not head.lstrip().startswith(b"{"):
        return True
    # Snapshots of a machine may be longer than the head.
    return path.suffix == ".res" and re.search(rb"(?m)^\[[\w.:+-]+\]\r?$", head) is not None


def read(path: Path) -> Table:
    results = read_res(path)
    rows = Rows(path)
    for entry in results.experiment.get("left_out", ()):
        rows.warn(f"line {entry['line']}: the measurement block there is left out: {entry['reason']}")
    for measurements in results.measurements.values():
        for measurement in measurements:
            add_measurement(rows, measurement)
    return rows.table()


def add_measurement(rows: Rows, m: Measurement) -> None:
    """Add one of our measurements as a row."""
    metrics = {}
    for name, (value, stated, *_) in m.metrics.items():
        if value is not None:
            metrics[name] = Quantity(number(value), Unit(stated), metric_kind(name, stated).kind)
    if not m.kept:
        rows.warn(f"trial {m.trial} is not kept: {m.why}")
    status = m.exit_status if m.signal is None else 128 + m.signal
    rows.add(
        m.test,
        metrics,
        trial=m.trial,
        worker=m.worker,
        command=m.command_line,
        kept=m.kept,
        status=status if status is None or abs(status) < 2**31 else None,
    )
