"""The tables of the store (docs/reference/formats.md, "The store"). Those on disk are made by `migrations`."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)

REVISION = "0003"
"""The newest revision, which this Étude reads and writes."""
VERSION_TABLE = "etude_version"

METADATA = MetaData()
_KEY = String(64)
"""SHA-256 of a unique key, in hexadecimal: PostgreSQL's indexes hold no text of more than 2.7 kB."""


def _number() -> Column[int]:
    return Column("id", Integer, primary_key=True)


def _of(table: str) -> Column[int]:
    return Column(f"{table}_id", Integer, ForeignKey(f"{table}.id", ondelete="CASCADE"), nullable=False)


machine = Table(
    "machine",
    METADATA,
    _number(),
    Column("key", _KEY, nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("facts", Text, nullable=False),
)
test = Table(
    "test",
    METADATA,
    _number(),
    Column("key", _KEY, nullable=False, unique=True),
    Column("name", Text, nullable=False),
)
metric = Table(
    "metric",
    METADATA,
    _number(),
    Column("key", _KEY, nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("unit", Text, nullable=False),
    Column("kind", Text, nullable=False),
)
result = Table(
    "result",
    METADATA,
    _number(),
    Column("origin", _KEY, nullable=False, unique=True),
    Column("content", _KEY, nullable=False),
    Column("source", Text, nullable=False),
    Column("trials", Integer, nullable=False),
    Column("measured_us", BigInteger, nullable=False),
    Column("added_us", BigInteger, nullable=False),
    Column("commit_id", Text, index=True),
    Column("committed_us", BigInteger),
    Column("branch", Text),
    sqlite_autoincrement=True,  # a number is never reused
)
tag = Table(
    "tag",
    METADATA,
    Column("result_id", Integer, ForeignKey("result.id", ondelete="CASCADE"), primary_key=True),
    Column("word", Text, primary_key=True, index=True),
)
entry = Table(
    "entry",
    METADATA,
    _number(),
    _of("result"),
    _of("test"),
    _of("metric"),
    _of("machine"),
    Column("measured_us", BigInteger, nullable=False),
    Column("count", Integer, nullable=False),
    Column("mean", Float(53), nullable=False),
    Column("deviation", Float(53)),
    Column("median", Float(53), nullable=False),
    Column("lowest", Float(53), nullable=False),
    Column("highest", Float(53), nullable=False),
    Column("trials", LargeBinary, nullable=False),
    Column("sittings", Text, nullable=False),
    Column("command", Text),
    Index("entry_of_test", "test_id", "metric_id"),
    Index("entry_of_result", "result_id"),
)
mark = Table(
    "mark",
    METADATA,
    _number(),
    Column("key", _KEY, nullable=False, unique=True),
    Column("test", Text, nullable=False),
    Column("metric", Text),
    Column("commit_id", Text, nullable=False),
    Column("why", Text, nullable=False),
    Column("marked_us", BigInteger, nullable=False),
)
note = Table(
    "note",
    METADATA,
    Column("name", String(200), primary_key=True),
    Column("text", Text, nullable=False),
)
