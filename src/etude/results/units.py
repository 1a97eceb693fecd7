"""Units as other programs write them, and the base unit that each is kept in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple


class Unit(NamedTuple):
    """A value in it is `value * times / over` in the base unit. Both factors are whole, so that 1.5 ms is 0.0015 s."""

    base: str
    times: int = 1
    over: int = 1

    def of(self, value: float) -> float:
        """The value in the base unit; infinite where that is too large for a number."""
        return value * self.times / self.over


ONE, SECOND, BYTE, PERCENT = Unit("1"), Unit("s"), Unit("B"), Unit("%")
PER_SECOND, BYTES_PER_SECOND = Unit("1/s"), Unit("B/s")
MILLISECOND, MICROSECOND, NANOSECOND = Unit("s", over=10**3), Unit("s", over=10**6), Unit("s", over=10**9)
KIBIBYTE, MEBIBYTE = Unit("B", 2**10), Unit("B", 2**20)

_TIMES: Mapping[Unit, str] = {
    SECOND: "s sec secs second seconds",
    MILLISECOND: "ms msec msecs millisecond milliseconds",
    MICROSECOND: "us µs μs usec usecs microsecond microseconds",
    NANOSECOND: "ns nsec nsecs nanosecond nanoseconds",
    Unit("s", 60): "min mins minute minutes",
    Unit("s", 3600): "h hr hour hours",
}
_SIZES: Mapping[Unit, str] = {
    BYTE: "B byte bytes Byte Bytes",
    **{Unit("B", 1000**n): f"{p}B {p.lower()}B {p.lower()}b" for n, p in enumerate("KMGT", 1)},
    **{Unit("B", 1024**n): f"{p}iB {p.lower()}iB {p.lower()}ib" for n, p in enumerate("KMGT", 1)},
    Unit("B", 10**3, 1): "KB kB kb kilobyte kilobytes Kilobytes",
    Unit("B", 10**6, 1): "MB mb megabyte megabytes Megabytes",
    Unit("B", 10**9, 1): "GB gb gigabyte gigabytes Gigabytes",
}
_OTHERS: Mapping[Unit, str] = {
    ONE: "1 count",
    PERCENT: "% percent Percent pct",
    PER_SECOND: "Hz",
    Unit("1/s", 10**3): "kHz",
    Unit("1/s", 10**6): "MHz",
    Unit("1/s", 10**9): "GHz",
    Unit("J"): "J Joules joules",
}


def _by_name(*tables: Mapping[Unit, str]) -> dict[str, Unit]:
    return {name: unit for table in tables for unit, names in table.items() for name in names.split()}


TIME = _by_name(_TIMES)
SIZE = _by_name(_SIZES)
_SIMPLE = _by_name(_TIMES, _SIZES, _OTHERS)
_COUNTED = "op operation iter iteration call req request event item transaction query run alloc allocation"
_OPERATION = frozenset(word for name in _COUNTED.split() for word in (name, f"{name}s", "queries", "1"))
_QUOTIENT = re.compile(r"\s*(\S+?)\s*(?:/|\s+per\s+)\s*(\S+?)\s*")


def unit_of(text: str) -> Unit | None:
    """The unit that the text names; None for one that is not known.

    Sizes: kB, KB, MB, GB are powers of 1000; KiB, MiB, GiB of 1024. What is said of one operation (`ns/op`,
    `B/op`) is that amount; anything countable by a time is a rate.
    """
    text = text.strip()
    simple = _SIMPLE.get(text)
    if simple is not None:
        return simple
    match = _QUOTIENT.fullmatch(text) if len(text) < 100 else None
    if match is None:
        return None
    above, below = match.groups()
    if below in _OPERATION:
        return ONE if above in _OPERATION else TIME.get(above) or SIZE.get(above)
    time = TIME.get(below)
    if time is None:
        return None
    if above in SIZE:
        return Unit("B/s", SIZE[above].times * time.over, time.times)
    return Unit("1/s", time.over, time.times) if above in _OPERATION else None


def unit_kept(text: str) -> Unit:
    """What a value in the unit that the text names is kept in: the base unit, unless that differs in name alone, as
    `req/s` does from `1/s`; the unit itself where it is not known."""
    known = unit_of(text)
    return Unit(text) if known is None or known.times == known.over else known


def kind_of(unit: str) -> str:
    """The kind of a metric of which no more is known than its base unit."""
    if unit == "ratio":
        return "ratio"
    if unit.endswith("/s"):
        return "rate"
    return (
        "count" if unit in ("1", "%") else "cost"
    )  # shares of a whole: neither better high nor low by themselves


_BRACKETS = re.compile(r"(?P<name>.*\S)\s*[(\[]\s*(?P<unit>[^()\[\]]+?)\s*[)\]]\s*", re.DOTALL)
_SUFFIX = re.compile(r"(?P<name>.*[^_])_(?P<unit>[A-Za-z]+)", re.DOTALL)
_AFTER_UNDERSCORE = frozenset(name for name in (*TIME, *SIZE, "pct", "percent") if name not in ("B", "h"))


def heading(text: str) -> tuple[str, Unit | None]:
    """Name and unit of a column: `time (ms)`, `time [ms]` or `time_ms`; the text itself where it names no unit."""
    text = text.strip()
    match = _BRACKETS.fullmatch(text) if len(text) < 200 else None
    if match is not None and unit_of(match["unit"]) is not None:
        return match["name"].strip(), unit_of(match["unit"])
    match = _SUFFIX.fullmatch(text) if len(text) < 200 else None
    if match is not None and match["unit"] in _AFTER_UNDERSCORE:
        return match["name"], unit_of(match["unit"])
    return text, None
