"""What people and Étude itself remember about a history: expected changes, and texts by name."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import Connection, delete, insert, select

from etude.errors import UsageError
from etude.store.column_encoding import clean, key, of_us, rows_of, to_us
from etude.store.entry import Mark
from etude.store.schema import mark as table
from etude.store.schema import note


def mark(connection: Connection, test: str, metric: str | None, commit: str, why: str) -> Mark:
    """Remember an expected change, in place of the same one with another reason."""
    if not commit.strip() or not why.strip():
        raise UsageError("a mark needs a commit and a reason")
    made = Mark(clean(test), metric and clean(metric), clean(commit), clean(why), datetime.now(UTC))
    this = key(made.test, made.metric, made.commit)
    connection.execute(delete(table).where(table.c.key == this))
    row = {"key": this, "test": made.test, "metric": made.metric, "commit_id": made.commit, "why": made.why}
    connection.execute(insert(table), row | {"marked_us": to_us(made.marked)})
    return made


def marks(connection: Connection) -> tuple[Mark, ...]:
    """All of them, in the order in which they were made."""
    columns = (table.c.test, table.c.metric, table.c.commit_id, table.c.why, table.c.marked_us)
    rows = connection.execute(select(*columns).order_by(table.c.id))
    with rows_of("a mark"):
        return tuple(Mark(*row[:4], of_us(row[4])) for row in rows)


def remember(connection: Connection, name: str, text: str) -> None:
    """Keep a text by a name."""
    connection.execute(delete(note).where(note.c.name == name))
    connection.execute(insert(note), {"name": name, "text": clean(text)})


def recall(connection: Connection, name: str) -> str | None:
    """The text of that name."""
    return connection.execute(select(note.c.text).where(note.c.name == name)).scalar()
