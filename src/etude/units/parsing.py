"""Quantities as text: durations, sizes, rates, bandwidths and shares, in one grammar for options, scripts and files.

A quantity is a number and a unit: `4 min`, `64K`, `10 MB/s`, `5 %`. The crate `engine/core/quantity` is the same
grammar; `tests/data/vectors/quantities.jsonl` holds both to it, and docs/reference/quantities.md describes it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple


class QuantityError(ValueError):
    """A text that is no such quantity: one line with the text and what is expected, without where it is from."""


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
MINUTE, HOUR, DAY = Unit("s", 60), Unit("s", 3600), Unit("s", 86400)
KIBIBYTE, MEBIBYTE = Unit("B", 2**10), Unit("B", 2**20)

_TIMES: Mapping[Unit, str] = {
    SECOND: "s sec secs second seconds",
    MILLISECOND: "ms msec msecs millisecond milliseconds",
    MICROSECOND: "us µs μs usec usecs microsecond microseconds",
    NANOSECOND: "ns nsec nsecs nanosecond nanoseconds",
    MINUTE: "min mins minute minutes",
    HOUR: "h hr hour hours",
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
    PER_SECOND: "Hz IOPS iops rps RPS qps QPS tps TPS",
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

# Only where the kind is known: in a heading, or in a value of any kind, m and d could be anything.
_DURATIONS = TIME | _by_name({MINUTE: "m", DAY: "d day days"})
_SHARES = _by_name({ONE: "1", Unit("1", over=100): "% percent Percent pct"})
_HERTZ = {name: unit for name, unit in _SIMPLE.items() if name.endswith("Hz")}
_LETTERS = {
    letter: Unit("B", 1024**n) for n, letters in enumerate(("kK", "M", "G", "T"), 1) for letter in letters
}

_MOST_TEXT = 64
MOST_BYTES = 2**63 - 1
_NUMBER = r"[+-]?(?:[0-9]+(?:_[0-9]+)*(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?"
_QUANTITY = re.compile(rf"\s*({_NUMBER})\s*(\S(?:.*\S)?)?\s*", re.DOTALL)
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"\s*[+-]?[0-9]+(?:_[0-9]+)*\s*")
_PARTS = re.compile(r"([0-9]*)\.?([0-9]*)(?:e([+-]?[0-9]+))?")
_CLOCK = re.compile(r"\s*(?:([0-9]{1,4})-)?([0-9]{1,4}):([0-5][0-9]):([0-5][0-9])\s*")
_PREFIXED_SIZE = re.compile(r"([kmgt])(i?)(b?)", re.IGNORECASE)
_BITS = re.compile(r"([kmgt]?)bit(?:s?/s|/sec|/second)?", re.IGNORECASE)
_PREFIXES = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9}


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


def duration(text: str, *, bare: str | None = "s") -> float:
    """Seconds, 0 or more: `500ms`, `90s`, `4 min`, `2h`, `1-12:00:00`; `m` is minutes.

    bare: the unit of a number without one; None: it needs one. Raises QuantityError.
    """
    clock = _CLOCK.fullmatch(text)
    if clock:
        days, hours, minutes, seconds = (float(part or 0) for part in clock.groups())
        return 86400 * days + 3600 * hours + 60 * minutes + seconds
    expected = "a duration such as 500ms, 90s, 4min or 2h" + (
        ", or a number of seconds" if bare == "s" else ""
    )
    return _value(text, _DURATIONS.get, bare, expected)


def size(text: str, *, bare: str | None = "B", least: int = 1) -> int:
    """Bytes, from `least` to 2^63 - 1: `4096`, `64K`, `64KiB` (powers of 1024), `64kB` (powers of 1000), in any case.

    A fraction of a byte is dropped. bare: as of `duration`. Raises QuantityError.
    """
    expected = "a size such as 4096, 64K or 64KiB (powers of 1024) or 64kB (of 1000)"
    number, unit = _split(text, _size_unit, bare, expected)
    found = _whole(number, unit)
    if found > MOST_BYTES:
        raise QuantityError(f"{_shown(text)}: expected at most {MOST_BYTES} B")
    if found < least:
        raise QuantityError(f"{_shown(text)}: expected {least} B or more")
    return found


def share(text: str, *, bare: str | None = "1") -> float:
    """A fraction, 0 or more: `5%`, `5 %`, `0.05`. bare: as of `duration`; `%` where a number alone is percent.

    Raises:
        QuantityError: it is none.
    """
    such = {"1": "such as 5% or 0.05", "%": "in percent such as 95 or 95%"}.get(bare or "", "such as 5%")
    return _value(text, _SHARES.get, bare, f"a share {such}")


def rate(text: str, *, bare: str | None = "1/s") -> float:
    """Events per second: `200`, `5k`, `200/s`, `90 requests/min`; k, M and G are powers of 1000.

    bare: as of `duration`. Raises QuantityError.
    """
    return _value(text, _rate_unit, bare, "a rate such as 200/s, 5k/s or 90/min")


def bandwidth(text: str, *, sizes: bool = False) -> float:
    """Bytes a second: `10MB/s`, `10MiB/s`, `100mbit`, `1Gbit/s`.

    sizes: a size alone is one a second. Raises QuantityError.
    """
    unit = (lambda name: _bandwidth_unit(name) or _size_unit(name)) if sizes else _bandwidth_unit
    return _value(text, unit, "B" if sizes else None, "a bandwidth such as 10MB/s, 10MiB/s or 100mbit")


def quantity(text: str) -> tuple[float, str | None] | None:
    """A quantity of any kind, in its base unit: `5ms` as 0.005 and s, `64K` as 65536 and B, `3` as itself and None.

    None for what is none, and for units that only a known kind decides: `m` (minutes, or mega) and `d`.
    """
    match = _QUANTITY.fullmatch(text) if len(text) < _MOST_TEXT else None
    if match is None:
        return None
    value, name = float(match[1]), match[2]
    unit = Unit("") if name is None else _LETTERS.get(name) or unit_of(name) or _rate_unit(name)
    found = math.inf if unit is None else unit.of(value)
    return (found, unit.base or None) if unit is not None and math.isfinite(found) else None


def whole_in(text: str) -> int | None:
    """The whole number in a text, without a unit; None for anything else, also for digits that are not ASCII."""
    return int(text) if len(text) < _MOST_TEXT and _WHOLE.fullmatch(text) else None


def number_in(text: str) -> float | None:
    """The finite number in a text, without a unit; None for anything else."""
    text = text.strip()
    if len(text) > 400 or not _DECIMAL.fullmatch(text):
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def duration_text(seconds: float) -> str:
    """The duration in the largest unit of which it is a whole number: `7 d`, `90 min`; below 1 s in ms."""
    for unit, name in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min")):
        if seconds and seconds % unit.times == 0:
            return f"{seconds / unit.times:g} {name}"
    return f"{seconds:g} s" if seconds >= 1 else f"{1e3 * seconds:g} ms"


def size_text(value: int) -> str:
    """The size in the largest unit of which it is a whole number: `16KiB`, `1536B`."""
    for n, letter in ((4, "T"), (3, "G"), (2, "M"), (1, "K")):
        if value and value % 1024**n == 0:
            return f"{value // 1024**n}{letter}iB"
    return f"{value}B"


UnitOf = Callable[[str], Unit | None]


def _value(text: str, unit_named: UnitOf, bare: str | None, expected: str) -> float:
    number, unit = _split(text, unit_named, bare, expected)
    found = unit.of(float(number))
    if not math.isfinite(found):
        raise QuantityError(f"{_shown(text)}: expected less")
    return found


def _split(text: str, unit_named: UnitOf, bare: str | None, expected: str) -> tuple[str, Unit]:
    """The number, which is 0 or more, and the unit."""
    match = _QUANTITY.fullmatch(text) if len(text) < _MOST_TEXT else None
    name = match[2] or bare if match else None
    unit = None if name is None else unit_named(name)
    if match is None or unit is None or match[1].startswith("-"):
        raise QuantityError(f"{_shown(text)}: expected {expected}")
    return match[1].lstrip("+").replace("_", ""), unit


def _whole(number: str, unit: Unit) -> int:
    """Rounded down, and exact: a float has 53 bits."""
    match = _PARTS.fullmatch(number.lower())
    assert match is not None, number
    exponent = int(match[3] or 0) - len(match[2])
    value = int(match[1] + match[2]) * unit.times
    scale: int = 10 ** abs(exponent)
    return value * scale if exponent >= 0 else value // scale


def _shown(text: str) -> str:
    return repr(text[:_MOST_TEXT]) + "…" * (len(text) > _MOST_TEXT)


def _size_unit(name: str) -> Unit | None:
    if name in SIZE:
        return SIZE[name]
    match = _PREFIXED_SIZE.fullmatch(name)
    if match is None or (match[2] and not match[3]):
        return None
    base = 1000 if match[3] and not match[2] else 1024
    return Unit("B", base ** " kmgt".index(match[1].lower()))


def _rate_unit(name: str) -> Unit | None:
    above, slash, below = (part.strip() for part in name.partition("/"))
    time = TIME.get(below if slash else "s")
    times = 1 if slash and above in _OPERATION else _PREFIXES.get(above)
    if time is None or times is None:
        return _HERTZ.get(name)
    return Unit("1/s", times * time.over, time.times)


def _bandwidth_unit(name: str) -> Unit | None:
    bits = _BITS.fullmatch(name)
    if bits:
        return Unit("B/s", 1000 ** " kmgt".index(bits[1].lower() or " "), 8)
    above, _, below = (part.strip() for part in name.partition("/"))
    amount, time = _size_unit(above) if above else None, TIME.get(below)
    return Unit("B/s", amount.times * time.over, time.times) if amount and time else None
