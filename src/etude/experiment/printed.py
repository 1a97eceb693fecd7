"""A number that a program printed itself: found by a regular expression, or by its place in JSON.

`$.by_call.read.p99_s` is a place. No regular expression that begins so can match: `$` is the end of a line.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from etude.results.model import MetricValue
from etude.results.units import unit_kept

_PLACE = re.compile(r"\$(?:\.[\w-]+|\[\d+\])+")
_STEP = re.compile(r"\.([\w-]+)|\[(\d+)\]")
_OBJECT = re.compile(r"^[ \t]*(?=\{)", re.MULTILINE)
_NOWHERE = object()


def check_place(pattern: str) -> None:
    """Raise for a pattern that begins as a place in JSON does and is none.

    Raises:
        ValueError: how one is written.
    """
    if _is_place(pattern) and not _PLACE.fullmatch(pattern):
        raise ValueError("no place in JSON; one is written as $.name.name or $.name[0].name")


def printed_metric(pattern: str, unit: str, text: str) -> MetricValue | list[Any]:
    """The number that a pattern finds in what a program printed, in the base of its unit, or why there is none."""
    known = unit_kept(unit)
    found, why = _placed(pattern, text) if _is_place(pattern) else _matched(pattern, text)
    return [None, known.base, why] if why else [known.of(found), known.base]


def _is_place(pattern: str) -> bool:
    return pattern.startswith("$.")


def _matched(regex: str, text: str) -> tuple[float, str]:
    match = re.search(regex, text, re.MULTILINE)
    if match is None:
        return math.nan, "the pattern matched nothing in the output"
    found = match.group(1) if match.re.groups else match.group(0)
    try:
        value = float(found.replace(",", ""))
    except (ValueError, AttributeError):
        value = math.nan
    return value, "" if math.isfinite(value) else f"the pattern matched {found!r}, which is not a number"


def _placed(place: str, text: str) -> tuple[float, str]:
    """That of the first object that has such a place."""
    any_object = False
    for document in _objects(text):
        any_object = True
        found = _at(place, document)
        if found is _NOWHERE:
            continue
        value = _number(found)
        return value, "" if math.isfinite(value) else f"{place} is {_short(found)}, which is not a number"
    what = f"no JSON object in the output has {place}" if any_object else "no JSON object is in the output"
    return math.nan, what


def _number(found: Any) -> float:
    try:
        return float(found) if type(found) in (int, float) else math.nan
    except OverflowError:
        return math.inf


def _objects(text: str) -> Iterator[Any]:
    """The JSON objects that begin at the beginning of a line, without those within others."""
    decoder, end = json.JSONDecoder(), 0
    while match := _OBJECT.search(text, end):
        end = match.end() + 1
        try:
            document, end = decoder.raw_decode(text, match.end())
        except (ValueError, RecursionError):
            continue
        yield document


def _at(place: str, document: Any) -> Any:
    for name, index in _STEP.findall(place):
        if name and isinstance(document, dict) and name in document:
            document = document[name]
        elif index and isinstance(document, list) and int(index) < len(document):
            document = document[int(index)]
        else:
            return _NOWHERE
    return document


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:40]}…"
