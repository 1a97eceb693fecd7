"""stress-ng: `--metrics -Y FILE`; runs may be appended."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from etude.results.readers.source import read_lines
from etude.results.table import Quantity, Rows, Table
from etude.units.parsing import KIBIBYTE, NANOSECOND, ONE, PER_SECOND, PERCENT, SECOND, Unit, number_in

NAME = "stress-ng"

_ITEM = re.compile(r"    - stressor: +(?P<name>\S+)")
_MEMBER = re.compile(r"      (?P<name>[a-zA-Z0-9][^:]*): +(?P<value>[-+0-9.eE]+)")
_METRICS: Mapping[str, tuple[str, Unit]] = {
    "bogo-ops": ("operations", ONE),
    "bogo-ops-per-second-real-time": ("operation_rate", PER_SECOND),
    "bogo-ops-per-second-usr-sys-time": ("operation_rate_of_cpu_time", PER_SECOND),
    "wall-clock-time": ("elapsed", SECOND),
    "user-time": ("user", SECOND),
    "system-time": ("system", SECOND),
    "cpu-usage-per-instance": ("cpu", PERCENT),
    "max-rss": ("peak_memory", KIBIBYTE),
}


def detect(path: Path, head: bytes) -> bool:
    return b"stress-ng-version:" in head and head.lstrip().startswith(b"---")


def read(path: Path) -> Table:
    rows, test = Rows(path), ""
    metrics: dict[str, Quantity] = {}
    lines, _ = read_lines(path)
    for line in map(str.rstrip, lines):
        if test and (member := _MEMBER.fullmatch(line)):
            name, unit = _named(member["name"])
            metrics[name] = Quantity(number_in(member["value"]), unit)
        elif test and line.startswith("      "):
            rows.warn(f"{line.strip().partition(':')[0][:100]}: what is no number is left out")
        elif not line.startswith("      "):  # end of a stressor: an empty line, or the next one
            if metrics:
                rows.add(test, metrics)
            item = _ITEM.fullmatch(line)
            test, metrics = item["name"] if item else "", {}
    if test:
        rows.warn("a stressor that was cut short is left out")
    return rows.table()


def _named(name: str) -> tuple[str, Unit]:
    """Name and unit of a stressor's metric, whose name may end in its unit."""
    if name in _METRICS:
        return _METRICS[name]
    ours = name.replace("-", "_")
    if name.endswith(("-per-sec", "-per-second")):
        return ours, PER_SECOND
    return ours, NANOSECOND if name.startswith(("nanosec", "nsec")) else ONE
