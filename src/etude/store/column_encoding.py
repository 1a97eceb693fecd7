"""Encoding of values, times and sessions in columns, the same for every database."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import groupby

from etude.errors import EDITED

_BEGIN = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class CorruptRow(ValueError):
    """A row is corrupt."""


@contextmanager
def rows_of(what: str) -> Iterator[None]:
    """Turns any error in decoding rows into `CorruptRow`; `what` names the rows."""
    try:
        yield
    except CorruptRow:
        raise
    except (OSError, *EDITED) as error:
        raise CorruptRow(f"{what}: {error}") from None


def pack(values: Sequence[float]) -> bytes:
    """Doubles in little-endian order."""
    return struct.pack(f"<{len(values)}d", *values)


def unpack(packed: bytes) -> tuple[float, ...]:
    """Inverse of `pack`. Raises ValueError for an invalid length."""
    if len(packed) % 8:
        raise ValueError(f"{len(packed)} bytes are no whole number of doubles")
    return struct.unpack(f"<{len(packed) // 8}d", packed)


def run_length_encode(numbers: Sequence[int]) -> str:
    """Run-length encoding: `1,1,1,2` as `1x3 2x1`."""
    return " ".join(f"{number}x{sum(1 for _ in run)}" for number, run in groupby(numbers))


@lru_cache(4096)  # most entries have the same text
def run_length_decode(text: str, most: int) -> tuple[int, ...]:
    """Inverse of `run_length_encode`, of at most `most` numbers. Raises ValueError if invalid."""
    found: list[int] = []
    for run in text.split():
        number, _, count = run.partition("x")
        if not 0 <= int(count) <= most - len(found):
            raise ValueError(f"{count} more sessions than trials")
        found += [int(number)] * int(count)
    return tuple(found)


def to_us(time: datetime) -> int:
    """Microseconds since 1970, UTC; a time without a zone counts as UTC."""
    known = time if time.tzinfo else time.replace(tzinfo=UTC)
    return (known - _BEGIN) // _MICROSECOND


def from_us(microseconds: int) -> datetime:
    """The time, UTC."""
    return datetime.fromtimestamp(microseconds / 1e6, UTC)  # exact: 53 bits of microseconds are 285 years


def key(*words: str | None) -> str:
    """SHA-256 of some texts, in hexadecimal."""
    return hashlib.sha256(json.dumps(words).encode()).hexdigest()


def clean(text: str) -> str:
    """A text valid in every database: NUL and invalid Unicode characters become `\\ufffd`."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
