"""A store: what is added to it, and what it is asked. SQLite and PostgreSQL are the same here."""

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
from etude.store.column_encoding import Damaged, rows_of
from etude.store.content import Content, read_content
from etude.store.entry import Added, Entry, Machine, Mark, Result, Selector
from etude.store.failures import with_retries
from etude.store.place import WAIT_S, WRITING, engine_of, is_missing, place_text, url_of
from etude.store.schema import METADATA, REVISION, VERSION_TABLE

_LOCK = 0x45747564
"""Of PostgreSQL, for those who migrate at once."""
_REVISION = re.compile(r"[0-9]{4}")
_OTHER_TABLES = re.compile(r"duplicate column|already exists|no such|does not exist")
"""What SQLite and PostgreSQL say of a step that was made already, or is not the next."""


def revision_of(connection: Connection) -> str | None:
    """What the tables there were made by, or None where there are none."""
    tables = inspect(connection)
    views = {name.lower() for name in tables.get_view_names()} & {VERSION_TABLE, *METADATA.tables}
    if views:  # which can be of any content, and without end
        raise Damaged(f"{min(views)} is a view, not a table")
    if not tables.has_table(VERSION_TABLE):
        return None
    found = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()
    if found is not None and not (isinstance(found, str) and _REVISION.fullmatch(found)):
        raise Damaged(f"{VERSION_TABLE}: {found!r} is no revision")
    return found


def refuse_newer(revision: str | None, where: str) -> None:
    """Raises InputError for one that this Étude does not know. Revisions are numbers of four digits."""
    if revision is not None and revision > REVISION:
        raise InputError(
            f"{where}: was written by a newer Étude (tables {revision}; this one knows up to {REVISION}): use that one"
        )


def migrate(connection: Connection, where: str, to: str = REVISION) -> None:
    """Make the tables, or bring older ones up to date, in the transaction that the connection has begun.

    Raises InputError where they are newer, Damaged where their revision is none.
    """
    if _is_at(connection, where, to):
        return
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        if _is_at(connection, where, to):
            return  # another one migrated while we waited
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
            raise Damaged(f"{VERSION_TABLE}: {error}") from None
        except DBAPIError as error:
            if not _OTHER_TABLES.search(str(error.orig)):
                raise
            raise Damaged(f"{VERSION_TABLE}: the tables are not of this revision: {error.orig}") from None


def _is_at(connection: Connection, where: str, to: str) -> bool:
    there = revision_of(connection)
    refuse_newer(there, where)
    return there == to


Found = TypeVar("Found")


def open_store(place: str | os.PathLike[str] | None = None) -> Store:
    """The store at a path or URL; None: at $ETUDE_STORE, or `etude-store.sqlite` in the working directory.

    Nothing is connected or made yet: what is written makes a store where there is none.

    Raises:
        UsageError: the URL is none of ours; InputError: its directory is not there; MachineRefuses: no driver for it.
    """
    return Store(place)


class Store:
    """All methods raise InputError where there is no store, or none that this Étude reads, and MachineRefuses where the
    database cannot be reached. A context manager: connections are closed at its end."""

    def __init__(
        self,
        place: str | os.PathLike[str] | None = None,
        *,
        wait_s: float = WAIT_S,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """wait_s: for another writer, and for a connection; pause: between tries where a database is away."""
        self._url = url_of(place)
        self._engine = engine_of(self._url, wait_s)
        self._pause = pause
        self._known = False
        self.where = place_text(self._url)
        """For messages: the path, or the URL without its password."""

    def add(
        self,
        directory: str | os.PathLike[str],
        *,
        commit: str | None = None,
        committed: datetime | None = None,
        branch: str | None = None,
        tags: Sequence[str] = (),
        machine: str | None = None,
    ) -> Added:
        """Add a results directory, or a file that `etude stats` reads, whole or not at all.

        The same one is not added twice; of one that has grown since, the larger replaces the smaller.

        Raises:
            InputError: it cannot be read, or is stored as of another commit.
            UsageError: `machine` is needed, or does not fit.
        """
        content = read_content(os.fspath(directory), machine)
        return self.put(content, insert.Origin(commit, committed, branch, tuple(tags)))

    def put(self, content: Content, origin: insert.Origin) -> Added:
        """Add what was read already."""
        nothing = f"nothing of {content.source} was added"
        return self._write(lambda connection: insert.put(connection, content, origin), nothing)

    def forget(self, result: int) -> None:
        """Take a result out, with all its entries. Raises InputError where there is none of that number."""
        self._write(lambda connection: insert.forget(connection, result), "nothing was taken out")

    def mark(self, test: str, metric: str | None, commit: str, why: str) -> Mark:
        """Remember that from this commit on the test is expected to be another (metric None: in all its metrics)."""
        return self._write(
            lambda connection: repository.mark(connection, test, metric, commit, why), "nothing was marked"
        )

    def remember(self, name: str, text: str) -> None:
        """Keep a text by a name of at most 200 characters, in place of what was there."""
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
        """All that the selector means, ordered as a history."""
        return self._read(lambda connection: queries.entries(connection, selector or Selector()))

    def tests(self) -> tuple[str, ...]:
        """The names of all tests, sorted."""
        return self._read(queries.tests)

    def metrics(self, test: str) -> tuple[str, ...]:
        """The names of the metrics of a test, sorted; none for a test that is not there."""
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

    def remembered(self, name: str) -> str | None:
        """The text that was kept by this name."""
        return self._read(lambda connection: repository.recall(connection, name))

    def check(self) -> tuple[str, ...]:
        """What is wrong with what is stored, a line each; normally nothing."""
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
        """See that there is a store that can be read, and bring older tables up to date."""
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
