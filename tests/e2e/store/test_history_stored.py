"""Histories of 200 commits out of a store, the same on SQLite and on a real PostgreSQL; and one that is measured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from etude.store.database import open_store
from support.made_histories import commit, fill, history
from support.postgres import Postgres, needs_postgres


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with Postgres() as server:
        yield server


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=needs_postgres)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a store can be made."""
    if request.param == "sqlite":
        return str(tmp_path / "store.sqlite")
    server: Postgres = request.getfixturevalue("postgres")
    return server.database()


def etude(*arguments: str, directory: Path) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "etude.cli.main", *arguments]
    environment = {name: value for name, value in os.environ.items() if name != "ETUDE_STORE"}
    return subprocess.run(
        line, cwd=directory, env=environment, capture_output=True, text=True, check=False, timeout=120
    )


def test_a_known_step_is_found_at_its_commit_and_a_flat_history_has_none(place: str, tmp_path: Path) -> None:
    flat = history(200, seed=5, test="flat")
    with open_store(place) as store:
        fill(store, [*history(200, {137: 1.05}), *flat])
    done = etude("history", "sort", "--json", "--store", place, directory=tmp_path)
    assert done.returncode == 0, done.stderr
    (course,) = json.loads(done.stdout)
    (step,) = course["steps"]
    assert step["first"]["commit"] == commit(137)
    assert step["last"]["commit"] == commit(136)
    assert step["low"] < 0.05 < step["high"]
    done = etude("history", "flat", "--json", "--store", place, directory=tmp_path)
    assert json.loads(done.stdout)[0]["steps"] == []


def test_backtest_mark_and_gate_are_kept_in_the_store(place: str, tmp_path: Path) -> None:
    with open_store(place) as store:
        fill(store, history(60, {40: 1.08}, noise=0.005))
    (tmp_path / "rules.toml").write_text("[rule.slower]\n")
    asked = ("history", "sort", "--store", place, "--rules", "rules.toml")
    codes = [
        etude(*asked, "--gate", directory=tmp_path).returncode,
        etude(*asked, "--backtest", directory=tmp_path).returncode,
        etude(*asked, "--gate", directory=tmp_path).returncode,
        etude(
            "history", "mark", "sort", commit(40), "--why", "new", "--store", place, directory=tmp_path
        ).returncode,
        etude(*asked, "--gate", directory=tmp_path).returncode,
    ]
    assert codes == [2, 0, 1, 0, 0]


def test_results_that_were_measured_and_stored_have_a_history_and_are_compared(tmp_path: Path) -> None:
    for number in range(4):
        done = etude(
            "bench", "-n", "nap", "--trials", "3", "-o", f"r{number}", "sleep 0.005", directory=tmp_path
        )
        assert done.returncode == 0, done.stderr
        done = etude("store", "add", f"r{number}", "--commit", f"{number}abcdef", directory=tmp_path)
        assert done.returncode == 0, done.stderr
    done = etude("history", "nap", directory=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "4 results" in done.stdout
    assert "No step among 4 results" in done.stdout
    done = etude("compare", "0abc", "3abc", "--json", directory=tmp_path)
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)
    assert 0.0 < found["low"] < found["high"]
    assert found["differences"] == []
