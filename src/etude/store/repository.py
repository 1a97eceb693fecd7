"""Commit of a result, from git in the measured directory; and marks and notes of the store."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Connection, delete, insert, select

from etude.errors import InputError, MachineRefuses, UsageError
from etude.osutil.commands import run_to_end
from etude.osutil.trust import tool_words
from etude.store.column_encoding import clean, from_us, key, rows_of, to_us
from etude.store.entry import Mark
from etude.store.schema import mark as table
from etude.store.schema import note

DIRTY = "dirty"
"""Tag of a result of a commit with uncommitted changes."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit of git."""

    commit: str
    committed: datetime
    branch: str | None
    """The checked-out branch; None if this commit is not checked out, or HEAD is detached."""
    tags: tuple[str, ...]
    """Git tags of this commit; and `DIRTY`."""


def commit_of(repository: str, commit: str | None = None, *, dirty: bool = False) -> Commit:
    """The checked-out commit, or another one.

    dirty: also allowed if files differ from the checked-out commit.

    Raises:
        InputError: it is no repository, has no such commit, or has uncommitted changes.
        MachineRefuses: there is no git.
    """
    if not Path(repository).is_dir():
        raise InputError(f"--repository {repository}: there is no such directory")
    chosen = commit or "HEAD"
    told = _git(repository, "log", "-1", "--format=%H %cI", "--end-of-options", f"{chosen}^{{commit}}", "--")
    sha, time = told.split()
    tags = _git(repository, "tag", "--points-at", sha).split("\n")
    changed = commit is None and bool(_git(repository, "status", "--porcelain", "--untracked-files=no"))
    if changed and not dirty:
        raise InputError(
            f"--repository {repository}: files differ from commit {sha[:12]}, of which the result would be stored: "
            f"commit them, or give --dirty"
        )
    branch = _git(repository, "rev-parse", "--abbrev-ref", "HEAD") if commit is None else "HEAD"
    found = tuple(tag for tag in tags if tag) + ((DIRTY,) if changed else ())
    return Commit(sha, datetime.fromisoformat(time), None if branch == "HEAD" else branch, found)


def _git(repository: str, *words: str) -> str:
    environment = os.environ | {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        done = run_to_end(tool_words(["git", "-C", repository, *words]), environment=environment)
    except FileNotFoundError:
        raise MachineRefuses(
            "--repository needs git, which is not installed; or give --commit and --committed"
        ) from None
    if done.status:
        said = " ".join(done.errors.decode("utf-8", "replace").split()) or f"git: {done.why}"
        raise InputError(f"--repository {repository}: git reports {said}")
    return done.text.strip()


def mark(connection: Connection, test: str, metric: str | None, commit: str, why: str) -> Mark:
    """Store an expected change; the same one with another reason is replaced."""
    if not commit.strip() or not why.strip():
        raise UsageError("a mark needs a commit and a reason")
    made = Mark(clean(test), metric and clean(metric), clean(commit), clean(why), datetime.now(UTC))
    this = key(made.test, made.metric, made.commit)
    connection.execute(delete(table).where(table.c.key == this))
    row = {"key": this, "test": made.test, "metric": made.metric, "commit_id": made.commit, "why": made.why}
    connection.execute(insert(table), row | {"marked_us": to_us(made.marked)})
    return made


def marks(connection: Connection) -> tuple[Mark, ...]:
    """All marks, in the order in which they were made."""
    columns = (table.c.test, table.c.metric, table.c.commit_id, table.c.why, table.c.marked_us)
    rows = connection.execute(select(*columns).order_by(table.c.id))
    with rows_of("a mark"):
        return tuple(Mark(*row[:4], from_us(row[4])) for row in rows)


def remember(connection: Connection, name: str, text: str) -> None:
    """Store a text under a name."""
    connection.execute(delete(note).where(note.c.name == name))
    connection.execute(insert(note), {"name": name, "text": clean(text)})


def recall(connection: Connection, name: str) -> str | None:
    """The text of that name."""
    return connection.execute(select(note.c.text).where(note.c.name == name)).scalar()
