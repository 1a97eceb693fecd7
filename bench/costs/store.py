"""What the store costs beside plain SQL on the same tables: one more result added to 10^5, the history of one test."""

from __future__ import annotations

import random
import sqlite3
import struct
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from etude.store.column_encoding import key, to_us
from etude.store.content import Content, Point
from etude.store.database import Store, engine_of, url_of
from etude.store.entry import Machine
from etude.store.insert import Origin, _members, _row, _said
from etude.store.schema import METADATA, entry, result, tag
from rows import BUILD, Row, at_most, interleave, ratios, spread
from support import postgres

RESULTS = 100_000
LENGTH = 500
METRICS = ("elapsed", "user", "system", "peak_memory")
TRIALS = 10
QUICK = 5
"""With so few rounds or fewer the store is a tenth as large: it shows that it runs."""
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
MACHINE = Machine("lab", key("lab"), (("cores", "8"),))
AT_ONCE = 5_000

HISTORY = """
SELECT r.id, t.name, m.name, m.unit, m.kind, e.machine_id, e.measured_us, e.trials, e.sittings,
       r.commit_id, r.committed_us, r.branch, r.source
FROM entry e JOIN test t ON t.id = e.test_id JOIN metric m ON m.id = e.metric_id JOIN result r ON r.id = e.result_id
WHERE t.key = {0} AND m.name = {0} ORDER BY r.committed_us"""
TAGS = """
SELECT tag.result_id, tag.word FROM tag WHERE tag.result_id IN (SELECT e.result_id FROM entry e
JOIN test t ON t.id = e.test_id JOIN metric m ON m.id = e.metric_id WHERE t.key = {0} AND m.name = {0})"""


def store(rounds: int) -> list[Row]:
    """Both questions, on SQLite and, where it is installed, on PostgreSQL; both wait for the disk at each commit."""
    results = RESULTS // 10 if rounds <= QUICK else RESULTS
    found = []
    with ExitStack() as ends:
        BUILD.mkdir(parents=True, exist_ok=True)
        file = Path(ends.enter_context(tempfile.TemporaryDirectory(dir=BUILD))) / "store.sqlite"
        sqlite = partial(sqlite3.connect, file, isolation_level=None)
        found += _rows("SQLite", str(file), results, rounds, sqlite, "?")
        if postgres.PROGRAMS:
            import psycopg

            url = ends.enter_context(postgres.Postgres(durable=True)).database()
            postgresql = partial(psycopg.connect, url, autocommit=True)
            found += _rows("PostgreSQL", url, results, rounds, postgresql, "%s")
    return found


def _rows(
    name: str, place: str, results: int, rounds: int, connect: Callable[[], Any], mark: str
) -> list[Row]:
    with Store(place) as opened:
        opened.put(_content(0, 1), _origin(0))
        _fill(place, results)
        with closing(connect()) as plain:
            return _compared(name, opened, plain, mark, results, rounds)


