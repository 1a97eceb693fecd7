"""Expressions over whole columns: `Expression.evaluate` for each row, without Python code per row.

A missing value makes every result that needs it missing. The right side of && and || is evaluated only for the rows
that reach it, so that `$n && $x / $n > 2` never divides by zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars
from numpy.typing import NDArray

from etude.stats.expression import Branch, Compute, Expression, ExpressionError, Leaf, Value
from etude.stats.operators import FUNCTIONS, INFIX, PREFIX, OperatorError, number, text, truth

Variable = polars.Series | float | str
"""A column, or one value for all rows."""


def evaluate(expression: Expression, variables: Mapping[str, Variable], height: int) -> polars.Series:
    """The expression's value in each of `height` rows: Float64, Boolean or String, null for a missing value.

    A non-finite number is also null.

    Raises:
        ExpressionError: an unknown variable, a text instead of a number, a division by zero or similar; with the row,
        from 1.
    """
    expression.require(variables)
    names = expression.names
    columns = {name: _column(variables[name], height) for name in names}
    try:
        found = _Run(expression.steps, columns, height).result()
    except _MixedError:
        return _row_by_row(expression, {name: columns[name] for name in names}, height)
    return found.series()


def holds(expression: Expression, variables: Mapping[str, Variable], height: int) -> polars.Series:
    """Rows in which the expression is true, as Boolean; false if a value that it needs is missing.

    Raises ExpressionError from `evaluate`.
    """
    found = evaluate(expression, variables, height)
    if found.dtype == polars.String:
        return (~found.is_in(["", "0"])).fill_null(False)
    return (found if found.dtype == polars.Boolean else found != 0).fill_null(False)


def texts(expression: Expression, variables: Mapping[str, Variable], height: int, nothing: str) -> list[str]:
    """The expression's value in each row as text, as printed by Perl; `nothing` replaces a missing value.

    Raises ExpressionError from `evaluate`.
    """
    known = {name: variables[name] for name in expression.names if name in variables}
    for name, value in known.items():
        if isinstance(value, polars.Series) and value.null_count():
            words = _listed(_column(value, height).texts())
            known[name] = polars.Series([nothing if word is None else str(word) for word in words])
    found = _listed(_column(evaluate(expression, {**variables, **known}, height), height).texts())
    return [nothing if value is None else str(value) for value in found]


class _MixedError(Exception):
    """The rows' values are of different types, as in `$x || "none"`."""


@dataclass(frozen=True)
class _Column:
    """Values of one type. Distinct texts are stored once: `data` then has their indices in `words`."""

    data: NDArray[Any]  # float64, bool, or int64 with words
    there: NDArray[np.bool_]
    words: tuple[str, ...] | None = None

    def take(self, rows: NDArray[np.int64] | None) -> _Column:
        return self if rows is None else _Column(self.data[rows], self.there[rows], self.words)

    def truth(self) -> NDArray[np.bool_]:
        if self.words is not None:
            return self.look_up([truth(word) for word in self.words], np.bool_)
        found: NDArray[np.bool_] = self.data != 0
        return found

    def look_up(self, values: Sequence[object], kind: type) -> NDArray[Any]:
        by_word: NDArray[Any] = np.array(values or [0], dtype=kind)
        found: NDArray[Any] = by_word[self.data]
        return found

    def numbers(self, needed_by: str) -> NDArray[np.float64]:
        """Numbers of the rows. Raises _RowError if a text is not a number."""
        if self.words is None:
            return self.data.astype(np.float64)
        values = [0.0] * len(self.words)
        for place in np.unique(self.data[self.there]).tolist():
            try:
                values[place] = number(self.words[place], needed_by)
            except OperatorError as error:
                raise _RowError(int(np.argmax(self.there & (self.data == place))), error) from None
        return self.look_up(values, np.float64)

    def texts(self) -> _Column:
        if self.words is not None:
            return self
        values, places = np.unique(self.data, return_inverse=True)
        words = tuple(text(value) for value in values.tolist())
        return _Column(places.reshape(-1).astype(np.int64), self.there, words)

    def series(self) -> polars.Series:
        if self.words is not None:
            words = polars.Series(list(self.words) or [""], dtype=polars.String)
            found = words.gather(self.data)
        elif self.data.dtype == np.bool_:
            found = polars.Series(self.data)
        else:
            return polars.Series(np.where(self.there & np.isfinite(self.data), self.data, np.nan)).fill_nan(
                None
            )
        return found if self.there.all() else found.set(polars.Series(~self.there), None)


