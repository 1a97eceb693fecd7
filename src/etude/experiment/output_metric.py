"""Metrics that a program prints: found by a regular expression, or by a path in its JSON output.

`$.by_call.read["99.9"]` is a path. No regular expression that starts so can match: `$` is the end of a line.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from etude.patterns import PatternError, compile_pattern
from etude.results.model import MetricValue
from etude.results.printed_json import json_objects
from etude.results.trial_join import stored_unit
from etude.units.parsing import number_in

_NAME = r"""\.([\w-]+)|\["([^"]*)"\]|\['([^']*)'\]|\[(\d+)\]"""
_PLACE = re.compile(rf"\$(?:{_NAME})+")
_STEP = re.compile(_NAME)
_QUOTED = re.compile(r"""(["'])(?:(?!\1).)+\1""")
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}(?:,[0-9]{3})+(?![0-9,])")
_NOWHERE = object()
METRIC_BYTES = 16 << 20
"""Maximum bytes of the end of an output that are searched."""
_SHOWN = 3
"""Maximum different values of a pattern that a note shows."""


class OutputMetric(NamedTuple):
    """One metric that a program printed."""

    name: str
    value: MetricValue
    note: str | None = None
    """Note that the pattern finds several different values."""


def check_place(pattern: str) -> None:
    """Raise for a pattern that starts like a JSON path and is invalid. Raises ValueError: the correct syntax."""
    if _is_place(pattern) and not _PLACE.fullmatch(pattern):
        raise ValueError('no place in JSON; one is written as $.name.name, $.name[0].name or $.name["a.b"]')


def unquoted_text(pattern: str) -> str:
    """The pattern without quotes around the whole of it, as a shell would remove them."""
    return pattern[1:-1] if _QUOTED.fullmatch(pattern) else pattern


def printed_metric(name: str, unit: str, pattern: str, text: str, join: str = "") -> OutputMetric:
    """The first number that a pattern finds in a text, in the base of its unit, or the reason why there is none.

    `join`: how the values of several workers are joined, if not the default (`etude.results.trial_join.JOINS`).
    """
    known = stored_unit(unit)
    found, why = _by_path(pattern, text) if _is_place(pattern) else _by_pattern(pattern, text)
    if why:
        return OutputMetric(name, [None, known.base, why, *([join] if join else [])])
    different = dict.fromkeys(found)
    note = None
    if len(different) > 1:
        shown = [f"{value:g}" for value in different][:_SHOWN]
        more = ", …" if len(different) > _SHOWN else ""
        note = f"METRIC {name} finds {len(different)} different values ({', '.join(shown)}{more}); the first counts"
    return OutputMetric(name, [known.of(found[0]), known.base, *([join] if join else [])], note)


def note_matches(entry: dict[str, Any], found: Iterable[OutputMetric]) -> None:
    """Record in a test's entry of experiment.json which of its patterns found several values in one output."""
    for each in found:
        if each.note:
            entry.setdefault("several_matches", {}).setdefault(each.name, each.note)


def printed_text(*streams: Mapping[str, Any] | None) -> str:
    """Output of a command on its streams, one after the other, from the first complete line on."""
    text = ""
    for stream in filter(None, streams):
        tail = stream["tail"]
        if stream.get("bytes", 0) > len(tail.encode("utf-8", "replace")):
            tail = tail.partition("\n")[2] or tail
        text += f"\n{tail}" if text and tail and not text.endswith("\n") else tail
    return text


def _is_place(pattern: str) -> bool:
    return pattern.startswith(("$.", '$["', "$['"))


def _by_pattern(regex: str, text: str) -> tuple[Sequence[float], str]:
    """Numbers of all matches; or the reason why there is none, of the first match."""
    values, first = [], None
    try:
        matches = compile_pattern(regex, multiline=True).values(text)
    except PatternError as error:  # of an experiment made without RE2
        return (), f"no regular expression: {error}"
    for found in matches:
        value = _number_in(found or "")
        first = first or f"the pattern matched {found!r}, which is not a number"
        if math.isfinite(value):
            values.append(value)
        elif not values:
            return (), first
    return values, "" if values else first or "the pattern matched nothing in the output"


def _number_in(text: str) -> float:
    """The number in a text, with or without commas between thousands; nan for others, such as a decimal comma."""
    text = text.strip().removesuffix(",")  # item of a list
    value = number_in(text.replace(",", "") if _GROUPED.match(text) else text)
    return math.nan if value is None else value


def _by_path(place: str, text: str) -> tuple[Sequence[float], str]:
    """Numbers at that path in all objects that have it; or the reason why there is none, of the first."""
    values: list[float] = []
    any_object = False
    for document in json_objects(text):
        any_object = True
        found = _at(place, document)
        if found is _NOWHERE:
            continue
        value = _number(found)
        if math.isfinite(value):
            values.append(value)
        elif not values:
            return (), f"{place} is {_short(found)}, which is not a number"
    what = f"no JSON object in the output has {place}" if any_object else "no JSON object is in the output"
    return values, "" if values else what


def _number(found: Any) -> float:
    try:
        return float(found) if type(found) in (int, float) else math.nan
    except OverflowError:
        return math.inf


def _at(place: str, document: Any) -> Any:
    for step in _STEP.finditer(place):
        name, index = next((found for found in step.groups()[:3] if found is not None), None), step[4]
        if name is not None and isinstance(document, dict) and name in document:
            document = document[name]
        elif index and isinstance(document, list) and int(index) < len(document):
            document = document[int(index)]
        else:
            return _NOWHERE
    return document


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:40]}…"
