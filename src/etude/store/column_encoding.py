"""How values, times and sessions are kept in a column, the same in every database."""

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


class Damaged(ValueError):
    """A row is not what was written into it."""


@contextmanager
def rows_of(what: str) -> Iterator[None]:
    """Whatever goes wrong while rows are decoded is damage to them: `what` names them."""
    try:
        yield
    except Damaged:
        raise
    except (OSError, *EDITED) as error:
        raise Damaged(f"{what}: {error}") from None


def pack(values: Sequence[float]) -> bytes:
    """Doubles in little-endian order."""
    return struct.pack(f"<{len(values)}d", *values)


def unpack(packed: bytes) -> tuple[float, ...]:
    """What `pack` was given. Raises ValueError for bytes of another length."""
    if len(packed) % 8:
        raise ValueError(f"{len(packed)} bytes are no whole number of doubles")
    return struct.unpack(f"<{len(packed) // 8}d", packed)


def run_length_encode(numbers: Sequence[int]) -> str:
    """`1,1,1,2` as `1x3 2x1`: so many in a row are the same."""
    return " ".join(f"{number}x{sum(1 for _ in run)}" for number, run in groupby(numbers))


@lru_cache(4096)  # in most entries they are the same
def run_length_decode(text: str, most: int) -> tuple[int, ...]:
    """What `run_length_encode` was given, of at most so many numbers. Raises ValueError for anything else."""
    found: list[int] = []
    for run in text.split():
        number, _, count = run.partition("x")
        if not 0 <= int(count) <= most - len(found):
            raise ValueError(f"{count} more sessions than trials")
        found += [int(number)] * int(count)
    return tuple(found)


def to_us(time: datetime) -> int:
    """Microseconds since 1970, UTC; a time without a zone is taken as UTC."""
    known = time if time.tzinfo else time.replace(tzinfo=UTC)
    return (known - _BEGIN) // _MICROSECOND


def of_us(microseconds: int) -> datetime:
    """The time, UTC."""
    return datetime.fromtimestamp(microseconds / 1e6, UTC)  # exact: 53 bits of microseconds are 285 years


def key(*words: str | None) -> str:
    """SHA-256 of some texts, in hexadecimal."""
    return hashlib.sha256(json.dumps(words).encode()).hexdigest()


def clean(text: str) -> str:
    """A text that every database takes: what is no character of Unicode, and NUL, become `\\ufffd`."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
