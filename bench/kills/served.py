"""Cases of bench/kill.py with a database or a cluster: stores in SQLite and in PostgreSQL, a surface over Slurm."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

from psycopg import connect

from costs.reading import results
from kills.cases import ETUDE, Case, Place, Surface, below
from support.postgres import Postgres
from support.slurm_cluster import Cluster

POOLED = """\
[response]
command = "sh work {a}{b}; echo v={b}{a}"
metric = "v"
pattern = "v=([0-9]+)"
unit = "B"
precision = "50 %"
[factor.a]
levels = [1, 2]
[factor.b]
levels = [1, 2]
[budget]
cell = "30 s"
"""
ENTRIES = """\
select r.source, t.name, m.name, e.trials from entry e join result r on r.id = e.result_id
join test t on t.id = e.test_id join metric m on m.id = e.metric_id"""


class Store(Case):
    """Three results into SQLite; killed within a transaction."""

    verb = "store"
    name = "store-sqlite"
    targets = ("etude", "group")
    measures = False

    def prepare(self, place: Place) -> None:
        for number in range(3):
            made = results(place.root / f"made-{number}", 40, 30) / "experiment.json"
            made.write_text(made.read_text().replace('"made"', f'"made-{number}"'))

    def store(self, place: Place) -> str:
        return str(place.root / "s.sqlite")

    def begin(self, place: Place) -> list[str]:
        made = (f"made-{number}" for number in range(3))
        return [*ETUDE, "store", "add", *made, "--store", self.store(place), "--commit", "abcdef"]

    def begun(self, place: Place) -> bool:
        return False

    def reached(self, place: Place) -> bool:
        if not Path(self.store(place)).exists():
            return False
        with closing(sqlite3.connect(self.store(place), timeout=0, isolation_level=None)) as database:
            try:
                database.execute("begin immediate")
            except sqlite3.OperationalError:
                return True
        return False

    def asked(self, place: Place) -> Sequence[Sequence[Any]]:
        if not Path(self.store(place)).exists():
            return ()
        with closing(sqlite3.connect(self.store(place))) as database:
            if not database.execute("select 1 from sqlite_master where name = 'entry'").fetchone():
                return ()
            (state,) = database.execute("pragma integrity_check").fetchone()
            return [*database.execute(ENTRIES), *([("integrity", state, "", 0)] if state != "ok" else [])]

    def kept(self, place: Place) -> Iterator[tuple[tuple[Any, ...], Any]]:
        for source, test, metric, trials in self.asked(place):
            yield (os.path.basename(source), test, metric), trials

    def on_disk(self, place: Place) -> Counter[str]:
        return Counter(map(repr, self.keys(place)))

    def files(self, place: Place) -> set[str]:
        return {path for path in super().files(place) if not path.startswith("made-")}


class StorePostgresql(Store):
    """The same into a PostgreSQL of the harness, a new database for each run."""

    name = "store-postgresql"

    def open(self, stack: ExitStack) -> None:
        self.server = stack.enter_context(Postgres())
        self.watching = stack.enter_context(connect(self.server.url(), autocommit=True))

    def prepare(self, place: Place) -> None:
        super().prepare(place)
        self.url = self.server.database()

    def store(self, place: Place) -> str:
        return self.url

    def reached(self, place: Place) -> bool:
        name = self.url.rsplit("/", 1)[1]
        asked = "select 1 from pg_stat_activity where datname = %s and backend_xid is not null"
        return self.watching.execute(asked, [name]).fetchone() is not None

    def asked(self, place: Place) -> Sequence[Sequence[Any]]:
        with connect(self.url) as database:
            if database.execute("select to_regclass('entry')").fetchone() == (None,):
                return ()
            return database.execute(ENTRIES).fetchall()


class Pool(Surface):
    """A surface over two nodes of a Slurm of the harness; jobs go on where Étude is killed."""

    verb = name = "pool"
    targets = ("etude", "program", "group")
    words = ("surface", "surface.toml", "-q", "--pool", "slurm,partition=bench")

    def open(self, stack: ExitStack) -> None:
        self.cluster = stack.enter_context(Cluster(nodes=2))
        names = ("PATH", "SLURM_CONF")
        self.environment = {name: self.cluster.environment[name] for name in names}

    def prepare(self, place: Place) -> None:
        super().prepare(place)
        (place.root / "surface.toml").write_text(POOLED)

    def clean(self, place: Place) -> None:
        self.cluster.tidy()

    def members(self, etude: int) -> list[int]:
        """With what jobs run on the nodes."""
        nodes = filter(None, map(self.cluster.first_process, self.cluster.nodes))
        return below(etude) + [pid for node in nodes for pid in below(node) if not of_slurm(pid)]


def of_slurm(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().startswith("slurm")
    return True


SERVED: Sequence[Case] = (Store(), StorePostgresql(), Pool())
