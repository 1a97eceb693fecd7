"""Files that somebody edited are refused, whatever stands in them: no other exception comes out of a reader."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from etude.cluster.distributed.part import read_part
from etude.cluster.pool.journal import Journal
from etude.errors import InputError
from etude.experiment import test as shells
from etude.history import backtest as backtests
from etude.iolab.lab import read_lab
from etude.machine.remote.hosts import read_hosts
from etude.peak.harnesses.load_report import Unreadable, read_window_line
from etude.peak.harnesses.readers import Place, by_path
from etude.peak.harnesses.tools import k6
from etude.present.sentences.extension import lasted_s
from etude.store.content import read_content
from etude.store.database import Store, open_store
from etude.surface.configuration_jobs import read_request, read_sample
from etude.units.parsing import ONE
from support.stored import directory

NESTED = "[" * 100_000
SUBMITTING = (
    '{"event":"submitting","what":"a","at_s":%s,"job":{"name":"a","command":[],"place":"p","directory":"/",'
    '"nodes":%s,"avoid":[],"only":null,"environment":{}}}\n'
)
FILES: tuple[tuple[str, str, Callable[[Path], object]], ...] = (
    ("lab.json", NESTED, lambda path: read_lab(path.parent)),
    ("hosts.toml", f'[hosts.a]\naddress = "b"\nidentity = "{"k" * 300}"\n', read_hosts),
    ("pool.jsonl", SUBMITTING % ("0", "1e999"), lambda path: Journal(path.parent)),
    ("pool.jsonl", SUBMITTING % ("9" * 400, "1"), lambda path: Journal(path.parent)),
    ("cell.json", NESTED, lambda path: read_request(path.parent)),
    ("sample.json", NESTED, lambda path: read_sample(path.parent, ())),  # type: ignore[arg-type]
    ("part.json", NESTED, lambda path: read_part(path.parent)),
)


@pytest.mark.parametrize(("name", "text", "read"), FILES)
def test_an_edited_file_is_refused(
    name: str, text: str, read: Callable[[Path], object], tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=name):
        read(tmp_path / name)


def test_a_start_that_is_no_time_is_refused(tmp_path: Path) -> None:
    place = directory(tmp_path / "r", {"sort": [1.0, 2.0]})
    (lines,) = place.glob("*/results.jsonl")
    rows = [json.loads(line) | {"start": "2026-01-01T00:=:00Z"} for line in lines.read_text().splitlines()]
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InputError, match="00:=:00"):
        read_content(str(place))


@pytest.mark.parametrize(
    ("refusal", "read"),
    [
        (Unreadable, lambda: read_window_line('{"duration_s":' + NESTED)),
        (Unreadable, lambda: read_window_line('{"duration_s":' + "9" * 400 + "}")),
        (Unreadable, lambda: by_path(NESTED, {})),
        (Unreadable, lambda: by_path(f"[{'9' * 400}]", {"failed": Place("$[0]", ONE)})),
        (ValueError, lambda: k6.request('{"metric":"http_req_duration","type":"Point","data":' + NESTED)),
    ],
)
def test_what_a_program_prints_is_refused(refusal: type[Exception], read: Callable[[], object]) -> None:
    with pytest.raises(refusal):
        read()


@pytest.mark.parametrize(
    ("column", "ask"),
    [
        ("etude_version.version_num", Store.tests),
        ("test.name", Store.tests),
        ("tag.word", Store.results),
    ],
)
def test_bytes_in_place_of_a_text_are_damage(
    column: str, ask: Callable[[Store], object], tmp_path: Path
) -> None:
    table, name = column.split(".")
    with open_store(tmp_path / "s") as store:
        for other in ("a", "b"):
            store.add(
                directory(tmp_path / other, {"sort": [1.0, 2.0], other: [1.0]}, name=other), tags=["x", "y"]
            )
    with sqlite3.connect(tmp_path / "s") as database:
        database.execute(f"update {table} set {name} = cast({name} as blob) where rowid = 1")
    with open_store(tmp_path / "s") as store, pytest.raises(InputError, match="damaged"):
        ask(store)


@pytest.mark.parametrize("text", [NESTED, "[]", "{}", '{"results": 1e999}'])
def test_a_backtest_that_was_edited_does_not_hold(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Notes:
        def recall(self, name: str) -> str:
            return text

    monkeypatch.setattr(backtests, "_name", lambda *_: "a")
    notes: Any = Notes()
    course: Any = None
    assert isinstance(backtests.is_current(notes, course, course), str)


@pytest.mark.parametrize(
    "end", [None, 5, "", "2026-01-01T00:=:00Z", "2026-01-01T01:00:00", "2025-12-31T23:00:00Z"]
)
def test_a_sitting_without_a_time_took_none(end: object) -> None:
    assert lasted_s({"start": "2026-01-01T00:00:00Z", "end": end}) == 0.0
    assert lasted_s({"start": "2026-01-01T00:00:00Z", "end": "2026-01-01T00:00:01.5Z"}) == 1.5


@pytest.mark.parametrize(("word", "asked"), [("[" * 1000, 1), ("a?" * 1000, 1), ("[" * 5000, 0)])
def test_a_word_is_compared_with_files_once(word: str, asked: int, monkeypatch: pytest.MonkeyPatch) -> None:
    words: list[str] = []
    monkeypatch.setattr(shells, "glob", words.append)
    assert shells.shell_syntax(f"sort {word} b") is None
    assert words == [word] * asked
