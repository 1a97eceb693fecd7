"""A store: adding results to it, and queries. SQLite and PostgreSQL behave the same."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Self, TypeVar

from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import DBAPIError

from etude.errors import InputError
from etude.store import insert, queries, repository
from etude.store.column_encoding import CorruptRow, rows_of
from etude.store.content import Content, read_content
from etude.store.entry import AddOutcome, Entry, Machine, Mark, Result, Selector
from etude.store.failures import with_retries
from etude.store.place import WAIT_S, WRITING, engine_of, is_missing, place_text, url_of
from etude.store.schema import METADATA, REVISION, VERSION_TABLE

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
