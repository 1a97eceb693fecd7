"""Documents as JSON: numbers that JSON lacks are null, and data of ours are plain."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from etude.present.to_json import json_text, print_json


@dataclass(frozen=True)
class Point:
    name: str
    at: datetime
    value: float


def test_what_json_lacks_is_null() -> None:
    assert json.loads(json_text({"a": [math.inf, -math.inf, math.nan, 1.5]})) == {
        "a": [None, None, None, 1.5]
    }


def test_dataclasses_and_times_are_plain() -> None:
    point = Point("é", datetime(2026, 1, 2, tzinfo=UTC), math.inf)
    assert json.loads(json_text([point])) == [{"name": "é", "at": "2026-01-02T00:00:00+00:00", "value": None}]


def test_a_document_is_printed_whole(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": 1, "b": (2, 3)})
    assert json.loads(capsys.readouterr().out) == {"a": 1, "b": [2, 3]}
