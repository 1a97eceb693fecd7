"""Parameter sweeps: ranges end, combinations are complete, and errors are errors of usage."""

from __future__ import annotations

import contextlib
import subprocess
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.errors import UsageError
from etude.experiment.sweep import (
    MAX_VALUES,
    check_used,
    combinations,
    parse_list,
    parse_parameter,
    substitute,
)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("n=a,b,c", ("a", "b", "c")),
        ("n=a", ("a",)),
        ("n=1..4", ("1", "2", "3", "4")),
        ("n=1..32*2", ("1", "2", "4", "8", "16", "32")),
        ("n=1..33*2", ("1", "2", "4", "8", "16", "32")),
        ("n=0..1+0.25", ("0", "0.25", "0.5", "0.75", "1")),
        ("n=0..0.3+0.1", ("0", "0.1", "0.2", "0.3")),
        ("n=-2..2+2", ("-2", "0", "2")),
        ("n=5..5", ("5",)),
        ("n=100..300+100", ("100", "200", "300")),
        ("n=a=b", ("a=b",)),
        ("n=1,10..20", None),
        ("n=", None),
        ("n", None),
        ("=1", None),
        ("1n=1", None),
        ("n=a,,b", None),
        ("n=,", None),
        ("n=1..", None),
        ("n=..3", None),
        ("n=1..3*", None),
        ("n=3..1", None),
        ("n=1..3*1", None),
        ("n=0..8*2", None),
        ("n=-8..8*2", None),
        ("n=1..9+0", None),
        ("n=1..9+-1", None),
        ("n=1..9*0.5", None),
        ("n=1..1000000", None),
        ("n=1..2*1.0000001", None),
        ("n=1..1e9", None),
    ],
)
def test_lists_and_ranges(text: str, values: tuple[str, ...] | None) -> None:
    if values is None:
        with pytest.raises(UsageError, match=r"^-P ") as error:
            parse_parameter(text)
        assert text in str(error.value)
    else:
        assert parse_parameter(text) == ("n", values)


number = st.decimals(-1000, 1000, places=2) | st.integers(-1000, 1000).map(Decimal)


@given(number, number, st.sampled_from(["", "*", "+"]), number)
def test_a_range_ends_and_stays_within_its_limits(
    first: Decimal, last: Decimal, sign: str, by: Decimal
) -> None:
    text = f"n={first}..{last}{sign}{by if sign else ''}"
    try:
        _, values = parse_parameter(text)
    except UsageError:
        return
    assert 1 <= len(values) <= MAX_VALUES
    assert Decimal(values[0]) == first
    assert all(first <= Decimal(value) <= last for value in values)
    assert len(set(values)) == len(values)


@given(st.text())
def test_any_text_is_a_parameter_or_an_error_of_usage(text: str) -> None:
    for typed in (text, f"n={text}"):
        with contextlib.suppress(UsageError):
            parse_parameter(typed)


@given(st.lists(st.lists(st.sampled_from("abcdef"), min_size=1, unique=True), max_size=3))
def test_combinations_are_complete_and_the_last_varies_fastest(lists: list[list[str]]) -> None:
    found = combinations([(f"p{i}", tuple(values)) for i, values in enumerate(lists)])
    tuples = [tuple(values.values()) for values in found]
    count = 1
    for values in lists:
        count *= len(values)
    assert len(tuples) == len(set(tuples)) == count
    if lists:
        assert [t[-1] for t in tuples[: len(lists[-1])]] == lists[-1]


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ("gcc,clang", ("gcc", "clang")),
        ("", ("",)),
        ("a,,b,", ("a", "", "b", "")),
        (r"a\,b,c\\,d\e", ("a,b", "c\\", r"d\e")),
        ("1..3", ("1..3",)),
    ],
)
def test_a_list_is_divided_at_commas_but_for_those_behind_a_backslash(
    values: str, found: tuple[str, ...]
) -> None:
    assert parse_list("n", values) == ("n", found)


def test_a_list_needs_a_name() -> None:
    with pytest.raises(UsageError, match="-L 1 2"):
        parse_list("1", "2")


def test_a_parameter_that_stands_twice_is_refused() -> None:
    with pytest.raises(UsageError, match=r"-P n: .*twice"):
        combinations([("n", ("1",)), ("n", ("2",))])


def test_so_many_combinations_are_refused() -> None:
    with pytest.raises(UsageError, match="combinations"):
        combinations([parse_parameter(f"p{i}=1..1000") for i in range(3)])


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("x {n} {n}", "x 3 3"),
        ("awk '{print $1}'", "awk '{print $1}'"),
        ("{m} {} {{n}} ${n}", "{m} {} {3} $3"),
        ("{ n }", "{ n }"),
    ],
)
def test_only_known_names_in_braces_are_replaced(text: str, result: str) -> None:
    assert substitute(text, {"n": "3"}) == result


@given(st.text())
def test_a_text_without_parameters_stays_as_it_is(text: str) -> None:
    assert substitute(text, {}) == text


def test_values_are_not_looked_at_again() -> None:
    assert substitute("{a}", {"a": "{b}", "b": "no"}) == "{b}"


def test_a_parameter_that_occurs_nowhere_is_refused() -> None:
    check_used(combinations([("n", ("1", "2"))]), ["x", "y {n}"])
    with pytest.raises(UsageError, match=r"-P n: .*\{n\}"):
        check_used(combinations([("n", ("1", "2"))]), ["x", "y {m}"])


NASTY = ("a b", "$HOME", "`id`", "it's", '"', "\\", "; false", "a\nb", "*")


@pytest.mark.parametrize(
    "line", ["{x}", '"{x}"', "'{x}'", "\\\"{x}\\'", '"\\"{x}"', "'\\'{x}", "a'b'{x}\"c\""]
)
@pytest.mark.parametrize("value", NASTY)
def test_a_value_is_one_word_to_the_shell(line: str, value: str) -> None:
    def printed(text: str) -> str:
        command = ["/bin/sh", "-c", f"printf '<%s>' {text}"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    plain = printed(substitute(line, {"x": "VALUE"}, {"x"}))
    assert printed(substitute(line, {"x": value}, {"x"})) == plain.replace("VALUE", value)


def test_an_empty_value_is_no_word_and_others_stay_as_they_are() -> None:
    assert substitute("ls {x} {y} {z}", {"x": "", "y": "a b"}, {"x"}) == "ls  a b {z}"
