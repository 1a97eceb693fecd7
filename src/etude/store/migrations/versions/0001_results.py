"""Results, their machines and tags, and the measured values of each test and metric."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_KEY = sa.String(64)


def upgrade() -> None:
    _named(
        "machine", sa.Column("digest", sa.Text, nullable=False), sa.Column("facts", sa.Text, nullable=False)
    )
    _named("test")
    _named("metric", sa.Column("unit", sa.Text, nullable=False), sa.Column("kind", sa.Text, nullable=False))
    _result()
    op.create_table(
        "tag",
        sa.Column("result_id", sa.Integer, sa.ForeignKey("result.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("word", sa.Text, primary_key=True),
    )
    op.create_index("ix_tag_word", "tag", ["word"])
    _entry()


def _named(table: str, *more: sa.Column[str]) -> None:
    op.create_table(
        table,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("key", _KEY, nullable=False, unique=True),
        sa.Column("name", sa.Text, nullable=False),
        *more,
    )


def _result() -> None:
    op.create_table(
        "result",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("origin", _KEY, nullable=False, unique=True),
        sa.Column("content", _KEY, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("trials", sa.Integer, nullable=False),
        sa.Column("measured_us", sa.BigInteger, nullable=False),
        sa.Column("added_us", sa.BigInteger, nullable=False),
        sa.Column("commit_id", sa.Text),
        sa.Column("committed_us", sa.BigInteger),
        sa.Column("branch", sa.Text),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_result_commit_id", "result", ["commit_id"])


def _of(table: str) -> sa.Column[int]:
    key = sa.ForeignKey(f"{table}.id", ondelete="CASCADE")
    return sa.Column(f"{table}_id", sa.Integer, key, nullable=False)


def _entry() -> None:
    op.create_table(
        "entry",
        sa.Column("id", sa.Integer, primary_key=True),
        *map(_of, ("result", "test", "metric", "machine")),
        sa.Column("measured_us", sa.BigInteger, nullable=False),
        sa.Column("count", sa.Integer, nullable=False),
        sa.Column("mean", sa.Float(53), nullable=False),
        sa.Column("deviation", sa.Float(53)),
        sa.Column("median", sa.Float(53), nullable=False),
        sa.Column("lowest", sa.Float(53), nullable=False),
        sa.Column("highest", sa.Float(53), nullable=False),
        sa.Column("trials", sa.LargeBinary, nullable=False),
        sa.Column("sittings", sa.Text, nullable=False),
    )
    op.create_index("entry_of_test", "entry", ["test_id", "metric_id"])
    op.create_index("entry_of_result", "entry", ["result_id"])
