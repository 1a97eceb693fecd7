"""Queries of the store: one or two of SQL each, with rows converted to the classes of `entry`."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, select, type_coerce
from sqlalchemy.types import NullType

from etude.errors import InputError, UsageError
from etude.store.column_encoding import (
    CorruptRow,
    clean,
    from_us,
    key,
    rows_of,
    run_length_decode,
    to_us,
    unpack,
)
from etude.store.entry import Entry, Machine, Result, Selector
from etude.store.schema import entry, machine, mark, metric, result, tag, test

_MIN_COMMIT_LENGTH = 4
PRIMARY = "elapsed"
"""Metric of a history if none is named."""
_BETWEEN = "\n"
"""Separator of tags, which cannot contain it."""


MOST_NAMED = 10
"""Tests that an error names."""
_ALL = entry.join(test).join(metric).join(machine).join(result)
_TAGS = (
    select(func.aggregate_strings(tag.c.word, _BETWEEN))
    .where(tag.c.result_id == entry.c.result_id)
    .scalar_subquery()
)
_ENTRIES = select(
    *(entry.c.result_id, test.c.name, metric.c.name, metric.c.unit, metric.c.kind, entry.c.machine_id),
    *(entry.c.measured_us, entry.c.trials, entry.c.sittings, result.c.commit_id, result.c.committed_us),
    *(result.c.branch, _TAGS, result.c.source, entry.c.command),
).select_from(_ALL)


def history(connection: Connection, where: str, chosen: Selector) -> tuple[Entry, ...]:
    """The entries of one test and metric. Raises InputError if there is none of that name."""
    found = entries(connection, replace(chosen, metric=chosen.metric or PRIMARY))
    if found:
        return found
    there = metrics(connection, chosen.test or "")
    if not there:
        raise unknown_test(where, chosen.test or "", tests(connection))
    if chosen.metric is None and len(there) == 1:
        return entries(connection, replace(chosen, metric=there[0]))
    if (chosen.metric or PRIMARY) in there:
        return ()  # in other branches, on other machines, at other times
    what = "several metrics" if chosen.metric is None else f"no metric {chosen.metric!r}"
    raise InputError(f"{where}: test {chosen.test!r} has {what}; name one of {', '.join(there[:10])}")


def unknown_test(where: str, name: str, known: Sequence[str]) -> InputError:
    """The error for a test that the store at `where` has not, with those that it has."""
    alike = difflib.get_close_matches(name, known, 1)
    there = ", ".join([*alike, *(each for each in known if each not in alike)][:MOST_NAMED])
    more = f" and {len(known) - MOST_NAMED:,} more (etude store tests)" if len(known) > MOST_NAMED else ""
    return InputError(
        f"{where}: has no test {name!r}; there {'are' if known else 'is'} {there or 'none'}{more}"
    )


def entries(connection: Connection, chosen: Selector) -> tuple[Entry, ...]:
    """Entries that match the selector, ordered by commit time if all have one, else by time of measurement."""
    known = dict(_machines(connection))
    with rows_of("an entry"):
        rows = connection.execute(_ENTRIES.where(*_conditions(chosen))).all()
    found = []
    for row in rows:
        with rows_of(f"result {row[0]}"):
            found.append(_entry(row, known))
    return tuple(sorted(found, key=_order(found)))


def _entry(row: Sequence[Any], known: Mapping[int, Machine]) -> Entry:
    number, name, metric_name, unit, kind, machine_id, measured_us, trials, sittings, *rest = row
    commit, committed_us, branch, tags, source, command = rest
    values = unpack(trials)
    return Entry(
        number,
        name,
        metric_name,
        unit,
        kind,
        known[machine_id],
        from_us(measured_us),
        values,
        commit,
        None if committed_us is None else from_us(committed_us),
        branch,
        tuple(sorted(tags.split(_BETWEEN))) if tags else (),
        source,
        run_length_decode(sittings, len(values)),
        command,
    )


def _order(found: Sequence[Entry]) -> Any:
    if all(each.committed is not None for each in found):
        return lambda each: (each.committed, each.measured, each.result)
    return lambda each: (each.measured, each.result)


def _conditions(chosen: Selector) -> Iterable[ColumnElement[bool]]:
    when = func.coalesce(result.c.committed_us, entry.c.measured_us)
    if chosen.test is not None:
        yield test.c.key == key(clean(chosen.test))
    if chosen.metric is not None:
        yield metric.c.name == chosen.metric
    if chosen.result is not None:
        yield result.c.id == chosen.result
    if chosen.commit is not None:
        if len(chosen.commit) < _MIN_COMMIT_LENGTH:
            raise UsageError(f"commit {chosen.commit!r}: give at least {_MIN_COMMIT_LENGTH} characters of it")
        yield result.c.commit_id.startswith(chosen.commit, autoescape=True)
    if chosen.tag is not None:
        yield result.c.id.in_(select(tag.c.result_id).where(tag.c.word == chosen.tag))
    if chosen.branch is not None:
        yield result.c.branch == chosen.branch
    if chosen.machine is not None:
        yield (machine.c.name == chosen.machine) | (machine.c.digest == chosen.machine)
    if chosen.since is not None:
        yield when >= to_us(chosen.since)
    if chosen.until is not None:
        yield when <= to_us(chosen.until)


def _by_result(rows: Iterable[Any]) -> dict[int, tuple[str, ...]]:
    found: dict[int, list[str]] = {}
    for number, word in rows:
        found.setdefault(number, []).append(word)
    return {number: tuple(sorted(words)) for number, words in found.items()}


def tests(connection: Connection) -> tuple[str, ...]:
    """Names of tests that have entries, sorted."""
    used = select(test.c.name).where(test.c.id.in_(select(entry.c.test_id).distinct()))
    return tuple(sorted(connection.execute(used).scalars()))


def metrics(connection: Connection, name: str) -> tuple[str, ...]:
    """Names of the metrics of a test, sorted."""
    number = select(test.c.id).where(test.c.key == key(clean(name))).scalar_subquery()
    used = select(entry.c.metric_id).where(entry.c.test_id == number).distinct()
    return tuple(
        sorted(set(connection.execute(select(metric.c.name).where(metric.c.id.in_(used))).scalars()))
    )


def machines(connection: Connection) -> tuple[Machine, ...]:
    """All machines that have entries, by name and digest."""
    used = {row[0] for row in connection.execute(select(entry.c.machine_id).distinct())}
    found = [each for number, each in _machines(connection) if number in used]
    return tuple(sorted(found, key=lambda each: (each.name, each.digest)))


def _machines(connection: Connection) -> Iterable[tuple[int, Machine]]:
    columns = (machine.c.id, machine.c.name, machine.c.digest, machine.c.facts)
    for number, name, digest, facts in connection.execute(select(*columns)):
        with rows_of(f"machine {number}"):
            found = Machine(name, digest, _facts(facts))
        yield number, found


def _facts(text: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(json.loads(text).items()))


def results(connection: Connection) -> tuple[Result, ...]:
    """All results, by number."""
    tags = _by_result(connection.execute(select(tag)))
    used = select(entry.c.result_id, machine.c.name).select_from(entry.join(machine)).distinct()
    where = _by_result(connection.execute(used))
    found = []
    for row in connection.execute(select(result).order_by(result.c.id)):
        with rows_of(f"result {row.id}"):
            found.append(_result(row, where.get(row.id, ()), tags.get(row.id, ())))
    return tuple(found)


def _result(row: Any, machines: tuple[str, ...], tags: tuple[str, ...]) -> Result:
    return Result(
        row.id,
        row.source,
        from_us(row.measured_us),
        from_us(row.added_us),
        row.trials,
        machines,
        row.commit_id,
        None if row.committed_us is None else from_us(row.committed_us),
        row.branch,
        tags,
    )


def check(connection: Connection) -> tuple[str, ...]:
    """Errors, a line each: corruption that the database detects, results without entries, incomplete values."""
    found = []
    if connection.dialect.name == "sqlite":
        found += [
            f"SQLite: {row[0]}"
            for row in connection.exec_driver_sql("PRAGMA integrity_check")
            if row[0] != "ok"
        ]
    empty = select(result.c.id).where(result.c.id.not_in(select(entry.c.result_id)))
    found += [f"result {number}: has no entries" for number in connection.execute(empty).scalars()]
    found += _damaged("machine {}", connection, (machine.c.id, machine.c.facts), _facts)
    times = (result.c.measured_us, result.c.added_us, func.coalesce(result.c.committed_us, 0))
    found += _damaged(
        "result {}", connection, (result.c.id, *times), lambda *all_us: list(map(from_us, all_us))
    )
    columns = (
        entry.c.result_id,
        entry.c.id,
        entry.c.count,
        entry.c.trials,
        entry.c.sittings,
        entry.c.measured_us,
    )
    found += _damaged("result {}, entry {}", connection, columns, _whole, named=2)
    found += _damaged("mark {}", connection, (mark.c.id, mark.c.marked_us), from_us)
    return tuple(found)


def _damaged(
    what: str,
    connection: Connection,
    columns: Sequence[ColumnElement[Any]],
    decode: Callable[..., object],
    *,
    named: int = 1,
) -> Iterable[str]:
    """A line for each row that `decode` rejects. The first `named` columns name the row and are not decoded; types are
    not converted."""
    for row in connection.execute(select(*(type_coerce(column, NullType()) for column in columns))):
        try:
            with rows_of(what.format(*row[:named])):
                decode(*row[named:])
        except CorruptRow as damage:
            yield str(damage)


def _whole(count: int, trials: bytes, sittings: str, measured_us: int) -> None:
    values = unpack(trials)
    if len(values) != count or len(run_length_decode(sittings, count)) not in (0, count):
        raise ValueError(f"its values are not the {count} that were stored")
    from_us(measured_us)
