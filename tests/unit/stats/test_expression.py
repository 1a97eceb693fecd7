"""The expression language: Perl's precedence, values and truth, and an answer or one error for any text."""

from __future__ import annotations

import math
import random
import subprocess

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from etude.stats.expression import MOST_CHARACTERS, ExpressionError, compile_expression, truth

KNOWN = {"name": "Elapsed", "count": 12.0, "mean": 3.0, "delta": 0.1, "text": "12 apples"}


def value(text: str) -> object:
    return compile_expression(text).evaluate(KNOWN)


def error(text: str) -> ExpressionError:
    with pytest.raises(ExpressionError) as raised:
        value(text)
    return raised.value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", 7.0),
        ("(1 + 2) * 3", 9.0),
        ("10 - 4 - 3", 3.0),
        ("12 / 4 / 3", 1.0),
        ("-2 ** 2", -4.0),
        ("2 ** 3 ** 2", 512.0),
        ("2 ** -1", 0.5),
        ("!1 == 1", False),
        ("not 1 == 2", True),
        ("not(0) + 1 == 3", False),
        ("1 + not (0)", 2.0),
        ("!0 + 1", 2.0),
        ("- -3", 3.0),
        ("7 % 3", 1.0),
        ("-7 % 3", 2.0),
        ("7 % -3", -2.0),
        ("7.9 % 3.9", 1.0),
        ("1 < 2 == 1", True),
        ("0 || 0 && 1 || 5", 5.0),
        ("1 or 0 and 0", 1.0),
        ("0 or not 0 and 1", 1.0),
        ("'a' && 'b'", "b"),
        ("0 || 'x'", "x"),
        (".5 + 5. + 5e-1", 6.0),
        ("abs(-3) + int(-2.7) + sqrt(9)", 4.0),
        ("exp(0) + log(1)", 1.0),
        ("min(3, 1, 2) + max(4)", 5.0),
        ("'10' == 10.0", True),
        ("'10' eq '10.0'", False),
        ("10 eq '10'", True),
        ("0.1 + 0.2 eq '0.3'", True),
        ("'abc' lt 'abd' && 'b' gt 'a' && 'a' le 'a' && 'a' ge 'a'", True),
        ("10 lt 9", True),
        ("1 <= 1 and 2 >= 3", False),
        ("2 != 3", True),
        ("$name =~ /^El/", True),
        ("'elapsed' =~ /LAPSE/", False),
        ("'elapsed' =~ /LAPSE/i", True),
        ("'a/b' =~ /a\\/b/ && 6 / 3 / 2 == 1", True),
        ("'x' !~ /y/", True),
        ("$count=~/2/", True),
    ],
)
def test_an_expression_has_the_value_that_perl_gives_it(text: str, expected: object) -> None:
    found = value(text)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"$delta" < 0.05 * $mean', True),
        ('("$delta" < 0.05 * $mean) || ($count > 30)', True),
        ('"$delta" < 0.01 * $mean || ($count > 30)', False),
        ('"$name" ne "User" && $delta < 0.2', True),
        ('"$name" eq "User" || "$name" eq "System"', False),
        ("${count} == 12", True),
    ],
)
def test_the_papers_predicates_work_as_printed(text: str, expected: bool) -> None:
    assert truth(value(text)) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"$name: $count"', "Elapsed: 12"),
        ('"${count}s"', "12s"),
        ('"-$delta" + 1', 0.9),
        (r'"\$count \"x\" \\"', '$count "x" \\'),
        (r'"a\tb"', "a\tb"),
        (r"'$count \' \\ \n'", r"$count ' \ \n"),
        ('""', ""),
        ("''", ""),
        ('"$"', "$"),
        ('"cost: 5$ or $5"', "cost: 5$ or $5"),
    ],
)
def test_a_quoted_word_is_its_value(text: str, expected: object) -> None:
    assert value(text) == expected


@given(st.floats(allow_nan=False))
def test_a_name_between_quotes_keeps_all_its_digits(x: float) -> None:
    assert compile_expression('"$x" == $x').evaluate({"x": x}) is True


@pytest.mark.parametrize(
    ("text", "true"),
    [
        ("0", False),
        ("0.0", False),
        ("''", False),
        ("'0'", False),
        ("'0.0'", True),
        ("'a'", True),
        ("0.1", True),
    ],
)
def test_truth_is_perls(text: str, true: bool) -> None:
    assert truth(value(text)) is true


@pytest.mark.parametrize(
    ("text", "column", "says"),
    [
        ("", 1, "number $name"),
        ("1 +", 4, "end"),
        ("1 2", 3, "end, '2'"),
        ("(1 + 2", 7, '")" "(" 1'),
        ("1 + )", 5, "')'"),
        ("elapsed < 3", 1, "elapsed; $elapsed 'elapsed'?"),
        ("1 + or", 5, "or"),
        ("'abc", 1, "closing '"),
        ('1 + "abc', 5, 'closing "'),
        ("$ + 1", 1, "name $"),
        ("1 = 2", 3, "operator"),
        ("1 & 2", 3, "operator"),
        ("1 < 2 < 3", 7, "chain"),
        ("1 == 2 eq 3", 8, "chain"),
        ("abs 3", 5, '"(" abs'),
        ("abs(1, 2)", 1, "abs one 2"),
        ("min()", 5, "number"),
        ("1 + not 2", 5, "not"),
        ("1 not 2", 3, "operator"),
        ("$name =~ 'x'", 10, "/…/"),
        ("$name =~ /(/", 10, "expression"),
        ("$name =~ /(?L)/", 10, "expression"),
        ("$name =~ /x/g", 10, "i"),
        ("$meen + 1", 1, "$meen, $mean; $count, $delta"),
        ("1 + $nothing_like_it", 5, "$nothing_like_it; $count"),
        ('1 + "x$nope"', 5, "$nope"),
        ("1 / ($count - 12)", 3, "division zero"),
        ("1 % 0.5", 3, "remainder zero"),
        ("1 + log(0)", 5, "log 0"),
        ("sqrt(-1)", 1, "sqrt negative"),
        ("0 ** -1", 3, "zero negative"),
        ("(-8) ** 0.5", 6, "negative"),
        ("$name < 3", 7, "< 'Elapsed'"),
        ("1 + $text", 3, "+ '12 apples'"),
        ("-'abc'", 1, "- number"),
        ("abs('')", 1, "abs ''"),
        ("1e999 % 2", 7, "% finite"),
    ],
)
def test_what_is_wrong_is_said_with_its_column(text: str, column: int, says: str) -> None:
    found = error(text)
    assert [word for word in says.split() if word not in found.message] == []
    assert "\n" not in found.message
    assert found.column == column


