"""Location of a store: a file of SQLite, or a database of PostgreSQL."""

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
MAX_ROW_BYTES = 128 << 20
"""Maximum row of SQLite: 16 million trials of one metric. An untrusted store could hold rows of a gigabyte."""


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
    """The text without a possible password."""
    return repr(text.split("://")[0] + "://…")


def place_text(url: URL) -> str:
    """The place for messages: a path, or a URL without its password."""
    if url.drivername == "sqlite":
        return str(url.database)
    return url.set(drivername="postgresql").render_as_string(hide_password=True)


def is_missing(url: URL) -> bool:
    """True if it is a file that does not exist or is empty."""
    if url.drivername != "sqlite":
        return False
    try:
        return os.stat(str(url.database)).st_size == 0
    except FileNotFoundError:
        return True
    except OSError as error:
        raise InputError(f"{url.database}: cannot be read: {error.strerror}") from None


def engine_of(url: URL, wait_s: float = WAIT_S) -> Engine:
    """The engine of SQLAlchemy, not yet connected.

    wait_s: time that a writer waits for another one, and a connection for an answer.

    Raises MachineRefuses if the driver is not installed.
    """
    if url.drivername == "sqlite":
        parent = Path(str(url.database)).parent
        if not parent.is_dir():
            raise InputError(f"--store: {url.database}: there is no directory {parent}; make it first")
        check_results_for_root(parent)  # SQLite trusts a journal beside its file
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
    """Create root's file with restricted permissions, since every reader of a SQLite file can lock it: for root, and
    for the private group of the user who called sudo."""
    if os.geteuid() != 0:
        return
    try:
        made = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError:
        return  # it exists, or SQLite reports why it cannot be made
    try:
        if (group := private_group_of_sudo()) is not None:
            os.fchown(made, -1, group)
            os.fchmod(made, 0o640)
    finally:
        os.close(made)


WRITING = "etude_writing"
"""Option of a connection: True if its transactions take the write lock when they begin."""


def _take_transactions_over(connection: Any, _record: object) -> None:
    """Disable the implicit transactions of sqlite3, which begin late, and never for a change of tables."""
    connection.isolation_level = None
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_ROW_BYTES)
    connection.execute("PRAGMA foreign_keys = ON")


def _begin(connection: Connection) -> None:
    """Begin a transaction, with the write lock if it will write: a late upgrade could fail without waiting."""
    writing = connection.get_execution_options().get(WRITING)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")
