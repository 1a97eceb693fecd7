"""A store: its place, adding results to it, queries, and its errors. SQLite and PostgreSQL behave the same."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Self, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, OperationalError, SQLAlchemyError

from etude.errors import InputError, MachineRefuses, UsageError
from etude.osutil.files import lock_holder, named_process
from etude.osutil.trust import check_results_for_root, private_group_of_sudo
from etude.store import insert, queries, repository
from etude.store.column_encoding import CorruptRow, rows_of
from etude.store.content import Content, read_content
from etude.store.entry import AddOutcome, Entry, Machine, Mark, Result, Selector
from etude.store.schema import METADATA, REVISION, VERSION_TABLE

PAUSES_S = (0.1, 0.5, 1.0, 2.0, 4.0)
"""Pauses before retries, s. A restarted database is usually back within this time."""

_AGAIN = ("40001", "40P01", "55P03", "57P01", "57P02", "57P03", "53300")
"""SQLSTATE of PostgreSQL: serialisation, deadlock, a lock, shutting or starting up, too many connections."""

_LASTING = re.compile(r"authentication failed|does not exist|permission denied|no pg_hba.conf entry")
"""Connection errors that a retry would not resolve."""


def with_retries(
    attempt: Callable[[], Found], where: str, nothing: str, pause: Callable[[float], None] = time.sleep
) -> Found:
    """Result of an attempt, which is a whole transaction; retried if the database was away or another writer was first.

    where: the database, in messages; nothing: what was not done, such as `nothing of DIR was added`.

    Raises:
        MachineRefuses: it stays away, or is full; InputError: it is no store, or is damaged.
    """
    for pause_s in (*PAUSES_S, None):
        try:
            return attempt()
        except SQLAlchemyError as error:
            if pause_s is None or not is_transient(error):
                raise error_of(error, where, nothing) from None
            pause(pause_s)
        except CorruptRow as damage:
            advice = "etude store check names all that is, etude store forget takes a result out"
            raise InputError(f"{where}: damaged: {damage}; {nothing}; {advice}") from None
    raise AssertionError("the last try returns or raises")


def is_transient(error: SQLAlchemyError) -> bool:
    """True if a retry may succeed."""
    if not isinstance(error, DBAPIError):
        return False
    if error.connection_invalidated or isinstance(error, IntegrityError):
        return True  # a concurrent writer created the same row: a retry finds it
    state = getattr(error.orig, "sqlstate", None)
    if state is None and type(error.orig).__module__.startswith("psycopg"):  # no connection, or it broke
        lasting = _LASTING.search(str(error.orig))
        return isinstance(error, OperationalError) and lasting is None
    return state in _AGAIN


def error_of(error: SQLAlchemyError, where: str, nothing: str) -> InputError | MachineRefuses:
    """The error in one line."""
    said = " ".join(str(getattr(error, "orig", None) or error).split())
    if "is not a database" in said or "malformed" in said or "Could not decode" in said or "too big" in said:
        return InputError(
            f"{where}: is no store, or a damaged one ({said}); name another by --store, or restore it"
        )
    if re.search(r'database ".*" does not exist', said):
        return InputError(f"{where}: there is no such database; createdb makes one, --store names another")
    if "no such table" in said or "already exists" in said or "does not exist" in said:
        return InputError(
            f"{where}: its tables are no store's ({said}): give the store a database of its own"
        )
    if "database is locked" in said:
        pid = lock_holder(Path(where), "POSIX")
        holder = (named_process(pid) if pid else None) or "another program"
        return MachineRefuses(f"{where}: {holder} keeps it locked; {nothing}; try again when it has ended")
    return MachineRefuses(f"{where}: {said}; {nothing}; try again when that is repaired")


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
        found = os.stat(str(url.database))
    except FileNotFoundError:
        return True
    except OSError as error:
        raise InputError(f"{url.database}: cannot be read: {error.strerror}") from None
    if stat.S_ISDIR(found.st_mode):
        raise InputError(f"{url.database}: is a directory; expected the file of a store")
    return found.st_size == 0


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


_LOCK = 0x45747564
"""Advisory lock of PostgreSQL, against concurrent migrations."""
_REVISION = re.compile(r"[0-9]{4}")
_OTHER_TABLES = re.compile(r"duplicate column|already exists|no such|does not exist")
"""Messages of SQLite and PostgreSQL for a step that is already done, or is not the next."""


def revision_of(connection: Connection) -> str | None:
    """Revision of the tables, or None if there are none."""
    tables = inspect(connection)
    views = {name.lower() for name in tables.get_view_names()} & {VERSION_TABLE, *METADATA.tables}
    if views:  # their contents could be arbitrary, and infinite
        raise CorruptRow(f"{min(views)} is a view, not a table")
    if not tables.has_table(VERSION_TABLE):
        return None
    found = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()
    if found is not None and not (isinstance(found, str) and _REVISION.fullmatch(found)):
        raise CorruptRow(f"{VERSION_TABLE}: {found!r} is no revision")
    return found


def refuse_newer(revision: str | None, where: str) -> None:
    """Raises InputError for a revision newer than this Étude's. Revisions are numbers of four digits."""
    if revision is not None and revision > REVISION:
        raise InputError(
            f"{where}: was written by a newer Étude (tables {revision}; this one knows up to {REVISION}): use that one"
        )


