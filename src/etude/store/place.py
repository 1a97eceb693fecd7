"""Where a store is: a file of SQLite, or a database of PostgreSQL."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError

from etude.errors import InputError, MachineRefuses, UsageError
from etude.osutil.trust import check_results_for_root, private_group_of_sudo

DEFAULT = "etude-store.sqlite"
VARIABLE = "ETUDE_STORE"
WAIT_S = 20.0
MOST_ROW_BYTES = 128 << 20
"""Of SQLite: 16 million trials of one metric. A row of somebody else's store could hold a gigabyte."""


def url_of(place: str | os.PathLike[str] | None) -> URL:
    """The URL of a place: a path, `sqlite:///PATH` or `postgresql://…`; None: of $ETUDE_STORE or of `DEFAULT`.

    Raises UsageError for any other.
    """
    text = os.fspath(place) if place is not None else os.environ.get(VARIABLE) or DEFAULT
    if "://" not in text:
        return URL.create("sqlite", database=os.path.abspath(text))
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise UsageError(f"--store: {_unsaid(text)} is no URL; {_EXPECTED}") from None
    if url.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
        return url.set(drivername="postgresql+psycopg")
    if url.drivername == "sqlite" and url.database and url.database != ":memory:":
        return url.set(database=os.path.abspath(url.database))
    raise UsageError(f"--store: {url.drivername!r} is not known here; {_EXPECTED}")


_EXPECTED = "expected a file, sqlite:///FILE or postgresql://USER@HOST/DATABASE"


def _unsaid(text: str) -> str:
    """Without what may be a password."""
    return repr(text.split("://")[0] + "://…")


def place_text(url: URL) -> str:
    """For people: a path, or a URL without its password."""
    if url.drivername == "sqlite":
        return str(url.database)
    return url.set(drivername="postgresql").render_as_string(hide_password=True)


def is_missing(url: URL) -> bool:
    """Whether it is a file that is not there yet, or is empty."""
    if url.drivername != "sqlite":
        return False
    try:
        return os.stat(str(url.database)).st_size == 0
    except FileNotFoundError:
        return True
    except OSError as error:
        raise InputError(f"{url.database}: cannot be read: {error.strerror}") from None


def engine_of(url: URL, wait_s: float = WAIT_S) -> Engine:
    """The engine of SQLAlchemy. Nothing is connected yet.

    wait_s: so long a writer waits for another one, and a connection for an answer.

    Raises MachineRefuses where the driver is not installed.
    """
    if url.drivername == "sqlite":
        parent = Path(str(url.database)).parent
        if not parent.is_dir():
            raise InputError(f"--store: {url.database}: there is no directory {parent}; make it first")
        check_results_for_root(parent)  # SQLite believes a journal beside its file
        engine = create_engine(url, connect_args={"timeout": wait_s})
        event.listen(engine, "do_connect", lambda *_: _make_for_root(Path(str(url.database))))
        event.listen(engine, "connect", _take_transactions_over)
        event.listen(engine, "begin", _begin)
        return engine
    try:
        return create_engine(url, connect_args={"connect_timeout": max(2, int(wait_s))})
    except ModuleNotFoundError:
        raise MachineRefuses(
            "PostgreSQL needs the package psycopg, which is not here: pip install 'etude[postgresql]'"
        ) from None


def _make_for_root(file: Path) -> None:
    """Whoever may read a file of SQLite can lock it: one that root makes can be read by root, and by the group of who
    called sudo where that is theirs alone."""
    if os.geteuid() != 0:
        return
    try:
        made = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError:
        return  # it is there, or SQLite says why it cannot be made
    try:
        if (group := private_group_of_sudo()) is not None:
            os.fchown(made, -1, group)
            os.fchmod(made, 0o640)
    finally:
        os.close(made)


WRITING = "etude_writing"
"""Option of a connection: whether its transactions take the lock of a writer when they begin."""


def _take_transactions_over(connection: Any, _record: object) -> None:
    """The module sqlite3 would begin a transaction late, and none for a change of tables."""
    connection.isolation_level = None
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_ROW_BYTES)
    connection.execute("PRAGMA foreign_keys = ON")


def _begin(connection: Connection) -> None:
    """At once where something will be written: a reader that becomes a writer could fail without waiting."""
    writing = connection.get_execution_options().get(WRITING)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")