def test_what_is_not_evaluated_cannot_fail() -> None:
    assert value("1 || 1 / 0") == 1.0
    assert value("0 && $unknown") == 0.0


def test_names_are_known_without_evaluating() -> None:
    expression = compile_expression('1 || $mean < "$delta $mean"')
    assert expression.names == ("mean", "delta")
    expression.require(["mean", "delta", "count"])
    with pytest.raises(ExpressionError, match=r"unknown variable \$delta") as raised:
        expression.require(["mean"])
    assert raised.value.column == 15


@pytest.mark.parametrize("text", ["2" + " ** 9" * 60, "-2 ** 1023 ** 3", "9 ** 9 ** 9 ** 9", "exp(1000)"])
def test_a_power_too_large_is_infinite_at_once(text: str) -> None:
    assert abs(float(str(value(text)))) == math.inf


@pytest.mark.parametrize(
    "text",
    ["(" * 5000, "-" * 5000 + "1", "2" + "**2" * 3000, "not " * 2000 + "1", "abs(" * 2000, "1||(" * 2000],
)
def test_what_is_nested_too_deeply_is_an_error(text: str) -> None:
    assert "more than 100 levels" in error(text).message


@pytest.mark.parametrize("text", ["1" + "+1" * 4999, "0" + "||0" * 3000, "(" * 50 + "1" + ")" * 50])
def test_a_long_expression_is_no_deep_one(text: str) -> None:
    assert isinstance(value(text), float)


def test_an_expression_has_a_length_that_it_may_not_exceed() -> None:
    assert value("1" * MOST_CHARACTERS) == math.inf
    assert "more than 10,000 characters" in error("1" * (MOST_CHARACTERS + 1)).message


PIECES = [
    "(",
    ")",
    "-",
    "!",
    "**",
    "=~",
    "/x/",
    "/",
    "'",
    '"',
    "$mean",
    "$name",
    "$",
    "1",
    "0",
    ".5",
    "e",
    " ",
    ",",
]
PIECES += [
    "&&",
    "||",
    "not ",
    "and",
    "or",
    "eq",
    "<",
    "==",
    "%",
    "abs",
    "min(",
    "log(",
    "\\",
    "{",
    "}",
    "\n",
    "é",
]


@given(st.text() | st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
@example("$count =~ /(?i:x)/ ** not -'\\")
def test_any_text_has_a_value_or_one_error_in_one_line(text: str) -> None:
    problem = None
    try:
        assert truth(value(text)) in (True, False)
    except ExpressionError as raised:
        problem = raised
    assert problem is None or ("\n" not in problem.message and 1 <= problem.column <= len(text) + 1)


def random_expression(dice: random.Random, depth: int) -> str:
    if depth == 0 or dice.random() < 0.15:
        return dice.choice(["0", "1", "2", "3", "0.5", "7", "12", "'3'", "'0'", "'ab'", "'b'", "''"])
    inner = [random_expression(dice, depth - 1) for _ in range(3)]
    kind = dice.randrange(10)
    if kind == 0:
        return f"({inner[0]})"
    if kind == 1:
        return dice.choice(["-", "!", "not "]) + inner[0]
    if kind == 2:
        return f"abs({inner[0]})" if dice.random() < 0.5 else f"int({inner[0]})"
    words = ["+", "-", "*", "/", "%", "**", "<", ">", "<=", ">=", "==", "!=", "&&", "||"]
    operator = dice.choice([*words, "eq", "ne", "lt", "gt", "and", "or"])
    return f"{inner[0]} {operator} {inner[1]}"


PERL = r"""
while (my $line = <STDIN>) {
    chomp $line;
    my $bad = 0;
    local $SIG{__WARN__} = sub { $bad = 1 if $_[0] =~ /isn't numeric/ };
    use warnings;
    my $value = eval $line;
    print $bad || $@ || !defined($value) ? "none\n" : "=$value\n";
}
"""


@pytest.mark.needs_program("perl", package="perl-base")
def test_perl_itself_gives_the_same_values() -> None:
    from etude.stats.operators import text as perl_text

    dice = random.Random(1)
    expressions = [random_expression(dice, 4) for _ in range(6000)]
    done = subprocess.run(
        ["perl", "-e", PERL], input="\n".join(expressions) + "\n", capture_output=True, text=True, check=True
    )
    compared = 0
    for expression, theirs in zip(expressions, done.stdout.splitlines(), strict=True):
        try:
            ours = "=" + perl_text(value(expression))  # type: ignore[arg-type]
        except ExpressionError:
            continue  # we refuse more than Perl does
        if theirs != "none" and "inf" not in theirs.lower() and "nan" not in theirs.lower():
            assert ours == theirs, expression
            compared += 1
    assert compared > 1000