def migrate(connection: Connection, where: str, to: str = REVISION) -> None:
    """Create the tables, or upgrade older ones, in the transaction that the connection has begun.

    Raises InputError: they are newer, or Damaged: their revision is invalid.
    """
    if _is_at(connection, where, to):
        return
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        if _is_at(connection, where, to):
            return  # another process migrated while we waited
    from importlib.resources import as_file, files

    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    with as_file(files("etude.store") / "migrations") as scripts:
        config = Config(attributes={"connection": connection})
        config.set_main_option("script_location", str(scripts).replace("%", "%%"))
        try:
            command.upgrade(config, to)
        except CommandError as error:
            raise CorruptRow(f"{VERSION_TABLE}: {error}") from None
        except DBAPIError as error:
            if not _OTHER_TABLES.search(str(error.orig)):
                raise
            raise CorruptRow(f"{VERSION_TABLE}: the tables are not of this revision: {error.orig}") from None


def _is_at(connection: Connection, where: str, to: str) -> bool:
    there = revision_of(connection)
    refuse_newer(there, where)
    return there == to


Found = TypeVar("Found")


def open_store(place: str | os.PathLike[str] | None = None) -> Store:
    """The store at a path or URL; None: at $ETUDE_STORE, or `etude-store.sqlite` in the working directory.

    Nothing is connected or created yet: the first write creates a missing store.

    Raises:
        UsageError: the URL is invalid; InputError: its directory does not exist; MachineRefuses: no driver for it.
    """
    return Store(place)


