"""The examples of the boundary, which the engine's own tests read as well, seen from this side."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest

from etude.engine import PROTOCOL, Launch, Repeat, Worker
from etude.results.model import check_measurement, from_line, to_line
from support.places import DATA

VECTORS = [json.loads(line) for line in (DATA / "vectors" / "boundary.jsonl").read_text().splitlines()]
PLACE = {
    "test": "t",
    "trial": 0,
    "block": 0,
    "order": 0,
    "host": "h",
    "sitting": 1,
    "boot_id": "b",
    "command": ["t"],
}
PLACE |= {"kept": True, "why": None}


def of_kind(kind: str) -> list[Any]:
    found = [vector["value"] for vector in VECTORS if vector["kind"] == kind]
    assert found, kind
    return found


@pytest.mark.parametrize("value", of_kind("launch"))
def test_a_launch_is_written_as_the_examples_are(value: dict[str, Any]) -> None:
    members = {k: v for k, v in value.items() if k in Launch.__dataclass_fields__}
    workers = tuple(Worker(**worker) for worker in members.pop("workers"))
    repeat = members.pop("repeat", None)
    launch = Launch(workers, repeat=repeat and Repeat(**repeat), **members)
    written = json.loads(json.dumps({"do": "launch", "id": value["id"]} | asdict(launch)))
    for name, member in value.items():
        if name == "workers":
            assert [
                dict(ours) | theirs for ours, theirs in zip(written[name], member, strict=True)
            ] == written[name]
        elif name in written:
            assert written[name] == member


@pytest.mark.parametrize(
    "row", of_kind("row") + [row for answer in of_kind("rows") for row in answer["rows"]]
)
def test_each_row_is_a_measurement_once_its_place_is_known(row: dict[str, Any]) -> None:
    line = row | PLACE
    check_measurement(line)
    measurement = from_line(line)
    assert json.loads(json.dumps(to_line(measurement))) == {"cache": None} | line


@pytest.mark.parametrize("line", of_kind("journal"))
def test_a_line_of_the_journal_is_a_measurement(line: dict[str, Any]) -> None:
    whole = PLACE | line
    check_measurement(whole)
    assert from_line(whole).trial == line["trial"]


def test_the_protocol_is_that_of_the_examples() -> None:
    assert {hello["hello"]["protocol"] for hello in of_kind("hello")} == {PROTOCOL}


@pytest.mark.parametrize("hello", of_kind("hello"))
def test_the_tlbs_of_a_hello_are_kinds_and_sizes(hello: dict[str, Any]) -> None:
    for tlb in hello["hello"]["tlb"]:
        assert tlb["kind"] in ("data", "instruction", "unified", "load", "store")
        assert all(type(tlb[name]) is int and tlb[name] > 0 for name in ("level", "page_bytes", "entries"))
