"""Reports of loads and replays that were edited are refused in one line, or shown with finite numbers."""

from __future__ import annotations

import copy
import json
import math
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from etude.errors import InputError
from etude.present.page.engine_sections import report_section
from etude.present.section import Number, cell_text
from etude.results.engine_reports import read_report
from golden.corpus import lay_out

NUMBERS = (-1, 0, 1, 10**20, 10**400, 1.5, -0.5, 1e-320, 1e-9, 1e13, 1e308, math.inf, math.nan, 2**63 - 1)
VALUES = st.sampled_from([*NUMBERS, None, True, "x", [], {}, [1], {"a": {}}, "HISTFA"])
Way = tuple[str | int, ...]


def documents(name: str) -> list[Any]:
    """Documents of a stored report."""
    with tempfile.TemporaryDirectory() as place:
        text = lay_out(name, Path(place)).read_text()
    return [json.loads(text)] if name.startswith("replays") else list(map(json.loads, text.splitlines()))


def ways(found: Any, way: Way = ()) -> Iterator[Way]:
    """Ways to all members."""
    inner = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
    for key, each in inner:
        yield (*way, key)
        yield from ways(each, (*way, key))


STORED = {
    name: documents(name)
    for name in (
        "load/overloaded.jsonl",
        "load/directory.jsonl",
        "replays/changed.json",
        "replays/faithful.json",
    )
}
PLACES = [(name, way) for name, stored in STORED.items() for way in ways(stored) if len(way) > 1]
EDITS = st.tuples(st.sampled_from(PLACES), VALUES | st.just(KeyError))


@pytest.mark.parametrize("name", STORED)
def test_the_stored_reports_are_shown(name: str, tmp_path: Path) -> None:
    assert shown(name, STORED[name], tmp_path)


@given(edit=EDITS)
@example(edit=(("load/overloaded.jsonl", (0, "outstanding")), "x"))
@example(edit=(("load/overloaded.jsonl", (0, "waiting")), []))
@example(edit=(("load/overloaded.jsonl", (0, "mean_s")), -1))
@example(edit=(("load/overloaded.jsonl", (3, "duration_s")), 1e-320))
@example(edit=(("load/overloaded.jsonl", (4, "drained", "completed")), KeyError))
@example(edit=(("load/overloaded.jsonl", (4, "summary", "failures")), {"connect": {}}))
@example(edit=(("load/overloaded.jsonl", (4, "lateness_p99_s")), math.inf))
@example(edit=(("load/directory.jsonl", (0, "by")), {"read": {"mean_s": 1.0}}))
@example(edit=(("load/directory.jsonl", (0, "by")), {"read": {"mean_s": "x", "completed": 1}}))
@example(edit=(("replays/changed.json", (0, "calls")), 10**20))
@example(edit=(("replays/changed.json", (0, "mismatches")), 10**400))
@example(edit=(("replays/changed.json", (0, "run_s")), 1e308))
@example(edit=(("replays/changed.json", (0, "original", "run_s")), math.inf))
def test_an_edited_report_is_refused_or_shown(
    edit: tuple[tuple[str, Way], Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    (name, way), value = edit
    stored = copy.deepcopy(STORED[name])
    inner: Any = stored
    for key in way[:-1]:
        inner = inner[key]
    if value is KeyError:
        del inner[way[-1]]
    else:
        inner[way[-1]] = value
    try:
        shown(name, stored, tmp_path_factory.mktemp("r"))
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017


def shown(name: str, stored: list[Any], place: Path) -> int:
    """Number of the cells of its section, all of them finite."""
    path = place / Path(name).name
    path.write_text(
        "".join(json.dumps(each, indent=1 if name.endswith(".json") else None) + "\n" for each in stored)
    )
    section = report_section({1: read_report(path)}, "key", "")
    cells = [cell for table in section.tables for row in table.rows for cell in row]
    assert not any(math.isinf(cell.value) for cell in cells if isinstance(cell, Number))
    told = [
        *map(cell_text, cells),
        *section.answer,
        *(line for lines in section.questions.values() for line in lines),
    ]
    assert not [line for line in told if re.search(r"\b(inf|nan)\b", line)]
    return len(cells)