class Store:
    """All methods raise InputError if there is no store, or none that this Étude reads, and MachineRefuses if the
    database cannot be reached. A context manager: connections are closed at its end."""

    def __init__(
        self,
        place: str | os.PathLike[str] | None = None,
        *,
        wait_s: float = WAIT_S,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """wait_s: for another writer, and for a connection; pause: between retries while a database is away."""
        self._url = url_of(place)
        self._engine = engine_of(self._url, wait_s)
        self._pause = pause
        self._known = False
        self.where = place_text(self._url)
        """The path, or the URL without its password, for messages."""

    def add(
        self,
        directory: str | os.PathLike[str],
        *,
        commit: str | None = None,
        committed: datetime | None = None,
        branch: str | None = None,
        tags: Sequence[str] = (),
        machine: str | None = None,
    ) -> AddOutcome:
        """Add a results directory, or a file that `etude stats` reads, atomically.

        The same one is not added twice; if one has grown since, the larger replaces the smaller.

        Raises:
            InputError: it cannot be read, or is stored with another commit.
            UsageError: `machine` is needed, or does not fit.
        """
        content = read_content(os.fspath(directory), machine)
        return self.put(content, insert.Origin(commit, committed, branch, tuple(tags)))

    def put(self, content: Content, origin: insert.Origin) -> AddOutcome:
        """Add contents that are already read."""
        nothing = f"nothing of {content.source} was added"
        return self._write(lambda connection: insert.put(connection, content, origin), nothing)

    def forget(self, result: int) -> None:
        """Remove a result, with all its entries. Raises InputError if there is none of that number."""
        self._write(lambda connection: insert.forget(connection, result), "nothing was taken out")

    def mark(self, test: str, metric: str | None, commit: str, why: str) -> Mark:
        """Store an expected change of the test from this commit on (metric None: in all its metrics)."""
        return self._write(
            lambda connection: repository.mark(connection, test, metric, commit, why), "nothing was marked"
        )

    def remember(self, name: str, text: str) -> None:
        """Store a text under a name of at most 200 characters, replacing an earlier one."""
        self._write(lambda connection: repository.remember(connection, name, text), "nothing was kept")

    def history(
        self,
        test: str,
        metric: str | None = None,
        *,
        machine: str | None = None,
        branch: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> tuple[Entry, ...]:
        """One metric of one test over time: by commit time where all entries have one, else by when they were measured.

        metric: None is elapsed, or else the only one that there is. machine: its name or digest.

        Raises InputError where there is no such test or metric.
        """
        chosen = Selector(test, metric, None, None, None, branch, machine, since, until)
        return self._read(lambda connection: queries.history(connection, self.where, chosen))

    def entries(self, selector: Selector | None = None) -> tuple[Entry, ...]:
        """All entries that match the selector, ordered as a history."""
        return self._read(lambda connection: queries.entries(connection, selector or Selector()))

    def tests(self) -> tuple[str, ...]:
        """The names of all tests, sorted."""
        return self._read(queries.tests)

    def metrics(self, test: str) -> tuple[str, ...]:
        """The names of the metrics of a test, sorted; empty for an unknown test."""
        return self._read(lambda connection: queries.metrics(connection, test))

    def machines(self) -> tuple[Machine, ...]:
        """All machines, by name."""
        return self._read(queries.machines)

    def results(self) -> tuple[Result, ...]:
        """All results, by number."""
        return self._read(queries.results)

    def marks(self) -> tuple[Mark, ...]:
        """All marks, in the order in which they were made."""
        return self._read(repository.marks)

    def recall(self, name: str) -> str | None:
        """The text stored under this name."""
        return self._read(lambda connection: repository.recall(connection, name))

    def check(self) -> tuple[str, ...]:
        """Errors in the stored data, a line each; normally none."""
        return self._read(queries.check)

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, do: Callable[[Connection], Found], nothing: str) -> Found:
        def attempt() -> Found:
            with (
                self._engine.connect().execution_options(**{WRITING: True}) as connection,
                connection.begin(),
            ):
                if not self._known:
                    migrate(connection, self.where)
                found = do(connection)
            self._known = True
            return found

        return with_retries(attempt, self.where, nothing, self._pause)

    def _read(self, ask: Callable[[Connection], Found]) -> Found:
        def attempt() -> Found:
            if not self._known:
                self._look()
            with self._engine.connect() as connection, rows_of("a table"):
                return ask(connection)

        return with_retries(attempt, self.where, "nothing was read", self._pause)

    def _look(self) -> None:
        """Check that there is a readable store, and upgrade older tables."""
        if is_missing(self._url):
            raise InputError(
                f"{self.where}: there is no store; etude store add DIR makes one, --store names another"
            )
        with self._engine.connect() as connection:
            there = revision_of(connection)
        if there is None:
            raise InputError(f"{self.where}: holds no store yet; etude store add DIR makes one")
        refuse_newer(there, self.where)
        if there != REVISION:
            self._write(lambda _: None, "its tables are as they were")
        self._known = True