class _RowError(Exception):
    """Error in one of the current rows, with its index among them, from 0."""

    def __init__(self, place: int, reason: OperatorError) -> None:
        super().__init__(place, reason)
        self.place, self.reason = place, reason


class _Run:
    """The stack machine of `Expression.evaluate`, with columns on its stack."""

    def __init__(
        self, steps: Sequence[Compute | Branch], columns: Mapping[str, _Column], height: int
    ) -> None:
        self.steps, self.columns, self.height = steps, columns, height

    def result(self) -> _Column:
        return self._part(0, len(self.steps), None)

    def _part(self, place: int, end: int, rows: NDArray[np.int64] | None) -> _Column:
        stack: list[_Column] = []
        while place < end:
            step = self.steps[place]
            place += 1
            if isinstance(step, Branch):
                stack.append(self._branch(step, stack.pop(), place, rows))
                place = step.target
                continue
            operands = [stack.pop() for _ in range(step.takes)][::-1]
            try:
                stack.append(self._compute(step, operands, rows))
            except _RowError as error:
                row = error.place if rows is None else int(rows[error.place])
                raise ExpressionError(f"row {row + 1}: {error.reason}", step.column) from None
        return stack[-1]

    def _branch(self, step: Branch, left: _Column, place: int, rows: NDArray[np.int64] | None) -> _Column:
        on = left.there & (left.truth() != step.when)
        if not on.any():
            return left
        here = np.flatnonzero(on)
        right = self._part(place, step.target, here if rows is None else rows[here])
        return right if here.size == left.data.size else _merged(left, right, here)

    def _compute(self, step: Compute, operands: Sequence[_Column], rows: NDArray[np.int64] | None) -> _Column:
        count = self.height if rows is None else rows.size
        if step.symbol == Leaf.CONSTANT:
            return _constant(step.argument, count)
        if step.symbol == Leaf.VARIABLE:
            return self.columns[step.argument].take(rows)
        if step.symbol == Leaf.TEXT:
            found = _constant("", count)
            for part in step.argument:
                found = _paired(found, self._compute(part, (), rows).texts(), lambda a, b: a + b)
            return found
        if step.symbol == Leaf.MATCH:
            pattern, wanted = step.argument
            words = operands[0].texts()
            matched = [pattern.found_in(word) == wanted for word in words.words or ()]
            return _Column(words.look_up(matched, np.bool_), words.there)
        return _operated(step.symbol, operands)


def _operated(symbol: str, operands: Sequence[_Column]) -> _Column:
    if symbol == "! before":
        return _Column(~operands[0].truth(), operands[0].there)
    if symbol in _TEXTUAL:
        first, second = (column.texts() for column in operands)
        function = INFIX[symbol]
        return _paired(first, second, lambda a, b: bool(function(a, b)))
    name = symbol.removesuffix(" before")
    numbers = [column.numbers(name) for column in operands]
    there = np.logical_and.reduce([column.there for column in operands])
    scalar = PREFIX[name] if symbol.endswith(" before") else INFIX.get(name) or FUNCTIONS[name]
    wrong = _WRONG.get(symbol)
    if wrong is not None:
        with np.errstate(all="ignore"):
            places = np.flatnonzero(there & wrong(*numbers))
        if places.size:
            place = int(places[0])
            try:
                scalar(*(float(each[place]) for each in numbers))
            except OperatorError as error:
                raise _RowError(place, error) from None
    with np.errstate(all="ignore"):
        return _Column(_VECTOR[symbol](*numbers), there)


_TEXTUAL = ("eq", "ne", "lt", "gt", "le", "ge")

Array = NDArray[Any]


def _extreme(first: Array, *others: Array, better: Callable[[Array, Array], Array]) -> Array:
    """Python's min and max: the first of equal and of incomparable values."""
    for each in others:
        first = np.where(better(each, first), each, first)
    return first


_VECTOR: Mapping[str, Callable[..., Array]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "%": lambda a, b: np.mod(np.trunc(a), np.trunc(b)),
    "**": np.power,
    "<": np.less,
    ">": np.greater,
    "<=": np.less_equal,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
    "- before": np.negative,
    "+ before": np.positive,
    "abs": np.abs,
    "int": np.trunc,
    "sqrt": np.sqrt,
    "log": np.log,
    "exp": np.exp,
    "min": lambda *values: _extreme(*values, better=np.less),
    "max": lambda *values: _extreme(*values, better=np.greater),
}
_WRONG: Mapping[str, Callable[..., Array]] = {
    "/": lambda a, b: b == 0,
    "%": lambda a, b: ~np.isfinite(a) | ~np.isfinite(b) | (np.trunc(b) == 0),
    "**": lambda a, b: ((a == 0) & (b < 0)) | ((a < 0) & np.isfinite(a) & (np.trunc(b) != b)),
    "sqrt": lambda x: x < 0,
    "log": lambda x: x <= 0,
}
"""Masks of rows on which the scalar operator may raise; it is then called for these."""


