"""Errors of a database as one line for users; and retries of transient ones."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError, SQLAlchemyError

from etude.errors import InputError, MachineRefuses
from etude.osutil.files import lock_holder, named_process
from etude.store.column_encoding import CorruptRow

PAUSES_S = (0.1, 0.5, 1.0, 2.0, 4.0)
"""Pauses before retries, s. A restarted database is usually back within this time."""

_AGAIN = ("40001", "40P01", "55P03", "57P01", "57P02", "57P03", "53300")
"""SQLSTATE of PostgreSQL: serialisation, deadlock, a lock, shutting or starting up, too many connections."""

_LASTING = re.compile(r"authentication failed|does not exist|permission denied|no pg_hba.conf entry")
"""Connection errors that a retry would not resolve."""

Found = TypeVar("Found")


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
