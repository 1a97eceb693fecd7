"""Writes a result into the store, within the caller's transaction."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from sqlalchemy import Connection, Table, delete, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite

from etude.errors import InputError, UsageError
from etude.store.column_encoding import key, pack, run_length_encode, to_us
from etude.store.content import Content, Point
from etude.store.entry import AddOutcome, Machine
from etude.store.schema import entry, machine, metric, result, tag, test

_MAX_CHARACTERS = 200
_AT_ONCE = 500
"""Keys per query: databases limit the values of a statement."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Commit, branch and tags of a result, as given by the user."""

    commit: str | None = None
    committed: datetime | None = None
    branch: str | None = None
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for word in (self.commit, self.branch, *self.tags):
            if word is not None and (
                not word.strip() or len(word) > _MAX_CHARACTERS or not word.isprintable()
            ):
                raise UsageError(
                    f"{word[:40]!r}: a commit, branch or tag is 1 to {_MAX_CHARACTERS} printable characters"
                )
        if self.committed is not None and self.commit is None:
            raise UsageError("a time of a commit was given, but no commit: give both")


def put(connection: Connection, content: Content, origin: Origin) -> AddOutcome:
    """Add a result, or replace one that has grown.

    Raises InputError if it is stored with another commit.
    """
    there = (
        connection.execute(select(result).where(result.c.origin == content.origin).with_for_update())
        .mappings()
        .one_or_none()
    )
    if there is None:
        values = {"origin": content.origin} | _members(content) | _said(origin)
        number = connection.execute(insert(result).returning(result.c.id), values).scalar_one()
        _tag(connection, number, origin.tags)
        _write(connection, number, content)
        return AddOutcome(number, True)
    number = there["id"]
    _refuse_other_commit(content.source, there, origin)
    _tag(connection, number, origin.tags)
    said = {name: value for name, value in _said(origin).items() if value is not None}
    same = there["content"] == content.digest
    how = "already" if same else "older" if content.trials < there["trials"] else "replaced"
    if how == "replaced":
        connection.execute(delete(entry).where(entry.c.result_id == number))
        _write(connection, number, content)
        said |= _members(content)
    if said:
        connection.execute(update(result).where(result.c.id == number).values(**said))
    return AddOutcome(number, False, how)


def forget(connection: Connection, number: int) -> None:
    """Remove a result. Raises InputError if there is none."""
    if connection.execute(delete(result).where(result.c.id == number)).rowcount == 0:
        raise InputError(f"there is no result {number}; etude store list names them")


def _refuse_other_commit(source: str, there: Mapping[Any, Any], origin: Origin) -> None:
    known = there["commit_id"]
    if known is not None and origin.commit is not None and known != origin.commit:
        raise InputError(
            f"{source}: is stored as result {there['id']} of commit {known}, not {origin.commit}: "
            f"if that is wrong, etude store forget {there['id']} first"
        )


def _members(content: Content) -> dict[str, Any]:
    return {
        "content": content.digest,
        "source": content.source,
        "trials": content.trials,
        "measured_us": to_us(content.measured),
        "added_us": to_us(datetime.now(UTC)),
    }


def _said(origin: Origin) -> dict[str, Any]:
    committed = None if origin.committed is None else to_us(origin.committed)
    return {"commit_id": origin.commit, "committed_us": committed, "branch": origin.branch}


def _tag(connection: Connection, number: int, words: Iterable[str]) -> None:
    rows = [{"result_id": number, "word": word} for word in dict.fromkeys(words)]
    if rows:
        connection.execute(_unless_there(connection, tag), rows)


def _write(connection: Connection, number: int, content: Content) -> None:
    points = content.points
    tests = _numbers(connection, test, {key(p.test): {"name": p.test} for p in points})
    metrics = _numbers(
        connection,
        metric,
        {key(p.metric, p.unit, p.kind): {"name": p.metric, "unit": p.unit, "kind": p.kind} for p in points},
    )
    machines = _numbers(connection, machine, {_machine_key(p.machine): _machine(p.machine) for p in points})
    rows = [
        _row(point)
        | {
            "result_id": number,
            "test_id": tests[key(point.test)],
            "metric_id": metrics[key(point.metric, point.unit, point.kind)],
            "machine_id": machines[_machine_key(point.machine)],
        }
        for point in points
    ]
    connection.execute(insert(entry), rows)


def _row(point: Point) -> dict[str, Any]:
    values = np.array(point.values)
    with np.errstate(over="ignore", invalid="ignore"):  # of numbers near the largest float
        deviation = float(values.std(ddof=1)) if len(values) > 1 else math.nan
        mean = float((values / len(values)).sum())
    return {
        "measured_us": to_us(point.measured),
        "count": len(values),
        "mean": mean,
        "deviation": None if math.isnan(deviation) else deviation,
        "median": statistics.median(point.values),
        "lowest": float(values.min()),
        "highest": float(values.max()),
        "trials": pack(point.values),
        "sittings": run_length_encode(point.sittings),
        "command": point.command,
    }


def _machine_key(found: Machine) -> str:
    return key(found.name, found.digest)


def _machine(found: Machine) -> dict[str, str]:
    facts = json.dumps(dict(found.facts), ensure_ascii=False)
    return {"name": found.name, "digest": found.digest, "facts": facts}


def _numbers(connection: Connection, table: Table, wanted: Mapping[str, dict[str, str]]) -> dict[str, int]:
    """The number of each row by its key; missing rows are created.

    In the order of keys: two writers that create the same rows wait for each other instead of deadlocking.
    """
    keys = sorted(wanted)
    found = _known(connection, table, keys)
    missing = [{"key": each, **wanted[each]} for each in keys if each not in found]
    if missing:
        connection.execute(_unless_there(connection, table), missing)
        found |= _known(connection, table, [row["key"] for row in missing])
    return found


def _known(connection: Connection, table: Table, keys: list[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for first in range(0, len(keys), _AT_ONCE):
        asked = select(table.c.key, table.c.id).where(table.c.key.in_(keys[first : first + _AT_ONCE]))
        found |= {row[0]: row[1] for row in connection.execute(asked)}
    return found


def _unless_there(connection: Connection, table: Table) -> Any:
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    return dialect.insert(table).on_conflict_do_nothing()
