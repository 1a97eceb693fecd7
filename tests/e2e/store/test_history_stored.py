"""Histories of 200 commits out of a store, the same on SQLite and on a real PostgreSQL; and one that is measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from etude.store.database import open_store
from support.made_histories import commit, fill, history
from support.real import called

pytestmark = pytest.mark.beside


@pytest.fixture(autouse=True)
def _no_other_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ETUDE_STORE", raising=False)


def test_a_known_step_is_found_at_its_commit_and_a_flat_history_has_none(place: str, tmp_path: Path) -> None:
    flat = history(200, seed=5, test="flat")
    with open_store(place) as store:
        fill(store, [*history(200, {137: 1.05}), *flat])
    done = called("history", "sort", "--json", "--store", place, cwd=tmp_path)
    (course,) = json.loads(done.stdout)
    (step,) = course["steps"]
    assert step["first"]["commit"] == commit(137)
    assert step["last"]["commit"] == commit(136)
    assert step["low"] < 0.05 < step["high"]
    done = called("history", "flat", "--json", "--store", place, cwd=tmp_path)
    assert json.loads(done.stdout)[0]["steps"] == []


def test_backtest_mark_and_gate_are_kept_in_the_store(place: str, tmp_path: Path) -> None:
    with open_store(place) as store:
        fill(store, history(60, {40: 1.08}, noise=0.005))
    (tmp_path / "rules.toml").write_text("[rule.slower]\n")
    asked = ("history", "sort", "--store", place, "--rules", "rules.toml")
    codes = [
        called(*asked, "--gate", cwd=tmp_path, check=None).returncode,
        called(*asked, "--backtest", check=None, cwd=tmp_path).returncode,
        called(*asked, "--gate", cwd=tmp_path, check=None).returncode,
        called(
            "history", "mark", "sort", commit(40), "--why", "new", "--store", place, cwd=tmp_path
        ).returncode,
        called(*asked, "--gate", cwd=tmp_path, check=None).returncode,
    ]
    assert codes == [2, 0, 1, 0, 0]


def test_results_that_were_measured_and_stored_have_a_history_and_are_compared(tmp_path: Path) -> None:
    for number in range(4):
        called("bench", "-n", "nap", "--trials", "3", "-o", f"r{number}", "sleep 0.005", cwd=tmp_path)
        called("store", "add", f"r{number}", "--commit", f"{number}abcdef", cwd=tmp_path)
    done = called("history", "nap", cwd=tmp_path)
    assert "4 results" in done.stdout
    assert "No step" in done.stdout
    done = called("compare", "0abc", "3abc", "--json", cwd=tmp_path)
    (found,) = json.loads(done.stdout)
    assert 0.0 < found["low"] < found["high"]
    assert found["differences"] == []
