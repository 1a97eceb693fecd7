"""The tables brought to what this Étude knows: made, migrated, or refused because a newer Étude made them."""

from __future__ import annotations

import re

from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import DBAPIError

from etude.errors import InputError
from etude.store.packed import Damaged
from etude.store.schema import REVISION, VERSION_TABLE

_LOCK = 0x45747564
"""Of PostgreSQL, for those who migrate at once."""
_REVISION = re.compile(r"[0-9]{4}")
_OTHER_TABLES = re.compile(r"duplicate column|already exists|no such|does not exist")
"""What SQLite and PostgreSQL say of a step that was made already, or is not the next."""


def revision_of(connection: Connection) -> str | None:
    """What the tables there were made by, or None where there are none."""
    if not inspect(connection).has_table(VERSION_TABLE):
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
