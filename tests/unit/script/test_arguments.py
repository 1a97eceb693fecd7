"""What stands behind the directives' words: what it means, and where it is wrong."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from decimal import Decimal
from itertools import count, islice, takewhile

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from etude.script.arguments import (
    CACHE_WAYS,
    FIRST_NUMBER,
    Condition,
    is_true,
    number_text,
    parse_assignment,
    parse_cache,
    parse_condition,
    parse_foreach,
    parse_metric,
    parse_test,
    parse_threads,
)
from etude.script.directive_words import ArgumentError, split_words
from etude.script.forloop import parse_for


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("N=V", "N", "V"),
        ("N = V W ", "N", "V W"),
        (" N= ", "N", ""),
        ("_1=a=b", "_1", "a=b"),
        ("N='a b'", "N", "'a b'"),
    ],
)
def test_an_assignment_has_no_blanks_round_name_and_value(text: str, name: str, value: str) -> None:
    assert parse_assignment(text) == (name, value)


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("A=1", ("A", "=", "1")),
        ("A == 1", ("A", "=", "1")),
        ("A!==1", ("A", "!=", "1")),
        (" A  !=  x y ", ("A", "!=", "x y")),
        ("A<1", ("A", "<", "1")),
        ("A > -1", ("A", ">", "-1")),
        ("A<=1", ("A", "<=", "1")),
        ("A !<= 1", ("A", "!<=", "1")),
        ("A!>=1", ("A", "!>=", "1")),
        ("A!<1", ("A", "!<", "1")),
        ("A !> 1", ("A", "!>", "1")),
        ("A=", ("A", "=", "")),
        ("A = = b", ("A", "=", "= b")),
        ("A = 'x'", ("A", "=", "'x'")),
    ],
)
def test_conditions_are_a_name_an_operator_and_the_rest(text: str, condition: tuple[str, str, str]) -> None:
    assert parse_condition(text) == Condition(*condition)


@pytest.mark.parametrize(
    ("left", "condition", "answer"),
    [
        ("1", "A = 1.0", True),
        ("10", "A > 9", True),
        ("10", "A < 9", False),
        ("10", "A !< 9", True),
        ("1e3", "A >= 1000", True),
        ("1e9999", "A > 1", True),
        ("0.1", "A <= .1", True),
        ("-0", "A = 0", True),
        ("9007199254740993", "A != 9007199254740992", True),
        ("1", "A !>= 1", False),
        ("1", "A !<= 0", True),
        ("1", "A !> 1", True),
        ("ext2", "A = ext2", True),
        (" ext2 ", "A = ext2", True),
        ("ext2", "A != ext2", False),
        ("ext2", "A = ext3", False),
        ("", "A =", True),
        ("1", "A = one", False),
        ("nan", "A = nan", True),
        ("²", "A = 2", False),
    ],
)
def test_numbers_are_compared_as_numbers_and_all_else_as_text(
    left: str, condition: str, answer: bool
) -> None:
    assert is_true(parse_condition(condition), left) is answer


@pytest.mark.parametrize("condition", ["A < b", "A >= 1", "A !< 1", "A > "])
def test_text_is_neither_larger_nor_smaller(condition: str) -> None:
    with pytest.raises(ArgumentError, match=r"A is 'ext2': .*= and !="):
        is_true(parse_condition(condition), "ext2")


NUMBERS = st.decimals(-1000, 1000, places=2).map(str)


@given(NUMBERS, NUMBERS)
def test_each_operator_is_the_opposite_of_its_negation(left: str, right: str) -> None:
    def says(op: str) -> bool:
        return is_true(Condition("A", op, right), left)

    for op in ("=", "<", ">", "<=", ">="):
        assert says(op) != says(f"!{op}")
    assert says("=") + says("<") + says(">") == 1
    assert says("<=") == (Decimal(left) <= Decimal(right))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("I=1 TO 3", "1 2 3"),
        ("I = 1 TO 1", "1"),
        ("THREADCOUNT=1 TO 32 FACTOR 2", "1 2 4 8 16 32"),
        ("I=1 TO 33 FACTOR 2", "1 2 4 8 16 32"),
        ("I=0 TO 1 ADD 0.25", "0 0.25 0.5 0.75 1"),
        ("I=0 TO 0.3 ADD .1", "0 0.1 0.2 0.3"),
        ("I=3 TO -3 ADD -2", "3 1 -1 -3"),
        ("I=8 TO 1 FACTOR 0.5", "8 4 2 1"),
        ("I=100 TO 300 ADD 100", "100 200 300"),
        ("I=007 TO 8.50 ADD +1.50", "7 8.5"),
        ("I=-0 TO 0", "0"),
        ("I=5 TO 5 ADD -1", "5"),
        ("I=5 TO 5 FACTOR 3", "5"),
        ("I=1 TO 2 FACTOR 1.5", "1 1.5"),
        ("I=1. TO 2", "1 2"),
        ("I=1 TO 100000000000000 FACTOR 10000000", "1 10000000 100000000000000"),
        ("I=999999999999999 TO 999999999999999", "999999999999999"),
    ],
)
def test_for_counts_in_exact_decimals_without_exponents(text: str, values: str) -> None:
    loop = parse_for(text)
    assert list(takewhile(lambda value: value is not None, map(loop.value, count()))) == values.split()


SMALL = st.decimals(Decimal("-99.9"), Decimal("99.9"), places=1)


@given(SMALL, SMALL, SMALL)
def test_adding_gives_just_the_values_between_the_ends(first: Decimal, last: Decimal, by: Decimal) -> None:
    text = f"I={first} TO {last} ADD {by}"
    if by == 0 or (last - first) * by < 0:
        with pytest.raises(ArgumentError, match="never"):
            parse_for(text)
        return
    expected = []
    value = first
    while (value <= last) if by > 0 else (value >= last):
        expected.append(value)
        value += by
    loop = parse_for(text)
    found = list(islice(takewhile(bool, map(loop.value, count())), 5000))
    assert [Decimal(text) for text in found if text is not None] == expected


@given(
    st.decimals(Decimal("0.001"), 10**6, places=3),
    st.decimals(Decimal("0.001"), 10**6, places=3),
    st.decimals(Decimal("0.1"), 9, places=1),
)
def test_every_loop_that_is_accepted_moves_on_and_ends(first: Decimal, last: Decimal, by: Decimal) -> None:
    try:
        loop = parse_for(f"I={first} TO {last} FACTOR {by}")
    except ArgumentError:
        assert by == 1 or (by > 1) != (last > first)
        return
    values = list(islice(takewhile(bool, map(loop.value, count())), 1000))
    assert 1 <= len(values) < 1000
    numbers = [Decimal(value) for value in values if value is not None]
    assert numbers == sorted(set(numbers), reverse=by < 1)
    assert numbers[0] == first
    assert loop.value(10**9) is None


@pytest.mark.parametrize(
    ("text", "name", "values"),
    [
        ("FS ext2 ext3", "FS", ("ext2", "ext3")),
        ("FS", "FS", ()),
        ("A 'b c' d\\ e \"f 'g'\" ''", "A", ("b c", "d e", "f 'g'", "")),
        ("A b=c;d", "A", ("b=c;d",)),
    ],
)
def test_foreach_has_the_words_that_a_shell_would_have(text: str, name: str, values: tuple[str, ...]) -> None:
    assert parse_foreach(text) == (name, values)


@given(st.text(st.sampled_from("ab \t'\"\\=é;")))
def test_words_are_split_as_shells_do(text: str) -> None:
    try:
        expected = shlex.split(text)
    except ValueError:
        with pytest.raises(ArgumentError) as error:
            split_words(text)
        assert 1 <= error.value.column <= len(text)
        return
    words = split_words(text)
    assert [word.text for word in words] == expected
    for word in words:
        assert not text[word.column - 1].isspace()
        assert word.column == 1 or text[word.column - 2].isspace() or word.text


def test_a_backslash_in_double_quotes_keeps_a_dollar_and_a_backtick() -> None:
    assert [word.text for word in split_words(r'"\$a \` \n"')] == [r"$a ` \n"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a 10", ("a", 10, None, None, None, (), "")),
        ("ext2:1 10 MAX=30", ("ext2:1", 10, 30, None, None, (), "")),
        ("a 10 MAX=10 TIME=90s", ("a", 10, 10, 90.0, None, (), "")),
        ("a 10 TIME=5m MAX=30", ("a", 10, 30, 300.0, None, (), "")),
        ("a 10 TIME=2h 1 true", ("a", 10, None, 7200.0, 1, ("true",), "true")),
        ("a 10 TIME=30 5 true", ("a", 10, None, 30.0, 5, ("true",), "true")),
        ("a 1 TIME=0.5s", ("a", 1, None, 0.5, None, (), "")),
        ("a 1 TIME=250ms", ("a", 1, None, 0.25, None, (), "")),
        ("'a b' 1", ("a b", 1, None, None, None, (), "")),
        (
            """a 10 1 getstats  --predicate '$count > 30' MAX=3 --""",
            ("a", 10, None, None, 1, ("getstats", "--predicate", "$count > 30", "MAX=3", "--"),
             "getstats  --predicate '$count > 30' MAX=3 --"),
        ),
    ],
)  # fmt: skip
def test_a_test_has_its_numbers_then_a_program_and_its_words(text: str, expected: tuple[object, ...]) -> None:
    header = parse_test(text)
    assert (
        header.name,
        header.minimum,
        header.maximum,
        header.budget_s,
        header.step,
        header.program,
        header.program_text,
    ) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"rate:B/s (\d+) B/s", ("rate", "B/s", r"(\d+) B/s", "")),
        (r"rate:B/s max  (\d+) B/s", ("rate", "B/s", r"(\d+) B/s", "max")),
        ("rate max", ("rate", "1", "max", "")),
        ("rate maximum=([0-9]+)", ("rate", "1", "maximum=([0-9]+)", "")),
        ("ops  ops: *([0-9]+) ", ("ops", "1", "ops: *([0-9]+)", "")),
        ("m [[a]", ("m", "1", "[[a]", "")),
        ('m "rate=([0-9]+)"', ("m", "1", "rate=([0-9]+)", "")),
        ("m:s max 'took ([0-9]+)' ", ("m", "s", "took ([0-9]+)", "max")),
        ('m "took": "([0-9]+)"', ("m", "1", '"took": "([0-9]+)"', "")),
        ("m '$.took'", ("m", "1", "$.took", "")),
        ('used:B FROM CLEANUP "df -B1 /mnt" ([0-9]+)$', ("used", "B", "([0-9]+)$", "", "df -B1 /mnt")),
        ("used:B FROM CLEANUP free", ("used", "B", FIRST_NUMBER, "", "free")),
        ("m FROM CLEANUPS", ("m", "1", "FROM CLEANUPS", "")),
        ('m "', ("m", "1", '"', "")),
    ],
)
def test_a_metric_has_a_name_perhaps_a_unit_and_an_expression(
    text: str, expected: tuple[str, ...], recwarn: pytest.WarningsRecorder
) -> None:
    assert parse_metric(text) == expected
    assert not recwarn.list


def test_the_ways_of_caches_are_those_of_the_paper_and_two_more() -> None:
    assert [parse_cache(f" {way}  /a 'b c' ") for way in CACHE_WAYS] == [
        (way, ("/a", "b c")) for way in CACHE_WAYS
    ]
    assert list(CACHE_WAYS) == [
        *("none", "warm", "chill", "drop", "remount", "remount+chill", "reboot", "reboot+chill")
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (0.1, "0.1"),
        (-2.5e-7, "-0.00000025"),
        (1e22, "10000000000000000000000"),
        (-0.0, "0"),
        (100.0, "100"),
    ],
)
def test_results_are_numbers_without_exponents(value: float, text: str) -> None:
    assert number_text(value) == text


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_result_that_is_no_number_is_an_error(value: float) -> None:
    with pytest.raises(ArgumentError, match="expected a number"):
        number_text(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_results_lose_nothing(value: float) -> None:
    assert float(number_text(value)) == value


PIECES = [
    *("A", "=", "1", "TO", "FACTOR", "ADD", "-3", "0", ".5", "'", '"', "\\", "!", "<", ">", "(", ":", "MAX="),
    *("TIME=", "2h", "warm", "+", "é", "99999999999999999999", "1e5", "*", "[", " ", " ", "\n"),
]


@pytest.mark.parametrize(
    "parse",
    [
        parse_assignment,
        parse_condition,
        parse_for,
        parse_foreach,
        parse_test,
        parse_metric,
        parse_cache,
        parse_threads,
    ],
)
@example("A )\n0")
@example("A [\x1b0")
@given(st.text() | st.lists(st.sampled_from(PIECES)).map("".join))
def test_any_text_is_parsed_or_an_error_with_its_column(parse: Callable[[str], object], text: str) -> None:
    wrong = None
    try:
        parse(text)
    except ArgumentError as error:
        wrong = error
    assert wrong is None or 0 <= wrong.column <= len(text) + 1
    assert wrong is None or "\n" not in wrong.message
