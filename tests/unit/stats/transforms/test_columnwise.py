"""Expressions over columns: what the expression says of each row, one by one."""

from __future__ import annotations

import math

import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.stats.expression import ExpressionError, compile_expression
from etude.stats.operators import text
from etude.stats.transforms.columnwise import evaluate, holds

numbers = st.sampled_from([0.0, 1.0, -1.0, 2.5, -3.0, 1e10, 7.0]) | st.floats(-100, 100)
words = st.sampled_from(["", "0", "1", "make", "tar", " 3 ", "2e1", "x"])
rows = st.lists(st.tuples(numbers, numbers, words, words, st.booleans()), min_size=1, max_size=6)
NAMES = ("a", "b", "s", "t", "f")

leaves = st.sampled_from(["$a", "$b", "$s", "$t", "$f", "2", "0", "-1.5", "'tar'", '"x"', '"$a;$s"', '"$b"'])


def branches(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    arithmetic, texts = ["+", "-", "*", "/", "%", "**"], ["eq", "ne", "lt", "gt", "le", "ge"]
    infix = [*arithmetic, *texts, "<", ">", "<=", ">=", "==", "!=", "&&", "||", "and", "or"]
    functions = ["abs", "int", "sqrt", "log", "exp", "not"]
    return (
        st.tuples(inner, st.sampled_from(infix), inner).map(lambda p: f"({p[0]} {p[1]} {p[2]})")
        | st.tuples(st.sampled_from(["!", "-", "+"]), inner).map(lambda p: f"({p[0]} {p[1]})")
        | st.tuples(st.sampled_from(functions), inner).map(lambda p: f"{p[0]}({p[1]})")
        | st.tuples(inner, inner, inner).map(lambda p: f"min({p[0]}, max({p[1]}, {p[2]}))")
        | st.tuples(inner, st.sampled_from(["=~", "!~"])).map(lambda p: f"({p[0]} {p[1]} /^[0-9m]/i)")
    )


expressions = st.recursive(leaves, branches, max_leaves=8)


def frame(table: list[tuple[object, ...]]) -> dict[str, polars.Series]:
    return {
        name: polars.Series(list(column))
        for name, column in zip(NAMES, zip(*table, strict=True), strict=True)
    }


@given(expressions, rows)
def test_a_column_says_what_each_row_says(source: str, table: list[tuple[object, ...]]) -> None:
    expression = compile_expression(source)
    alone, refused = [], False
    for row in table:
        try:
            alone.append(expression.evaluate(dict(zip(NAMES, row, strict=True))))  # type: ignore[arg-type]
        except ExpressionError:
            refused = True
    try:
        together = evaluate(expression, frame(table), len(table)).to_list()
    except ExpressionError:
        assert refused
        return
    assert not refused
    for one, value in zip(together, alone, strict=True):
        if not isinstance(value, str) and not math.isfinite(value):
            assert one is None or one == text(value)
        elif isinstance(one, str):
            assert one == text(value)
        else:
            assert float(one) == pytest.approx(float(value), rel=1e-12)


def test_the_right_side_is_evaluated_only_where_it_is_come_to() -> None:
    variables = {"n": polars.Series([0.0, 2.0, 4.0]), "x": polars.Series([1.0, 6.0, 4.0])}
    assert holds(compile_expression("$n != 0 && $x / $n > 2"), variables, 3).to_list() == [False, True, False]
    with pytest.raises(ExpressionError, match="row 1: division") as error:
        holds(compile_expression("$x / $n > 2"), variables, 3)
    assert error.value.column == 4
    with pytest.raises(ExpressionError, match="row 3: division"):
        holds(compile_expression("$n < 4 || $x / ($n - 4)"), variables, 3)


def test_what_is_missing_makes_what_needs_it_missing() -> None:
    variables = {"x": polars.Series([1.0, None, math.nan]), "s": polars.Series(["a", None, "b"])}
    assert evaluate(compile_expression("$x + 1"), variables, 3).to_list() == [2.0, None, None]
    assert evaluate(compile_expression('$s ne "a" || $x == 1'), variables, 3).to_list() == [True, None, True]
    assert holds(compile_expression("!$x"), variables, 3).to_list() == [False, False, False]
    assert evaluate(
        compile_expression('$x || "none"'), {"x": polars.Series([None, 0.0, 2.0])}, 3
    ).to_list() == [
        None,
        "none",
        "2",
    ]


def test_one_value_counts_for_all_rows_and_an_unknown_name_is_told() -> None:
    variables = {"x": polars.Series([1, 2]), "file": "a.res", "limit": 1.5}
    assert evaluate(compile_expression('"$file:$x"'), variables, 2).to_list() == ["a.res:1", "a.res:2"]
    assert holds(compile_expression("$x > $limit"), variables, 2).to_list() == [False, True]
    with pytest.raises(ExpressionError, match=r"\$limt\b.*\$limit"):
        holds(compile_expression("0 && $limt"), variables, 2)


def test_a_text_that_is_no_number_is_told_with_its_row() -> None:
    variables = {"s": polars.Series(["1", "2", "fast"])}
    with pytest.raises(ExpressionError, match=r"row 3: > .*'fast'"):
        holds(compile_expression("$s > 1"), variables, 3)


def test_no_rows_have_no_values() -> None:
    variables = {"x": polars.Series([], dtype=polars.Float64), "s": polars.Series([], dtype=polars.String)}
    for source in ("$x > 1 && $s eq 'a'", '"$s$x"', "$s =~ /a/", "$s + 1", "1 / $x"):
        assert evaluate(compile_expression(source), variables, 0).to_list() == []
