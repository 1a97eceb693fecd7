"""Numbers that a program printed: found by a pattern, or by their place in JSON."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.experiment.output_metric import check_place, printed_metric, printed_text

NAMES = st.from_regex(r"\A[\w-]{1,4}\Z") | st.sampled_from(["99.5", "a b", "it's", ""])
NUMBERS = st.integers(-(10**9), 10**9) | st.floats(-1e9, 1e9)


@given(st.lists(NAMES | st.integers(0, 2), min_size=1, max_size=5), NUMBERS, st.sampled_from([None, 2]))
def test_a_number_is_found_at_its_place(steps: list[str | int], number: float, indent: int | None) -> None:
    document: Any = number
    for step in reversed(steps):
        document = {step: document} if isinstance(step, str) else [*range(step), document]
    place = "$.top" + "".join(map(_step, steps))
    check_place(place)
    text = f"it begins {{\n{json.dumps({'top': document}, indent=indent)}\nand ends }}\n"
    assert printed_metric("m", "1", place, text).value == [float(number), "1"]


def _step(step: str | int) -> str:
    plain = isinstance(step, int) or not re.fullmatch(r"[\w-]+", step)
    return f"[{json.dumps(step, ensure_ascii=False)}]" if plain else f".{step}"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("12,345.5", 12345.5),
        ("1,234,567", 1234567.0),
        ("-1,234e3", -1234000.0),
        ("12,", 12.0),
        ("1,5", None),
        ("1.234,5", None),
        ("1,23,4", None),
        ("1,2345", None),
        (",5", None),
    ],
)
def test_commas_stand_between_groups_of_three_digits_or_it_is_no_number(
    text: str, number: float | None
) -> None:
    assert printed_metric("m", "1", "is (.*)", f"it is {text}").value[0] == number


@pytest.mark.parametrize(
    ("unit", "value", "base"),
    [
        ("sec", 3.0, "s"),
        ("Bytes", 3.0, "B"),
        ("bytes/second", 3.0, "B/s"),
        ("percent", 3.0, "%"),
        ("count", 3.0, "1"),
        ("ops/sec", 3.0, "ops/sec"),
        ("req/min", 0.05, "1/s"),
        ("widgets", 3.0, "widgets"),
    ],
)
def test_a_unit_by_another_name_is_its_base_but_what_is_counted_is_kept(
    unit: str, value: float, base: str
) -> None:
    assert printed_metric("m", unit, "[0-9]", "3").value == [value, base]


@pytest.mark.parametrize("place", ['$["a.b"].c', "$['a.b']['c']"])
def test_a_name_with_dots_stands_in_brackets_and_quotes(place: str) -> None:
    check_place(place)
    assert printed_metric("m", "1", place, '{"a.b": {"c": 3}}').value == [3.0, "1"]


def test_the_first_object_that_has_the_place_counts() -> None:
    text = '{"a": 1, "more": {"b": 0}}\n{broken\n  {"b": 2}\n{"b": 3}\n'
    assert printed_metric("m", "1", "$.b", text).value == [2.0, "1"]


def test_a_number_in_json_has_its_unit() -> None:
    assert printed_metric("m", "ms", "$.took", '{"took": 5}').value == [0.005, "s"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("nothing", "no JSON object"),
        ('{"a": {}}', "has $.a.b"),
        ('{"a": [1]}', "has $.a.b"),
        ('{"a": {"b": null}}', "$.a.b is null"),
        ('{"a": {"b": true}}', "$.a.b is true"),
        ('{"a": {"b": "1"}}', '$.a.b is "1"'),
        ('{"a": {"b": Infinity}}', "$.a.b is Infinity"),
        (f'{{"a": {{"b": 1{"0" * 400}}}}}', "$.a.b is 1000"),
        ('{"a":' * 100_000, "no JSON object"),
    ],
)
def test_a_number_that_is_not_there_says_why(text: str, why: str) -> None:
    value, unit, reason = printed_metric("m", "1", "$.a.b", text).value
    assert (value, unit) == (None, "1")
    assert why in reason


@pytest.mark.parametrize("pattern", ["$.", "$.a.", "$.a[b]", "$.a b", "$.*", '$["a"', "$['a\"]"])
def test_a_place_that_is_none_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="no place in JSON"):
        check_place(pattern)


@pytest.mark.parametrize("pattern", ["$", "(\\d+)$", "a.b"])
def test_other_patterns_are_regular_expressions(pattern: str) -> None:
    check_place(pattern)
    assert printed_metric("m", "1", pattern, "x").value[2].startswith("the pattern matched")


@pytest.mark.parametrize(
    ("pattern", "text"),
    [("rate=([0-9]+)", "rate=100\nrate=300\nrate=100\n"), ("$.rate", '{"rate": 100}\n{"rate": 300}\n')],
)
def test_several_matches_that_differ_are_noted_and_the_first_counts(pattern: str, text: str) -> None:
    found = printed_metric("rate", "1/s", pattern, text)
    assert found.value == [100.0, "1/s"]
    assert found.note is not None
    assert "100, 300" in found.note


def test_several_matches_of_one_value_are_not_noted() -> None:
    assert printed_metric("rate", "1/s", "rate=([0-9]+)", "rate=7\nrate=7.0\n").note is None


def test_streams_do_not_run_together_and_half_a_number_is_not_read() -> None:
    first, second = {"bytes": 6, "tail": "rate=1"}, {"bytes": 90, "tail": "2345 late\nrate=9 late\n"}
    text = printed_text(first, None, second)
    assert printed_metric("rate", "1/s", "rate=([0-9]+)", text).value == [1.0, "1/s"]
    assert printed_metric("late", "1", "([0-9]+) late", text).value == [9.0, "1"]


@pytest.mark.parametrize(
    ("text", "number"), [("1,234", 1234.0), ("-1,234,567.5", -1234567.5), ("12,345e3", 12345e3)]
)
def test_commas_between_thousands_are_none_of_the_number(text: str, number: float) -> None:
    assert printed_metric("m", "1", r"x=(\S+)", f"x={text}\n").value == [number, "1"]


@pytest.mark.parametrize(
    "text", ["1,5", "1.234,5", "1,23,456", "1234,567", "12,3456", "1_0", "\u0663", "0x10"]
)
def test_what_another_locale_writes_is_no_number(text: str) -> None:
    assert printed_metric("m", "1", r"x=(\S+)", f"x={text}\n").value[0] is None
