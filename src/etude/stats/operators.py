"""Operators of expressions: Perl's, with floating-point numbers.

A text that can be parsed as a number is one where a number is needed. Any other text is an error there, unlike Perl's
0: a misspelt name must not pass for a measurement.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping

Value = float | str | bool

_NUMBER = re.compile(
    r"\s*[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf|infinity|nan)\s*", re.IGNORECASE
)


class OperatorError(ValueError):
    """Invalid operands; the message is one line."""


def truth(value: Value) -> bool:
    """Truth value as in Perl: anything except 0, the empty text and the text "0"."""
    return value not in ("", "0") if isinstance(value, str) else bool(value)


def text(value: Value) -> str:
    """The value as printed by Perl: 15 significant digits; true is 1, false is empty."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "1" if value else ""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Inf" if value > 0 else "-Inf"
    return f"{value + 0.0:.15g}"


def number(value: Value, needed_by: str) -> float:
    """The value as a number.

    Raises:
        OperatorError: the text is not a number; `needed_by`: the operator that needs one.
    """
    if not isinstance(value, str):
        return float(value)
    if _NUMBER.fullmatch(value) is None:
        shown = repr(value if len(value) <= 40 else value[:40] + "…")
        raise OperatorError(
            f"{needed_by} needs a number, and {shown} is none; texts are compared with eq, ne, lt, gt"
        )
    return float(value)


def _divide(a: float, b: float) -> float:
    if b == 0:
        raise OperatorError("division by zero")
    return a / b


def _remainder(a: float, b: float) -> float:
    """Perl's %: for whole numbers, with the sign of the right operand."""
    if not (math.isfinite(a) and math.isfinite(b)):
        raise OperatorError("% needs finite numbers")
    if int(b) == 0:
        raise OperatorError("remainder of a division by zero")
    return float(int(a) % int(b))


def _power(a: float, b: float) -> float:
    try:
        return math.pow(a, b)
    except OverflowError:
        return -math.inf if a < 0 and b % 2 == 1 else math.inf
    except ValueError:
        what = "zero to a negative power" if a == 0 else "a broken power of a negative number"
        raise OperatorError(f"{what} has no value") from None


def _truncated(x: float) -> float:
    return float(math.trunc(x)) if math.isfinite(x) else x


def _square_root(x: float) -> float:
    if x < 0:
        raise OperatorError(f"sqrt of a negative number, {text(x)}")
    return math.sqrt(x)


def _logarithm(x: float) -> float:
    if x <= 0:
        raise OperatorError(f"log of {text(x)}; it is defined above zero only")
    return math.log(x)


def _exponential(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


Operation = Callable[..., Value]


def _numeric(name: str, function: Callable[..., Value]) -> Operation:
    return lambda *operands: function(*(number(operand, name) for operand in operands))


def _textual(function: Callable[[str, str], bool]) -> Operation:
    return lambda a, b: function(text(a), text(b))


_NUMERIC: Mapping[str, Callable[[float, float], Value]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divide,
    "%": _remainder,
    "**": _power,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_TEXTUAL: Mapping[str, Callable[[str, str], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "gt": operator.gt,
    "le": operator.le,
    "ge": operator.ge,
}

INFIX: Mapping[str, Operation] = {name: _numeric(name, f) for name, f in _NUMERIC.items()} | {
    name: _textual(f) for name, f in _TEXTUAL.items()
}
"""Binary operators."""

PREFIX: Mapping[str, Operation] = {
    "-": _numeric("-", operator.neg),
    "+": _numeric("+", operator.pos),
    "!": lambda value: not truth(value),
}
"""Prefix operators."""

_FUNCTIONS: Mapping[str, Callable[..., Value]] = {
    "abs": abs,
    "int": _truncated,
    "sqrt": _square_root,
    "log": _logarithm,
    "exp": _exponential,
    "min": lambda *values: min(values),
    "max": lambda *values: max(values),
}
FUNCTIONS: Mapping[str, Operation] = {name: _numeric(name, f) for name, f in _FUNCTIONS.items()}
"""Functions: `min` and `max` take one or more values, the others one."""

ANY_COUNT = ("min", "max")
