"""Changes of bench/fuzz.py to a valid input: of bytes, numbers, words, lines, parts of another one."""

from __future__ import annotations

import gzip
import random
import re
import sqlite3
from collections.abc import Sequence
from contextlib import suppress

import zstandard

WORD = re.compile(rb"[\w.$%]+")
NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
ODD = (
    b"0", b"-1", b"1e999", b"-0.0", b"nan", b"inf", b"9223372036854775808", b"18446744073709551616", b"9" * 400,
    b"5e-324", b"0x1F", b"null", b"true", b"[]", b"{}", b'""', b"\xff", b"\\ud800", b"\0", b"\r\n", b"\xef\xbb\xbf",
    b"\xe2\x80\xa8", b"%", b"$", b"*", b"/", b"..", b"[" * 3000, b"(" * 3000, b'{"a":' * 3000, b"a" * 70000, b"#", b"=",
)  # fmt: skip
GZIP, ZSTD, SQLITE = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"SQLite format 3\0"


def near(pattern: re.Pattern[bytes], text: bytes, at: random.Random) -> tuple[int, int]:
    """Where the pattern is next found behind some place."""
    found = pattern.search(text, at.randrange(len(text) + 1)) or pattern.search(text)
    return found.span() if found else (0, 0)


def line_at(text: bytes, at: random.Random) -> tuple[int, int]:
    begin = text.rfind(b"\n", 0, at.randrange(len(text) + 1)) + 1
    end = text.find(b"\n", begin)
    return begin, len(text) if end < 0 else end + 1


def mild(text: bytes, others: Sequence[bytes], at: random.Random) -> bytes:
    """One change after which most formats can still be read: another number, or a word of another place."""
    pattern = at.choice((NUMBER, NUMBER, WORD))
    begin, end = near(pattern, text, at)
    if pattern is WORD:
        other = at.choice((text, at.choice(others)))
        return text[:begin] + other[slice(*near(WORD, other, at))] + text[end:]
    digits = bytes(at.choice(b"123456789") if 48 <= each < 58 else each for each in text[begin:end])
    return text[:begin] + at.choice((digits, digits[:1], digits + b"0")) + text[end:]


def changed_once(text: bytes, others: Sequence[bytes], at: random.Random) -> bytes:
    """One change."""
    how = at.randrange(20)
    if how >= 12:
        return mild(text, others, at)
    if how < 2:
        place, long = at.randrange(len(text) + 1), at.choice((0, 1, 1, 2, 8))
        return text[:place] + at.randbytes(at.choice((0, 1, 1, 2, 4))) + text[place + long :]
    if how < 5:
        begin, end = near(NUMBER, text, at)
        return (
            text[:begin] + at.choice((*ODD, b"%d" % at.randrange(-9, 99), text[begin:end] * 3)) + text[end:]
        )
    if how < 8:
        begin, end = near(WORD, text, at)
        other = at.choice(others)
        first, last = near(WORD, other, at)
        plain = (
            other[first:last],
            text[slice(*near(WORD, text, at))],
            b"",
            text[begin:end] + b" " + other[first:last],
        )
        return text[:begin] + at.choice((*plain, at.choice(ODD))) + text[end:]
    if how < 10:
        begin, end = line_at(text, at)
        line = at.choice((b"", text[begin:end] * 2, text[slice(*line_at(text, at))], b"\n"))
        return text[:begin] + line + text[end:]
    if how == 10:
        return text[: at.randrange(len(text) + 1)]
    other = at.choice(others)
    first = at.randrange(len(other) + 1)
    return text[: at.randrange(len(text) + 1)] + other[first : first + at.choice((10, 1000, 100000))]


def changed(text: bytes, others: Sequence[bytes], at: random.Random) -> bytes:
    """A few changes; of what is compressed mostly within, of a database mostly in a value."""
    inside = at.random() < 0.8
    with suppress(OSError, EOFError, zstandard.ZstdError, sqlite3.Error):
        if inside and text.startswith(GZIP):
            return gzip.compress(changed(gzip.decompress(text), others, at), 1)
        if inside and text.startswith(ZSTD):
            plain = zstandard.ZstdDecompressor().decompressobj().decompress(text)
            return zstandard.compress(changed(plain, others, at), 1)
        if inside and text.startswith(SQLITE):
            return changed_value(text, others, at)
    for _ in range(at.choice((1, 1, 1, 2, 4))):
        text = changed_once(text, others, at)
    return text


def changed_value(database: bytes, others: Sequence[bytes], at: random.Random) -> bytes:
    """Another value in one place of one table."""
    with sqlite3.connect(":memory:") as found:
        found.deserialize(database)
        found.execute("pragma ignore_check_constraints = on")
        tables = [
            name
            for (name,) in found.execute("select name from sqlite_master where type = 'table' order by 1")
        ]
        table = at.choice(tables)
        columns = [row[1] for row in found.execute(f'pragma table_info("{table}")')]
        column = at.choice(columns)
        row = found.execute(
            f'select rowid, "{column}" from "{table}" limit 1 offset ?', [at.randrange(20)]
        ).fetchone()
        if row:
            old = row[1] if isinstance(row[1], bytes) else str(row[1]).encode()
            new: object = changed_once(old, others, at)
            new = at.choice((new, new.decode(errors="replace"), None, -1, 1e308, 2**62))  # type: ignore[attr-defined]
            found.execute(f'update "{table}" set "{column}" = ? where rowid = ?', [new, row[0]])
        found.commit()
        return found.serialize()
