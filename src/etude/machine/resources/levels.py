"""Levels of resources as text: sizes, CPUs, rates. An invalid level is an InputError that states what was expected."""

from __future__ import annotations

import re

from etude.errors import InputError
from etude.machine.tree import cpu_ranges
from etude.units import parsing
from etude.units.parsing import QuantityError

UNLIMITED = "max"
"""Level that leaves a resource unchanged."""

_DECIMAL = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_CPUS = re.compile(r"[0-9]+(?:-[0-9]+)?(?:,[0-9]+(?:-[0-9]+)?)*,?")
MAX_CPUS = 8192
"""Maximum of any kernel: CONFIG_NR_CPUS."""


def size(text: str) -> int:
    """Bytes of `512M`."""
    try:
        return parsing.size(text)
    except QuantityError as error:
        raise InputError(f"size {error}") from None


def bytes_per_s(text: str) -> int:
    """Bytes per second of `10M`, `10M/s` or `10MB/s`."""
    try:
        found = int(parsing.bandwidth(text, sizes=True))
    except QuantityError as error:
        raise InputError(f"rate {error}") from None
    if found < 1:
        raise InputError(f"rate {text!r}: expected 1 B/s or more")
    return found


def count(text: str, least: int = 1) -> int:
    """A whole number."""
    if not re.fullmatch(r"[0-9]{1,9}", text.strip()) or int(text) < least:
        raise InputError(f"number {text!r}: expected a whole number, at least {least}")
    return int(text)


def share_of_cpus(text: str) -> float:
    """CPUs as a decimal: 0.5 is half of one. The kernel has no slice below 1 ms of 100 ms."""
    if not _DECIMAL.fullmatch(text.strip()) or not 0.01 <= float(text) <= MAX_CPUS:
        raise InputError(f"CPUs {text!r}: expected a decimal number, at least 0.01, as 0.5")
    return float(text)


def cpus(text: str, allowed: list[int] | None = None) -> list[int]:
    """The CPUs of `2`, the first two that are allowed, or of the list `0,2-3`; a list of one is written `2,` or `2-2`.

    Without `allowed` there is no bound on the number of CPUs.
    """
    text = text.strip().replace(" ", "")
    if not _CPUS.fullmatch(text):
        raise InputError(f"CPUs {text!r}: expected how many, as 2, or a list, as 0,2-3")
    if text.isdigit():
        number = count(text)
        if number > (MAX_CPUS if allowed is None else len(allowed)):
            many = MAX_CPUS if allowed is None else len(allowed)
            raise InputError(f"{text} CPUs: expected at most {many}")
        return (allowed or list(range(number)))[:number]
    chosen: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        low, high = int(first), int(last or first)
        if not low <= high < MAX_CPUS:
            raise InputError(f"CPUs {text!r}: {part} is no range of CPUs")
        chosen.update(range(low, high + 1))
    if allowed is not None and (absent := sorted(chosen - set(allowed))):
        raise InputError(f"CPUs {text!r}: CPU {absent[0]} is not there; there are {cpu_ranges(allowed)}")
    return sorted(chosen)


def bits_per_s(text: str) -> float:
    """Bits per second of `10mbit`, `10 Mbit/s` or `10 MB/s`."""
    try:
        found = 8 * parsing.bandwidth(text)
    except QuantityError as error:
        raise InputError(f"rate {error}") from None
    if found < 8:
        raise InputError(f"rate {text!r}: expected 8 bit/s or more, as 10mbit")
    return found


def tc_time(text: str) -> str:
    """A duration in the format of tc, which has no minutes: `10ms`."""
    try:
        us = round(1e6 * parsing.duration(text, bare=None))
    except QuantityError as error:
        raise InputError(f"time {error}") from None
    return f"{us}us" if us % 1000 else f"{us // 1000}ms"
