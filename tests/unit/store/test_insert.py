"""Which result stands in the store, and what other programs read of an entry."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from etude.store.database import Store, open_store
from etude.store.insert import Origin
from etude.store.schema import entry
from support.stored import content, point


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "store.sqlite") as opened:
        yield opened


@pytest.mark.parametrize(
    ("values", "trials", "how", "kept"),
    [
        ((1.0, 2.0), 2, "already", (1.0, 2.0)),
        ((1.0, 3.0), 2, "replaced", (1.0, 3.0)),
        ((1.0, 2.0, 3.0), 3, "replaced", (1.0, 2.0, 3.0)),
        ((1.0,), 1, "older", (1.0, 2.0)),
    ],
)
def test_a_result_is_replaced_unless_it_has_fewer_trials(
    store: Store, values: tuple[float, ...], trials: int, how: str, kept: tuple[float, ...]
) -> None:
    store.put(content(1, point((1.0, 2.0))), Origin())
    assert store.put(content(1, point(values), trials=trials), Origin()).how == how
    assert [each.values for each in store.entries()] == [kept]


def test_an_entry_holds_the_statistics_of_its_sample(store: Store) -> None:
    values = (1.0, 2.0, 4.0, 9.0)
    store.put(content(1, point(values), point((5.0,), test="once"), trials=5), Origin())
    columns = (
        entry.c.count,
        entry.c.mean,
        entry.c.deviation,
        entry.c.median,
        entry.c.lowest,
        entry.c.highest,
    )
    with store._engine.connect() as connection:
        several, once = connection.execute(select(*columns).order_by(entry.c.count.desc())).all()
    assert several == pytest.approx((4, 4.0, statistics.stdev(values), 3.0, 1.0, 9.0))
    assert tuple(once) == (1, 5.0, None, 5.0, 5.0, 5.0)
