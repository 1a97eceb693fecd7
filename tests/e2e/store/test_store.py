"""The store, the same on SQLite and on a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from etude.errors import InputError
from etude.store.database import Store, open_store
from etude.store.entry import Selector
from etude.store.insert import Origin
from support.stored import BEGIN, BIG, SMALL, content, directory, point

pytestmark = pytest.mark.beside


@pytest.fixture
def store(place: str) -> Iterator[Store]:
    with open_store(place) as opened:
        yield opened


@pytest.mark.quick
def test_a_directory_comes_back_as_entries(store: Store, tmp_path: Path) -> None:
    results = directory(tmp_path / "r", {"sort": [1.0, 1.5], "scan": [2.0]})
    committed = datetime(2025, 12, 31, 12, tzinfo=UTC)
    added = store.add(results, commit="abcdef", committed=committed, branch="main", tags=("v1", "good"))
    assert (added.result, added.new, added.how) == (1, True, "added")
    (entry,) = store.history("sort")
    assert (entry.result, entry.test, entry.metric, entry.unit, entry.kind) == (
        1,
        "sort",
        "elapsed",
        "s",
        "cost",
    )
    assert entry.values == (1.0, 1.5)
    assert entry.sittings == (1, 1)
    assert entry.measured == datetime(2026, 1, 1, 0, 0, 1, 500000, tzinfo=UTC)
    assert (entry.commit, entry.committed, entry.branch) == ("abcdef", committed, "main")
    assert (entry.tags, entry.source, entry.command) == (("good", "v1"), str(results), "sort")
    assert entry.machine.name == "here"
    assert dict(entry.machine.facts)["processor"] == "Fast 3"
    assert store.tests() == ("scan", "sort")
    assert store.machines() == (entry.machine,)


def test_the_same_directory_is_not_added_twice(store: Store, tmp_path: Path) -> None:
    results = directory(tmp_path / "r", {"sort": [1.0, 1.5]})
    first, second = store.add(results), store.add(results)
    assert (second.result, second.new, second.how) == (first.result, False, "already")
    assert len(store.entries()) == 1


@pytest.mark.quick
def test_a_history_is_ordered_by_commit_where_all_have_one(store: Store) -> None:
    for number, days in ((1, 5), (2, 3), (3, 4)):
        store.put(content(number), Origin(f"commit{number}", BEGIN + timedelta(days=days)))
    assert [entry.result for entry in store.history("sort")] == [2, 3, 1]
    store.put(content(4), Origin())
    assert [entry.result for entry in store.history("sort")] == [1, 2, 3, 4], (
        "else by when they were measured"
    )


def test_entries_are_chosen_by_all_that_is_given(store: Store) -> None:
    both = (point((1.0,)), point((3.0,), machine=SMALL), point((9.0,), metric="user"))
    store.put(content(1, *both), Origin("abcdef1", BEGIN, "main", ("v1",)))
    store.put(content(2), Origin("abcdef2", BEGIN + timedelta(days=9), "side"))

    def chosen(**members: object) -> list[tuple[int, str, str]]:
        found = store.entries(Selector(**members))  # type: ignore[arg-type]
        return sorted((each.result, each.metric, each.machine.name) for each in found)

    assert chosen(result=2) == [(2, "elapsed", "big")]
    assert chosen(commit="abcdef2") == [(2, "elapsed", "big")]
    assert len(chosen(commit="abcd")) == 4
    assert chosen(tag="v1", metric="user") == [(1, "user", "big")]
    assert chosen(branch="side") == [(2, "elapsed", "big")]
    assert chosen(machine=SMALL.digest) == chosen(machine="small") == [(1, "elapsed", "small")]
    assert chosen(since=BEGIN + timedelta(days=9)) == [(2, "elapsed", "big")]
    assert len(chosen(until=BEGIN)) == 3
    assert chosen(test="none") == []
    assert len(store.history("sort", "elapsed", machine=BIG.name)) == 2


def test_a_test_or_metric_that_is_not_there_is_said_with_what_is(store: Store) -> None:
    store.put(content(1, point(metric="user"), point(metric="system")), Origin())
    with pytest.raises(InputError, match="no test 'srt'"):
        store.history("srt")
    with pytest.raises(InputError, match=r"'elapsd'; .* system, user"):
        store.history("sort", "elapsd")
    with pytest.raises(InputError, match=r"several .* system, user"):
        store.history("sort")


@pytest.mark.parametrize(
    "values",
    [(1.7e308, 1.7e308), (-1.7e308, 1.7e308), (5e-324,), (0.0, -0.0, 1e-300), tuple(map(float, range(5000)))],
    ids=["largest", "apart", "smallest", "zeros", "many"],
)
def test_any_values_come_back_exactly(store: Store, values: tuple[float, ...]) -> None:
    store.put(content(1, point(values)), Origin())
    assert [entry.values for entry in store.history("sort")] == [values]
    assert store.check() == ()


def test_marks_and_notes_are_kept(store: Store) -> None:
    store.mark("sort", None, "abcd", "new input")
    store.mark("sort", None, "abcd", "larger input")
    assert [(m.test, m.metric, m.commit, m.why) for m in store.marks()] == [
        ("sort", None, "abcd", "larger input")
    ]
    assert store.recall("backtest") is None
    store.remember("backtest", "{}")
    store.remember("backtest", "[]")
    assert store.recall("backtest") == "[]"


def test_reading_makes_no_store(store: Store) -> None:
    with pytest.raises(InputError, match="etude store add"):
        store.tests()
    assert not Path(store.where).exists()
