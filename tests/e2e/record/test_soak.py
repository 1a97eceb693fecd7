"""`etude record` under threads, signals, children and deaths at once: each call is looked at (bench/soak.py)."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from etude.program import engine_path
from support.places import BENCH

pytestmark = [pytest.mark.needs_program("gcc")]
SECONDS = "2.5"
"""Of each way of --full: the recorder is stopped for the first time after 2 s."""
FORMS = 32
"""Calls of a worker, one after another, until it makes the first one again."""

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(BENCH))
    soak, soak_check, soak_rules = map(importlib.import_module, ("soak", "soaks.check", "soaks.rules"))


def test_no_call_is_lost_torn_or_there_twice(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    words = [
        sys.executable,
        BENCH / "soak.py",
        "--seconds",
        SECONDS,
        "--record",
        page,
        "--engine",
        engine_path(),
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert page.read_text(encoding="utf-8") == done.stdout
    assert done.stdout.count("| yes |") >= 12
    assert "NO" not in done.stdout


@pytest.fixture(scope="module")
def soaked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A file with the columns of a short recording in which all was right, and the lanes of the program."""
    place = tmp_path_factory.mktemp("soaked")
    kept = soak.soak(place, Path(engine_path()), 0.4, 2, 10000.0, "wait")
    soak_check.columns_of(Path(engine_path()), place / "soak.trace", place / "columns")
    return place / "columns", kept.lanes


def changed(change: str, which: int, file: Path, lanes: Any) -> Any:
    """What is found when one call of a worker, was left out, is there twice, or is another."""
    columns = soak_check.Columns(file)
    check = soak_check.Check(columns, lanes, gaps=False)
    worker = int(np.flatnonzero(lanes["flags"] == soak_rules.WHOLE)[0])
    [thread] = [each["thread"] for each in columns.index["meta"] if each.get("tid") == lanes["tid"][worker]]
    parts = list(columns.parts())
    threads, calls, start, end = parts[0]
    of_handlers = ~np.isin(check.rules.tagged(calls.call, calls.arguments)[0], [0, worker])
    own = np.flatnonzero((threads == thread) & ~of_handlers & ~np.isin(calls.call, check.rules.foreign))
    rows = np.arange(len(threads))
    at = int(own[len(own) // 2 + which])
    if change == "less":
        rows = np.delete(rows, at)
    elif change == "twice":
        rows = np.insert(rows, at, at)
    else:
        calls.result[at] += 1
        calls.arguments[0, at] += 1
    parts[0] = (threads[rows], calls[rows], start[rows], end[rows])
    columns.parts = lambda: iter(parts)
    return check.run()


@pytest.mark.parametrize("change", ["less", "twice", "other"])
def test_one_wrong_call_of_each_form_is_found(change: str, soaked: tuple[Path, Any]) -> None:
    for which in range(FORMS):
        found = changed(change, which, *soaked)
        counts = (which, found.lost, found.doubled)
        assert found.lost + found.torn + found.doubled > 0, counts
        if change == "less":
            assert counts == (which, 1, 0)
        if change == "twice":
            assert counts == (which, 0, 1)
        if change == "other":
            assert found.doubled == 0, counts


def test_nothing_is_found_where_all_is_right(soaked: tuple[Path, Any]) -> None:
    file, lanes = soaked
    found = soak_check.Check(soak_check.Columns(file), lanes, gaps=False).run()
    assert (found.lost, found.torn, found.doubled, found.strange, found.examples) == (0, 0, 0, 0, [])
    assert found.checked > 5000


def test_a_lane_of_which_every_call_was_dropped_is_its_threads(soaked: tuple[Path, Any]) -> None:
    file, lanes = soaked
    columns = soak_check.Columns(file)
    whole, check = (soak_check.Check(columns, lanes, gaps=True) for _ in range(2))
    whole.run()
    by_handler = np.flatnonzero(lanes["flags"] == soak_rules.HANDLER)
    lane = int(by_handler[np.argmax(lanes["begun"][by_handler])])
    made = int(lanes["begun"][lane])
    parts = []
    for threads, calls, start, end in columns.parts():
        kept = np.flatnonzero(check.rules.tagged(calls.call, calls.arguments)[0] != lane)
        parts.append((threads[kept], calls[kept], start[kept], end[kept]))
    columns.parts = lambda: iter(parts)
    found = check.run()
    assert made > 0
    assert found.lost_by_thread == {whole.thread_of[lane]: made}  # nothing is of thread -1
    assert (found.lost, found.torn, found.doubled, found.strange) == (made, 0, 0, 0)


def test_what_the_recorder_dropped_is_not_lost_by_jumps() -> None:
    meta = [
        {"what": "process", "process": 0, "pid": 7},
        {"what": "thread", "thread": 3, "process": 0, "tid": 8},
        {"what": "dropped", "thread": 3, "events": 31},
    ]
    lanes = np.zeros(2, soak_rules.LANE)
    lanes[1]["flags"], lanes[1]["pid"], lanes[1]["tid"] = soak_rules.JUMPER, 7, 8
    found = soak_check.Found(jumped=28, lost_by_thread={3: 5})  # five of its handlers' calls
    columns = SimpleNamespace(index={"meta": meta})
    assert soak.lost_by_jumps(soak.Soaked("drop", found, columns, lanes, [], 0, 0.0, [])) == 2