def _paired(first: _Column, second: _Column, function: Callable[[str, str], str | bool]) -> _Column:
    """A function of two texts, called once per distinct pair."""
    a, b = first.words or ("",), second.words or ("",)
    pairs, places = np.unique(first.data * len(b) + second.data, return_inverse=True)
    places = places.reshape(-1).astype(np.int64)
    values = [function(a[pair // len(b)], b[pair % len(b)]) for pair in pairs.tolist()]
    there = first.there & second.there
    if values and isinstance(values[0], bool):
        return _Column(np.array(values, dtype=np.bool_)[places], there)
    words = tuple(dict.fromkeys(map(str, values))) or ("",)
    index = {word: place for place, word in enumerate(words)}
    return _Column(np.array([index[str(value)] for value in values], dtype=np.int64)[places], there, words)


def _merged(left: _Column, right: _Column, rows: NDArray[np.int64]) -> _Column:
    there = left.there.copy()
    there[rows] = right.there
    if left.words is not None and right.words is not None:
        data = left.data.copy()
        data[rows] = right.data + len(left.words)
        return _Column(data, there, left.words + right.words)
    if left.words is not None or right.words is not None or left.data.dtype != right.data.dtype:
        raise _MixedError
    data = left.data.copy()
    data[rows] = right.data
    return _Column(data, there)


def _constant(value: Value, count: int) -> _Column:
    there = np.ones(count, dtype=np.bool_)
    if isinstance(value, str):
        return _Column(np.zeros(count, dtype=np.int64), there, (value,))
    kind = np.bool_ if isinstance(value, bool) else np.float64
    return _Column(np.full(count, value, dtype=kind), there)


def _column(variable: Variable, height: int) -> _Column:
    if not isinstance(variable, polars.Series):
        return _constant(variable if isinstance(variable, str) else float(variable), height)
    there = variable.is_not_null().to_numpy()
    if variable.dtype == polars.Boolean:
        return _Column(variable.fill_null(False).to_numpy().astype(np.bool_), there)
    if variable.dtype.is_numeric():
        data = variable.cast(polars.Float64).fill_null(math.nan).to_numpy()
        return _Column(data, there & ~np.isnan(data))
    texts = variable.cast(polars.String, strict=False)
    words = texts.drop_nulls().unique()
    if words.is_empty():
        return _Column(np.zeros(height, dtype=np.int64), np.zeros(height, dtype=np.bool_), ("",))
    places = polars.Series(range(len(words)), dtype=polars.Int64)
    data = texts.replace_strict(words, places, default=0, return_dtype=polars.Int64).fill_null(0).to_numpy()
    return _Column(data, texts.is_not_null().to_numpy(), tuple(words.to_list()))


def _row_by_row(expression: Expression, columns: Mapping[str, _Column], height: int) -> polars.Series:
    """Fallback for values of different types: one evaluation per combination of the variables' values."""
    known: dict[tuple[Value | None, ...], Value | None] = {}
    values: list[Value | None] = []
    rows = zip(*(_listed(column) for column in columns.values()), strict=True)
    for place, row in enumerate(rows):
        if row not in known:
            try:
                known[row] = _one(expression, dict(zip(columns, row, strict=True)))
            except ExpressionError as error:
                raise ExpressionError(f"row {place + 1}: {error.message}", error.column) from None
        values.append(known[row])
    if any(isinstance(value, str) for value in values):
        return polars.Series(
            [None if value is None else text(value) for value in values], dtype=polars.String
        )
    numbers = [math.nan if value is None else float(value) for value in values]
    return polars.Series([value if math.isfinite(value) else None for value in numbers], dtype=polars.Float64)


def _one(expression: Expression, row: Mapping[str, Value | None]) -> Value | None:
    """The value in a row, or None if a value that it needs is missing."""
    there = {name: value for name, value in row.items() if value is not None}
    if len(there) == len(row):
        return expression.evaluate(there)
    try:
        return expression.evaluate(there)
    except ExpressionError as error:
        if error.message.startswith("unknown variable"):
            return None
        raise


def _listed(column: _Column) -> list[Value | None]:
    data = column.data.tolist() if column.words is None else [column.words[place] for place in column.data]
    return [value if there else None for value, there in zip(data, column.there.tolist(), strict=True)]
