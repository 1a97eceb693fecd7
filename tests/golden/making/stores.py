"""Stores, bundles, sweeps, journals of pools, and what `etude load` printed."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text

from etude.cli.main import main
from etude.cluster.pool.job import Job, JobEnd
from etude.cluster.pool.journal import Journal
from etude.program import engine_path
from etude.store.database import WRITING, engine_of, migrate, open_store, url_of
from etude.store.entry import Machine
from golden.corpus import lay_out
from golden.making.machines import homeless, settle
from support.made_histories import commit, fill, history, on_another
from support.places import DATA
from unit.iolab.conftest import Laboratory

UPGRADED = Machine("host-a", "d2", (("kernel", "6.2"), ("processor", "Epyc")))
OTHER = Machine("host-b", "d3", (("kernel", "6.1"), ("processor", "Xeon")))
ADDED_US = 1772366400000000
"""When all of them were added: 2026-03-01 12:00."""


def settled(path: Path) -> None:
    """A store whose rows do not say when they were written, and in which nothing is left of how they were."""
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE result SET added_us = ?", (ADDED_US,))
        with suppress(sqlite3.OperationalError):
            connection.execute("UPDATE mark SET marked_us = ?", (ADDED_US,))
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("VACUUM")
    connection.close()


def with_steps(path: Path) -> None:
    """A step, another machine, tags, a mark, and a second metric and test."""
    made = on_another(history(60, {40: 1.08}, noise=0.005), UPGRADED, 50)
    made[30], made[55] = replace(made[30], tags=("v1",)), replace(made[55], tags=("v2",))
    with open_store(path) as store:
        fill(store, [*made, *history(24, machine=OTHER, seed=3)])
        fill(store, history(40, {20: 0.9}, seed=4, test="compile", metric="user"))
        store.mark("compile", None, commit(20), "a new compiler")
    settled(path)


def small(path: Path) -> None:
    with open_store(path) as store:
        fill(store, history(3))
    settled(path)


def of_results(path: Path) -> None:
    """Results directories and a file of another program, as `etude store add` adds them."""
    place = path.parent / "results"
    for number, name in enumerate(("bench/plain", "run/plain", "bench/boots", "readers/hyperfine-1.json")):
        found = lay_out(name, place)
        with open_store(path) as store:
            host = "lab-9" if found.is_file() else None
            store.add(found, commit=commit(number), branch="main", tags=("nightly",), machine=host)
    with sqlite3.connect(path) as connection:
        connection.execute(
            "UPDATE result SET source = replace(source, ?, '/results')", (str(place.resolve()),)
        )
    settled(path)


def revision_1(path: Path) -> None:
    """As the first revision kept it."""
    engine = engine_of(url_of(str(path)))
    rows = (
        (DATA / "store" / "rows-0001.sql").read_text().replace("BYTES", "x'000000000000f03f0000000000000040'")
    )
    with engine.connect().execution_options(**{WRITING: True}) as connection, connection.begin():
        migrate(connection, str(path), "0001")
        for statement in filter(str.strip, rows.split(";\n")):
            connection.execute(text(statement))
    engine.dispose()
    settled(path)


def revision_9(path: Path) -> None:
    """Of an Étude to come."""
    small(path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE etude_version SET version_num = '0009'")
    connection.close()


def damaged(path: Path) -> None:
    """A row whose values are cut short."""
    small(path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE entry SET trials = substr(trials, 1, 12) WHERE id = 2")
    connection.close()


# --- bundles ---------------------------------------------------------------------------------------


def bundle(path: Path, *names: str, options: tuple[str, ...] = ()) -> None:
    place = path.parent / "packed"
    found = [str(lay_out(name, place)) for name in names]
    main(["bundle", *found, *options, "-o", str(path)])


def spoilt_bundle(path: Path) -> None:
    """A directory of which one file was changed, one removed and one added."""
    bundle(path, "bench/plain")
    results = path / "results" / "plain"
    (results / "a" / "results.jsonl").open("a").write("\n")
    next((results / "b").glob("*")).unlink()
    (path / "more.txt").write_text("more\n")


def newer_bundle(path: Path) -> None:
    bundle(path, "bench/older")
    index = path / "bundle.json"
    index.write_text(index.read_text().replace('"version": 1', '"version": 2'))
    sums = subprocess.run(
        ["sha256sum", "bundle.json"], cwd=path, capture_output=True, text=True, check=True
    ).stdout
    lines = [line for line in (path / "SHA256SUMS").read_text().splitlines(True) if "bundle.json" not in line]
    (path / "SHA256SUMS").write_text("".join([*lines, sums]))


# --- sweeps, journals, load ------------------------------------------------------------------------


def sweep(path: Path, **options: object) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("etude.iolab.sweeps.beside_engine", lambda name: name)
        patch.setattr("etude.iolab.sweeps.engine_path", lambda: "engine")
        directory = path.parent / "laboratory"
        directory.mkdir(exist_ok=True)
        shutil.copytree(Laboratory(directory).sweep(**options).directory, path)
        shutil.rmtree(directory)
    settle(path)
    homeless(path)


def journal(path: Path) -> None:
    """Jobs that are done, lost, and under way; the last line is torn."""
    path.mkdir()
    found = Journal(path)
    for number, how in enumerate(("done", "node-lost", "no-space", None), 1):
        place = path / f".pool/part-{number:04}"
        job = Job(
            f"part {number}", ("etude", "part", str(number)), place, Path("/home/me"), avoid=frozenset({"n1"})
        )
        found.submitting(job, f"blocks {number}", 100.0 * number)
        found.submitted(job, str(40 + number))
        if how is not None:
            times = 100.0 * number, 100.0 * number + 5, 100.0 * number + 65.5
            found.ended(job, JobEnd(str(40 + number), how, 0 if how == "done" else None, ("n2",), "", *times))  # type: ignore[arg-type]
    with (path / "pool.jsonl").open("a") as file:
        file.write('{"event": "ended", "pla')
    homeless(path)


def offered(path: Path) -> None:
    """A real run of a second, on a known server: other numbers each time."""
    words = ["--workers", "2", "--law", "exponential", "--mean-ms", "5", "--listen", "127.0.0.1:18777"]
    server = subprocess.Popen([engine_path(), "known-server", *words])
    time.sleep(1)
    try:
        url = ["--url", "http://127.0.0.1:18777", "--rate", "100", "--seconds", "2", "--window", "0.5"]
        done = subprocess.run([engine_path(), "load", *url], capture_output=True, text=True, check=True)
    finally:
        server.kill()
        server.wait()
    path.write_text(done.stdout)


MADE: Mapping[str, Callable[[Path], None]] = {
    "stores/history.sqlite": with_steps,
    "stores/small.sqlite": small,
    "stores/results.sqlite": of_results,
    "stores/revision-0001.sqlite": revision_1,
    "stores/revision-0009.sqlite": revision_9,
    "stores/damaged.sqlite": damaged,
    "bundles/two.tar.gz": lambda path: bundle(path, "bench/plain", "run/plain"),
    "bundles/anonymous.tar.zst": lambda path: bundle(path, "run/threads", options=("--anonymous",)),
    "bundles/no-logs": lambda path: bundle(path, "bench/failed", options=("--no-logs",)),
    "bundles/spoilt": spoilt_bundle,
    "bundles/newer": newer_bundle,
    "io/buffers": lambda path: sweep(path, buffers="4K..4M", curves=["untouched", "touched"], trials=4),
    "io/totals": lambda path: sweep(path, totals="4K..4M", trials=4),
    "pools/parts": journal,
    "load/known-server.jsonl": offered,
}
