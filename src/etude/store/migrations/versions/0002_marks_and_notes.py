"""Expected changes (marks), and Étude's own notes on a history."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "mark",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("key", sa.String(64), nullable=False, unique=True),
        sa.Column("test", sa.Text, nullable=False),
        sa.Column("metric", sa.Text),
        sa.Column("commit_id", sa.Text, nullable=False),
        sa.Column("why", sa.Text, nullable=False),
        sa.Column("marked_us", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "note",
        sa.Column("name", sa.String(200), primary_key=True),
        sa.Column("text", sa.Text, nullable=False),
    )
