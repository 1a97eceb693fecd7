"""A damaged store: every question is answered or refused in one line, and `check` finds each damaged row."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from etude.errors import EtudeError, InputError
from etude.store import database as store_database
from etude.store.database import Store, open_store
from support.stored import directory

DECODED = {
    "machine": ("facts",),
    "result": ("measured_us", "added_us", "committed_us"),
    "entry": ("measured_us", "count", "trials", "sittings"),
    "mark": ("marked_us",),
}
"""The columns that are more than a text or a number."""
HOSTILE: tuple[Any, ...] = (
    "abc",
    "1x99999999999",
    "[1]",
    "\u2603",
    b"\xff" * 7,
    -(2**63),
    2**63 - 1,
    1.5,
    float("inf"),
)
QUESTIONS: tuple[Callable[[Store], object], ...] = (
    Store.results,
    Store.entries,
    lambda store: store.history("sort"),
    Store.tests,
    Store.machines,
    Store.marks,
    Store.check,
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A store of two results, as a file."""
    place = tmp_path_factory.mktemp("whole")
    with open_store(place / "s") as store:
        for name, values in (("a", [1.0, 2.0]), ("b", [3.0])):
            store.add(directory(place / name, {"sort": values}, name=name), commit=f"c0ffee{name}")
        store.mark("sort", None, "c0ffeea", "a newer compiler")
    return (place / "s").read_bytes()


def ask(path: Path) -> list[str]:
    """Ask all that can be asked; what was refused."""
    refused = []
    for question in QUESTIONS:
        with open_store(path) as store:
            try:
                question(store)
            except EtudeError as error:
                refused.append(str(error))
    return refused


@pytest.mark.parametrize(
    ("table", "column"), [(table, name) for table, names in DECODED.items() for name in names]
)
@pytest.mark.parametrize("value", HOSTILE, ids=repr)
def test_a_damaged_row_is_named_by_check_and_refused_by_who_reads_it(
    whole: bytes, tmp_path: Path, table: str, column: str, value: Any
) -> None:
    path = tmp_path / "s"
    path.write_bytes(whole)
    with sqlite3.connect(path) as damaging:
        damaging.execute(f"UPDATE {table} SET {column} = ? WHERE id = 1", (value,))
    damaging.close()
    refused = ask(path)
    assert all(str(path) in line and "\n" not in line for line in refused)
    with open_store(path) as store:
        found = store.check()
    if refused:
        assert any(table in line for line in found)
        assert len([line for line in found if not line.startswith("SQLite")]) == 1, "the other rows are whole"


@pytest.mark.parametrize("seed", range(60))
def test_a_store_of_which_bytes_are_others_is_read_or_refused(
    whole: bytes, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    damaged = bytearray(whole)
    for _ in range(chance.randrange(1, 60)):
        damaged[chance.randrange(len(damaged))] = chance.randrange(256)
    path = tmp_path / "s"
    path.write_bytes(damaged[: chance.choice([len(damaged), chance.randrange(len(damaged))])])
    refused = ask(path)
    assert all(str(path) in line for line in refused)


def test_a_text_that_is_no_utf_8_is_a_damaged_store(whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.write_bytes(whole)
    with sqlite3.connect(path) as database:
        database.execute("update machine set digest = cast(x'ff80' as text)")
    database.close()
    with open_store(path) as store, pytest.raises(InputError, match="damaged"):
        store.history("sort")


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE etude_version SET version_num = '0001x'",
        "UPDATE etude_version SET version_num = ''",
        "UPDATE etude_version SET version_num = x'30303032'",
        "INSERT INTO etude_version VALUES ('0001')",
        "UPDATE etude_version SET version_num = '0002'",
        "DELETE FROM etude_version",
    ],
)
def test_a_revision_that_is_none_is_a_damaged_store(whole: bytes, tmp_path: Path, change: str) -> None:
    path = tmp_path / "s"
    path.write_bytes(whole)
    with sqlite3.connect(path) as database:
        database.execute(change)
    database.close()
    refused = []
    with open_store(path) as store:
        try:
            store.add(directory(tmp_path / "c", {"sort": [1.0]}, name="c"), commit="c0ffeec")
        except InputError as error:
            refused.append(str(error))
    assert all(str(path) in line and "\n" not in line for line in (*refused, *ask(path)))


VIEWS = {
    "result": "SELECT r0.* FROM r0, c WHERE x < 0",
    "entry": "SELECT r0.* FROM r0, c WHERE x < 0",
    "etude_version": "SELECT r0.* FROM r0, c",
    "Test": "SELECT r0.* FROM r0, c",
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("table", VIEWS)
def test_a_view_in_place_of_a_table_is_refused(tmp_path: Path, whole: bytes, table: str) -> None:
    path = tmp_path / "s"
    path.write_bytes(whole)
    with sqlite3.connect(path) as database:
        database.execute(f"ALTER TABLE {table} RENAME TO r0")
        without_end = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"
        database.execute(f"CREATE VIEW {table} AS {without_end} {VIEWS[table]}")
    with open_store(path) as store:
        for question in QUESTIONS:
            with pytest.raises(InputError, match=f"{path}: .*{table.lower()} is a view"):
                question(store)
        with pytest.raises(InputError, match=f"{table.lower()} is a view"):
            store.mark("sort", None, "c0ffeea", "why")


@pytest.mark.parametrize("column", ["entry.trials", "entry.sittings", "test.name", "machine.facts"])
def test_a_row_that_is_huge_is_not_read(
    tmp_path: Path, whole: bytes, column: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s"
    path.write_bytes(whole)
    table, name = column.split(".")
    with sqlite3.connect(path) as database:
        database.execute(f"UPDATE {table} SET {name} = zeroblob(2000000)")
    monkeypatch.setattr(store_database, "MAX_ROW_BYTES", 1_000_000)
    with open_store(path) as store, pytest.raises(InputError, match=f"{path}: .*too big"):
        store.entries()