def _compared(name: str, opened: Store, plain: Any, mark: str, results: int, rounds: int) -> list[Row]:
    numbers = count(results)
    chosen = random.Random(1)
    begin = "BEGIN IMMEDIATE" if mark == "?" else "BEGIN"

    def history(ask: Callable[[str], int]) -> float:
        test = f"test {chosen.randrange(results // LENGTH)}"
        start = time.perf_counter()
        asked = ask(test)
        took = time.perf_counter() - start
        assert asked >= LENGTH, f"{asked} entries of {test}"
        return took

    def add(put: Callable[[Content, Origin], object]) -> float:
        number = next(numbers)
        made, origin = _content(number, results // LENGTH), _origin(number)
        start = time.perf_counter()
        put(made, origin)
        return time.perf_counter() - start

    parties = {
        "add": lambda: add(opened.put),
        "plain add": lambda: add(lambda made, origin: _plain_add(plain, mark, begin, made, origin)),
        "history": lambda: history(lambda test: len(opened.history(test))),
        "plain history": lambda: history(lambda test: _plain_history(plain, mark, test)),
    }
    for party in parties.values():
        party()  # caches filled, statements compiled
    found = interleave(parties, rounds)
    return [
        _row_of(f"{name}, {results} results: {what}", found[short], found[f"plain {short}"])
        for what, short in (("add one", "add"), (f"history of {LENGTH}", "history"))
    ]


def _row_of(what: str, ours: list[float], plain: list[float]) -> Row:
    took = spread([1e3 * s for s in ours])
    return at_most(f"store on {what}: {took} ms", "plain SQL, same tables", ratios(ours, plain), 2)


def _content(number: int, tests: int) -> Content:
    generator = random.Random(number)
    measured = BEGIN + timedelta(minutes=number)
    points = []
    for metric in METRICS:
        unit = "B" if metric == "peak_memory" else "s"
        values = tuple(generator.gauss(1.0, 0.02) for _ in range(TRIALS))
        ones = (1,) * TRIALS
        points.append(Point(f"test {number % tests}", metric, unit, "cost", MACHINE, measured, values, ones))
    return Content(f"/results/{number}", key("origin", str(number)), TRIALS, tuple(points))


def _origin(number: int) -> Origin:
    committed = BEGIN + timedelta(minutes=number - 5)
    return Origin(key(str(number))[:40], committed, "main", ("nightly",) if number % 10 == 0 else ())


def _fill(place: str, results: int) -> None:
    """The other results, many at once, as no user adds them, and with the values of few: in little time."""
    engine = engine_of(url_of(place))
    some = [_content(number, 1) for number in range(100)]
    values = [{point.metric: _row(point) for point in each.points} for each in some]
    members = [_members(each) for each in some]
    with engine.begin() as connection:
        machine_id = connection.execute(entry.select().limit(1)).mappings().one()["machine_id"]
        tests = _tests(connection, results // LENGTH)
        metrics = {each: number for number, each in connection.exec_driver_sql("SELECT id, name FROM metric")}
        for first in range(1, results, AT_ONCE):
            rows: dict[Any, list[dict[str, Any]]] = {result: [], entry: [], tag: []}
            for number in range(first, min(first + AT_ONCE, results)):
                origin, measured = _origin(number), to_us(BEGIN + timedelta(minutes=number))
                ids = {"result_id": number + 1, "test_id": tests[f"test {number % (results // LENGTH)}"]}
                ids |= {"machine_id": machine_id, "measured_us": measured}
                this = {"origin": key("origin", str(number)), **members[number % 100], **_said(origin)}
                rows[result].append(this | {"measured_us": measured})
                rows[tag] += [{"result_id": number + 1, "word": word} for word in origin.tags]
                rows[entry] += [
                    row | ids | {"metric_id": metrics[name]} for name, row in values[number % 100].items()
                ]
            for table, lines in rows.items():
                if lines:
                    connection.execute(table.insert(), lines)
    with engine.connect() as connection:
        connection.exec_driver_sql("ANALYZE")
        connection.commit()
    engine.dispose()


def _tests(connection: Any, count: int) -> dict[str, int]:
    """All tests, made."""
    table = METADATA.tables["test"]
    names = [f"test {number}" for number in range(1, count)]
    connection.execute(table.insert(), [{"key": key(name), "name": name} for name in names])
    return {row.name: row.id for row in connection.execute(table.select())}


def _plain_history(plain: Any, mark: str, test: str) -> int:
    """The same rows by hand; values as numbers, no more."""
    words = (key(test), "elapsed")
    rows = plain.execute(HISTORY.format(mark), words).fetchall()
    tags: dict[int, list[str]] = {}
    for number, word in plain.execute(TAGS.format(mark), words):
        tags.setdefault(number, []).append(word)
    return len([(row, struct.unpack(f"<{len(row[7]) // 8}d", row[7])) for row in rows])


def _plain_add(plain: Any, mark: str, begin: str, made: Content, origin: Origin) -> None:
    """The same rows by hand, in one transaction."""

    def insert(table: str, row: dict[str, Any], end: str = "") -> Any:
        names, marks = ", ".join(row), ", ".join([mark] * len(row))
        return plain.execute(f"INSERT INTO {table} ({names}) VALUES ({marks}) {end}", tuple(row.values()))

    def number(table: str, *words: str) -> int:
        asked = plain.execute(f"SELECT id FROM {table} WHERE key = {mark}", (key(*words),))
        return int(asked.fetchone()[0])

    plain.execute(begin)
    row = {"origin": made.origin} | _members(made) | _said(origin)
    (result_id,) = insert("result", row, "RETURNING id").fetchone()
    for word in origin.tags:
        insert("tag", {"result_id": result_id, "word": word})
    for point in made.points:
        ids = {
            "result_id": result_id,
            "test_id": number("test", point.test),
            "metric_id": number("metric", point.metric, point.unit, point.kind),
            "machine_id": number("machine", point.machine.name, point.machine.digest),
        }
        insert("entry", ids | _row(point))
    plain.execute("COMMIT")
