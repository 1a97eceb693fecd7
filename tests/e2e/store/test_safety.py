"""What must not harm a store: writers at once, a database that goes away, older and newer tables, damage."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import create_engine, event, text

from etude.errors import InputError, MachineRefuses
from etude.store import insert
from etude.store.content import Content
from etude.store.database import WRITING, Store, engine_of, migrate, open_store, url_of
from etude.store.insert import Origin
from etude.store.schema import METADATA, VERSION_TABLE
from support.places import TESTS
from support.postgres import Postgres, needs_postgres
from support.stored import SMALL, content, point

pytestmark = pytest.mark.beside


def process(place: str, script: str) -> subprocess.Popen[str]:
    """A process that has opened the store at `place` and waits for a line before it runs the script."""
    prelude = """
import os, signal, sys
from etude.store import insert
from etude.store.insert import Origin
from etude.store.database import Store
from support.stored import content, point
store = Store(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    started = subprocess.Popen(
        [sys.executable, "-c", prelude + script, place],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert started.stdout is not None
    assert started.stdout.readline() == "ready\n", started.stderr and started.stderr.read()
    return started


def test_writers_at_once_make_one_store_and_add_each_result_once(place: str) -> None:
    script = """
for number in range(1, 9):
    words = tuple(point(test=f"test {each % 7}") for each in range(number, number + 7))
    added = store.put(content(number, *words), Origin("abcdef", tags=("a", "b")))
    print(added.result, added.new)
"""
    writers = [process(place, script) for _ in range(3)]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("\n")
        writer.stdin.flush()
    said = [writer.communicate(timeout=120) for writer in writers]
    assert [error for _, error in said] == [""] * 3
    told = [line.split() for out, _ in said for line in out.splitlines()]
    assert sorted(new for _, new in told) == ["False"] * 16 + ["True"] * 8, "each was new to one of them"
    with open_store(place) as store:
        assert len(store.results()) == 8
        assert len(store.entries()) == 56
        assert len(store.tests()) == 7
        assert store.check() == ()


@pytest.mark.quick
def test_a_writer_that_is_killed_leaves_nothing_half_added(place: str) -> None:
    with open_store(place) as store:
        store.put(content(1), Origin())
        script = """
whole = insert._write
def half(connection, number, content):
    whole(connection, number, content)
    os.kill(os.getpid(), signal.SIGKILL)
insert._write = half
store.put(content(2), Origin("abcdef", tags=("a",)))
"""
        killed = process(place, script)
        killed.communicate("\n", timeout=60)
        assert killed.returncode == -signal.SIGKILL
        assert [result.number for result in store.results()] == [1]
        assert store.check() == ()
        assert store.put(content(2), Origin()).new


@needs_postgres
def test_a_database_that_goes_away_in_mid_write_and_comes_back_loses_nothing(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, times = insert._write, []

    def cut(connection: object, number: int, content: Content) -> None:
        whole(connection, number, content)  # type: ignore[arg-type]
        times.append(number)
        if len(times) == 2:
            postgres.stop()

    monkeypatch.setattr(insert, "_write", cut)
    with Store(postgres.database(), pause=lambda _: postgres.start()) as store:
        store.put(content(1), Origin())
        assert store.put(content(2), Origin("abcdef")).new
        assert len(times) == 3, "it was written again"
        assert [result.commit for result in store.results()] == [None, "abcdef"]
        assert store.check() == ()


@needs_postgres
def test_a_database_that_stays_away_is_said_in_one_line_without_its_password(postgres: Postgres) -> None:
    pauses: list[float] = []
    with Store(postgres.database(), pause=pauses.append) as store:
        store.put(content(1), Origin())
        postgres.stop()
        try:
            with pytest.raises(MachineRefuses, match=r"/results/2 ") as refused:
                store.put(content(2), Origin())
        finally:
            postgres.start()
        assert "\n" not in str(refused.value)
        assert "secret" not in str(refused.value)
        assert 1 < len(pauses) < 10
        assert [result.number for result in store.results()] == [1]


@needs_postgres
def test_a_database_that_is_not_there_is_not_waited_for(postgres: Postgres) -> None:
    pauses: list[float] = []
    with (
        Store(postgres.url("nowhere"), pause=pauses.append) as store,
        pytest.raises(InputError, match="createdb"),
    ):
        store.put(content(1), Origin())
    assert pauses == []


def test_a_locked_file_is_said(tmp_path: Path) -> None:
    place = tmp_path / "store.sqlite"
    with Store(place, wait_s=0.01, pause=lambda _: None) as store:
        store.put(content(1), Origin())
        other = sqlite3.connect(place, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        try:
            with pytest.raises(MachineRefuses, match="locked; "):
                store.put(content(2), Origin())
        finally:
            other.close()
        assert store.put(content(2), Origin()).new


def test_a_full_disk_is_said_and_nothing_is_half_added(tmp_path: Path) -> None:
    with Store(tmp_path / "store.sqlite") as store:
        store.put(content(1), Origin())
        store.close()
        event.listen(
            store._engine, "connect", lambda connection, _: connection.execute("PRAGMA max_page_count = 40")
        )
        large = content(2, *(point(test=f"test {number}") for number in range(3000)))
        with pytest.raises(MachineRefuses, match=r"full; .*/results/2 "):
            store.put(large, Origin())
        assert [result.number for result in store.results()] == [1]
        assert store.tests() == ("sort",)
        assert store.check() == ()


def test_what_has_grown_replaces_what_was_there_and_an_older_copy_does_not(place: str) -> None:
    small = content(1, point((1.0,), test="old name"), trials=1)
    grown = content(1, point((1.0, 2.0)), point((3.0,), machine=SMALL), trials=3)
    with open_store(place) as store:
        number = store.put(small, Origin("abcdef", tags=("first",))).result
        replaced = store.put(grown, Origin(tags=("second",)))
        assert (replaced.result, replaced.new, replaced.how) == (number, False, "replaced")
        older = store.put(small, Origin())
        assert (older.new, older.how) == (False, "older")
        assert {(entry.values, entry.machine.name) for entry in store.entries()} == {
            ((1.0, 2.0), "big"),
            ((3.0,), "small"),
        }
        (result,) = store.results()
        assert (result.commit, result.tags, result.trials) == ("abcdef", ("first", "second"), 3)
        assert store.tests() == ("sort",), "what no entry has is not named"


def test_a_result_is_not_moved_to_another_commit_silently(place: str) -> None:
    with open_store(place) as store:
        store.put(content(1), Origin())
        store.put(content(1), Origin("abcdef"))
        with pytest.raises(InputError, match=r"result 1 .*abcdef, .*012345"):
            store.put(content(1), Origin("012345"))
        store.forget(1)
        assert store.put(content(1), Origin("012345")).result > 1, "a number is never given twice"
        with pytest.raises(InputError, match="no result 1"):
            store.forget(1)


def test_odd_names_come_back(place: str) -> None:
    names = ["a'b\"c", "ü ☃ \U0001f600", "two\nlines", "x" * 9000, "%s :name ?", "\ud800 and \0", ""]
    with open_store(place) as store:
        store.put(content(1, *(point(test=clean(name)) for name in names)), Origin())
        assert store.tests() == tuple(sorted(map(clean, names)))
        for name in names:
            assert len(store.history(name)) == 1


def clean(name: str) -> str:
    return name.replace("\ud800", "?").replace("\0", "\ufffd")


def test_a_result_of_thousands_of_tests_is_stored(place: str) -> None:
    points = tuple(point((float(number),), test=f"test {number}") for number in range(2500))
    with open_store(place) as store:
        store.put(content(1, *points), Origin())
        assert len(store.tests()) == 2500
        assert store.history("test 2400")[0].values == (2400.0,)


def at_revision(place: str, revision: str, do: Callable[[object], None]) -> None:
    """Tables of an older revision, with what `do` writes into them."""
    engine = engine_of(url_of(place))
    with engine.connect().execution_options(**{WRITING: True}) as connection, connection.begin():
        migrate(connection, place, revision)
        do(connection)
    engine.dispose()


def insert_by_hand(connection: object) -> None:
    """A result as revision 0001 kept it, in SQL that this Étude's code has no part in."""
    rows = Path(TESTS / "data" / "store" / "rows-0001.sql").read_text()
    hexadecimal = "000000000000f03f" + "0000000000000040"  # 1.0 and 2.0
    sqlite = connection.dialect.name == "sqlite"  # type: ignore[attr-defined]
    rows = rows.replace("BYTES", f"x'{hexadecimal}'" if sqlite else f"decode('{hexadecimal}', 'hex')")
    for statement in rows.split(";\n"):
        if statement.strip():
            connection.execute(text(statement))  # type: ignore[attr-defined]


def test_an_older_store_is_migrated_and_keeps_what_it_has(place: str) -> None:
    at_revision(place, "0001", insert_by_hand)
    with open_store(place) as store:
        (entry,) = store.history("sort")
        assert (entry.values, entry.commit, entry.machine.facts) == ((1.0, 2.0), "abcdef", (("cores", "4"),))
        assert entry.command is None
        assert store.marks() == ()
        assert store.check() == ()


def test_a_migration_that_fails_leaves_the_older_store_as_it_was(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_revision(place, "0001", insert_by_hand)
    from alembic.operations import Operations

    make, made = Operations.create_table, []

    def create_table(self: Operations, name: str, *columns: object, **options: object) -> object:
        made.append(name)
        if name == "note":
            raise OSError("no space")
        return make(self, name, *columns, **options)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        import alembic.op

        patch.setattr(alembic.op, "create_table", lambda *a, **k: create_table(alembic.op._proxy, *a, **k))
        with open_store(place) as store, pytest.raises(OSError, match="no space"):
            store.tests()
    assert made == ["mark", "note"]
    engine = create_engine(url_of(place))
    with engine.connect() as connection:
        assert connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar() == "0001"
    engine.dispose()
    with open_store(place) as store:
        assert store.tests() == ("sort",)


def test_a_newer_store_is_refused(place: str) -> None:
    with open_store(place) as store:
        store.put(content(1), Origin())
    engine = create_engine(url_of(place))
    with engine.begin() as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    engine.dispose()
    for do in (lambda store: store.tests(), lambda store: store.put(content(2), Origin())):
        with open_store(place) as store, pytest.raises(InputError, match="by a newer Étude"):
            do(store)


def test_the_migrations_make_what_the_code_knows(place: str) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    with open_store(place) as store:
        store.put(content(1), Origin())
    engine = create_engine(url_of(place))
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert compare_metadata(context, METADATA) == []
    engine.dispose()


def test_values_that_were_damaged_are_found(place: str) -> None:
    with open_store(place) as store:
        store.put(content(1), Origin())
        store.put(replace(content(2)), Origin())
        engine = create_engine(url_of(place))
        with engine.begin() as connection:
            connection.execute(text("UPDATE entry SET count = 7 WHERE result_id = 2"))
        engine.dispose()
        (wrong,) = store.check()
        assert re.match("result 2, entry 2: .* 7 ", wrong)
