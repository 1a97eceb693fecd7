"""HdrHistograms as text: version 2 of their encoding, compressed by zlib, in base64 (they all begin with `HISTFA`).

A histogram counts whole numbers in classes of width 1 up to a bound given by its significant digits; beyond it the
width doubles each time the values double. The bytes are

    compressed   0x1c849314, length of what follows; zlib of
    plain        0x1c849313, length of the counts, normalising offset (0), significant digits,
                 lowest and highest value (8 bytes each), conversion ratio (a double, 1.0)
    counts       class after class; a negative number stands for that many empty classes

with numbers big-endian, and the counts ZigZag in little-endian groups of seven bits, of which a ninth has eight.
Source: the format of HdrHistogram 2.x (Java, C, Rust, Python, Go write it); tests/data/histograms.json. Read here
and not by the Python package, which is a C extension with a build tool among its dependencies, for what 40 lines do.
"""

from __future__ import annotations

import base64
import binascii
import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Whole = NDArray[np.int64]

COMPRESSED, PLAIN = 0x1C849304, 0x1C849303
_WORD_SIZE = 0xF0  # bits of either number that old versions kept the size of a word in
_OUTER, _INNER = struct.Struct(">II"), struct.Struct(">IIIIqqd")
_MAX_BYTES = 1 << 24
_MAX_VALUE = (1 << 63) - 1


class Histogram(NamedTuple):
    """Non-empty classes of a histogram, in rising order."""

    values: Whole
    """The largest value of each class, shape (classes,): the value that HdrHistogram's own tools print
    for a percentile."""
    counts: Whole
    """Shape (classes,)."""


class BadHistogram(ValueError):
    """Invalid text of a histogram, with the reason in one line."""


def joined(histograms: Sequence[Histogram]) -> Histogram:
    """One histogram of at least one: each class counts as its largest value."""
    values, place = np.unique(np.concatenate([each.values for each in histograms]), return_inverse=True)
    counts = np.zeros(len(values), dtype=np.int64)
    np.add.at(counts, place, np.concatenate([each.counts for each in histograms]))
    return Histogram(values, counts)


def decode(text: str) -> Histogram:
    """The classes of a histogram in compressed base64.

    Raises:
        BadHistogram: it is invalid, truncated, or of an unsupported kind (of fractions, of another version).
    """
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise BadHistogram("it is not base64") from None
    plain = _inflated(data)
    if len(plain) < _INNER.size:
        raise BadHistogram("it is cut short within its head")
    cookie, length, offset, digits, lowest, highest, ratio = _INNER.unpack_from(plain)
    if cookie & ~_WORD_SIZE != PLAIN:
        raise BadHistogram(f"it begins with {cookie:#010x}: it is of another version than 2")
    if offset != 0 or ratio != 1.0:
        raise BadHistogram(
            "it is one of shifted or scaled values; only those of whole numbers as they are are read"
        )
    if len(plain) - _INNER.size != length:
        raise BadHistogram(f"its counts are {len(plain) - _INNER.size} bytes long, its header has {length}")
    layout = _layout(lowest, highest, digits)
    values, counts = [], []
    place = 0
    for number in _numbers(plain[_INNER.size :]):
        if number > 0:
            values.append(layout.largest(place))
            counts.append(number)
        place += -number if number < 0 else 1
        if place > layout.classes:
            raise BadHistogram(f"it has more classes than values up to {highest} need")
    return Histogram(np.array(values, dtype=np.int64), np.array(counts, dtype=np.int64))


def encode(
    values: ArrayLike,
    counts: ArrayLike | None = None,
    *,
    digits: int = 3,
    lowest: int = 1,
    highest: int | None = None,
) -> str:
    """A histogram of whole numbers from 0 to `highest` (default: their largest), as compressed base64.

    values, counts: shape (n,) each, in any order; without counts every value counts once.
    digits: significant digits, 1 to 5. lowest: the smallest value that must differ from 0, at least 1.
    Raises ValueError: values that cannot be counted.
    """
    whole = _whole(values, "values")
    times = np.ones_like(whole) if counts is None else _whole(counts, "counts")
    if times.size != whole.size:
        raise ValueError(f"{whole.size} values need as many counts, not {times.size}")
    most = max([2 * lowest, *whole.tolist()])
    layout = _layout(lowest, most if highest is None else highest, digits)
    if layout.place(most) >= layout.classes:
        raise ValueError(f"{most} is above the highest value, {layout.highest}")
    held: dict[int, int] = {}
    for value, count in zip(whole.tolist(), times.tolist(), strict=True):
        if count:
            place = layout.place(value)
            held[place] = held.get(place, 0) + count
    payload, done = bytearray(), 0
    for place in sorted(held):
        if place > done:
            payload += _zigzag(done - place if place - done > 1 else 0)
        payload += _zigzag(held[place])
        done = place + 1
    payload = payload or bytearray(_zigzag(0))
    head = _INNER.pack(PLAIN | 0x10, len(payload), 0, digits, layout.lowest, layout.highest, 1.0)
    packed = zlib.compress(head + bytes(payload))
    return base64.b64encode(_OUTER.pack(COMPRESSED | 0x10, len(packed)) + packed).decode("ascii")


