"""Histories made for tests: a result a day, of a few trials each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np

from etude.store.content import Content, Point
from etude.store.database import Store
from etude.store.entry import Entry, Machine
from etude.store.insert import Origin

HOST = Machine("host-a", "d1", (("kernel", "6.1"), ("processor", "Epyc")))
BEGIN = datetime(2026, 1, 1, 12, tzinfo=UTC)


def commit(number: int) -> str:
    return f"{number:04x}" * 10


def history(
    n: int = 200,
    steps: Mapping[int, float] = {},
    *,
    seed: int = 1,
    noise: float = 0.01,
    trials: int = 5,
    machine: Machine = HOST,
    kind: str = "cost",
    test: str = "sort",
    metric: str = "elapsed",
) -> list[Entry]:
    """n results of about 0.5 s; steps: places and the factors by which all from there on are longer."""
    random = np.random.default_rng([seed, n])
    found = []
    factor = 0.5
    for day in range(n):
        factor *= steps.get(day, 1.0)
        level = factor * np.exp(noise * random.standard_normal())
        values = level * np.exp(noise / 2 * random.standard_normal(trials))
        when = BEGIN + timedelta(days=day)
        found.append(
            Entry(
                result=day + 1,
                test=test,
                metric=metric,
                unit="s",
                kind=kind,
                machine=machine,
                measured=when + timedelta(hours=1),
                values=tuple(values.tolist()),
                commit=commit(day),
                committed=when,
                branch="main",
                source=f"/results/{day}",
            )
        )
    return found


def on_another(entries: Sequence[Entry], machine: Machine, from_: int) -> list[Entry]:
    """The same with results from that place on made on another machine."""
    return [replace(e, machine=machine) if place >= from_ else e for place, e in enumerate(entries)]


def fill(store: Store, entries: Sequence[Entry]) -> None:
    """Put them into a store, each as a result of its own."""
    for e in entries:
        sittings = (1,) * len(e.values)
        point = Point(e.test, e.metric, e.unit, e.kind, e.machine, e.measured, e.values, sittings)
        content = Content(e.source, f"{e.source} {e.machine.name} {e.test}", len(e.values), (point,))
        store.put(content, Origin(e.commit, e.committed, e.branch, e.tags))