class _Layout(NamedTuple):
    lowest: int
    highest: int
    unit: int
    """Bits that all values are shifted down by: the resolution."""
    half: int
    """Logarithm of half the number of classes of equal width."""
    classes: int

    def largest(self, place: int) -> int:
        bucket, step = (place >> self.half) - 1, (place & ((1 << self.half) - 1)) + (1 << self.half)
        if bucket < 0:
            bucket, step = 0, step - (1 << self.half)
        return ((step + 1) << (bucket + self.unit)) - 1

    def place(self, value: int) -> int:
        scaled = value >> self.unit
        bucket = max(0, scaled.bit_length() - self.half - 1)
        return (bucket << self.half) + (scaled >> bucket)


def _layout(lowest: int, highest: int, digits: int) -> _Layout:
    if not (1 <= digits <= 5 and 1 <= lowest <= highest // 2):
        raise BadHistogram(
            f"values from {lowest} to {highest} with {digits} significant digits cannot be counted: digits are 1 to 5, "
            "the lowest is 1 or more, the highest at least twice that"
        )
    unit = lowest.bit_length() - 1
    half = (2 * 10**digits - 1).bit_length() - 1
    if highest > _MAX_VALUE or unit + half > 61:
        raise BadHistogram(f"values from {lowest} to {highest} do not fit into 64 bits")
    layout = _Layout(lowest, highest, unit, half, 0)
    last = layout.place(highest)
    return layout._replace(classes=(last | ((1 << half) - 1)) + 1)


def _inflated(data: bytes) -> bytes:
    if len(data) < _OUTER.size:
        raise BadHistogram("it is cut short within its head")
    cookie, length = _OUTER.unpack_from(data)
    if cookie & ~_WORD_SIZE != COMPRESSED:
        raise BadHistogram(f"it begins with {cookie:#010x}: it is not a compressed histogram of version 2")
    if len(data) - _OUTER.size != length:
        raise BadHistogram(f"it is {len(data) - _OUTER.size} bytes long, its header has {length}")
    inflating = zlib.decompressobj()
    try:
        plain = inflating.decompress(data[_OUTER.size :], _MAX_BYTES)
    except zlib.error:
        raise BadHistogram("its bytes are damaged: they cannot be decompressed") from None
    if not inflating.eof:
        large = len(plain) >= _MAX_BYTES
        raise BadHistogram(f"it is larger than {_MAX_BYTES >> 20} MiB" if large else "it is cut short")
    return plain


def _numbers(data: bytes) -> Iterator[int]:
    """The counts, and skipped classes as negative numbers."""
    number, shift = 0, 0
    for byte in data:
        if shift == 56:
            number |= byte << 56
        else:
            number |= (byte & 0x7F) << shift
            if byte & 0x80:
                shift += 7
                continue
        yield (number >> 1) ^ -(number & 1)
        number, shift = 0, 0
    if shift:
        raise BadHistogram("it is cut short within a count")


def _zigzag(number: int) -> bytes:
    rest = number << 1 if number >= 0 else (-number << 1) - 1
    found = bytearray()
    while rest > 0x7F and len(found) < 8:
        found.append((rest & 0x7F) | 0x80)
        rest >>= 7
    found.append(rest)
    return bytes(found)


def _whole(x: ArrayLike, name: str) -> Whole:
    found = np.asarray(x)
    if found.size == 0:
        return np.empty(0, dtype=np.int64)
    if (
        found.ndim != 1
        or found.dtype.kind not in "iu"
        or int(found.min()) < 0
        or int(found.max()) > _MAX_VALUE
    ):
        raise ValueError(f"the {name} of a histogram are one row of whole numbers, 0 or more")
    return found.astype(np.int64)
