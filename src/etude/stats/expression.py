"""A small, safe expression language: the part of Perl that the Auto-pilot papers use in predicates.

Precedence and associativity are Perl's. Differences: numbers are decimal and floating point; a text that is not a
number is an error where Perl would take 0; functions need brackets; comparisons do not chain; regular expressions are
RE2's, and `$` in them is the end of the text, never a variable; there is no assignment, no list and no `?:`. The cost
of compilation and evaluation is linear in the length of the expression, which is bounded, and in that of the texts
compared.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from etude.patterns import Pattern, PatternError, compile_pattern
from etude.stats.operators import ANY_COUNT, FUNCTIONS, INFIX, PREFIX, OperatorError, Value, text, truth

__all__ = [
    "Branch",
    "Compute",
    "Expression",
    "ExpressionError",
    "Leaf",
    "Value",
    "compile_expression",
    "truth",
]

MOST_CHARACTERS = 10_000
MOST_DEPTH = 100
"""Nesting limit of brackets, signs and powers, each of which takes stack during parsing."""

Bindings = Mapping[str, float | str]


class ExpressionError(ValueError):
    """Error in an expression, in one line; `column` counts its characters from 1."""

    def __init__(self, message: str, column: int) -> None:
        super().__init__(message)
        self.message = message
        self.column = column


class Compute(NamedTuple):
    """A step that pops values off the stack and pushes the result."""

    function: Callable[..., Value]  # of the bindings and the values
    takes: int
    column: int
    symbol: str
    """The operator or function; a `Leaf` for operands."""
    argument: Any = None
    """Operand of a leaf: the constant, the variable's name, the parts of a text (each a Compute), or (pattern,
    wanted)."""


class Branch(NamedTuple):
    """A step that jumps to `target`, keeping the value on the stack, if its truth is `when`; otherwise pops it."""

    when: bool
    target: int


class Leaf:
    """Symbols of operand steps; no operator has these."""

    CONSTANT, VARIABLE, TEXT, MATCH = "constant", "variable", "text", "match"


Step = Compute | Branch


@dataclass(frozen=True)
class Expression:
    """A compiled expression; made by `compile_expression`."""

    text: str
    names: tuple[str, ...]
    """Its variables, in order of first occurrence."""
    _places: Mapping[str, int] = field(repr=False, compare=False)
    steps: tuple[Step, ...] = field(repr=False, compare=False)
    """Steps of a stack machine: long chains of operators are evaluated without recursion."""

    def evaluate(self, bindings: Bindings) -> Value:
        """Value with these variables; `truth` converts it to a condition.

        Raises:
            ExpressionError: an unknown variable, a text instead of a number, a division by zero or similar.
        """
        stack: list[Value] = []
        place = 0
        while place < len(self.steps):
            step = self.steps[place]
            place += 1
            if isinstance(step, Compute):
                operands = [stack.pop() for _ in range(step.takes)][::-1]
                try:
                    stack.append(step.function(bindings, *operands))
                except OperatorError as error:
                    raise ExpressionError(str(error), step.column) from None
            elif truth(stack[-1]) == step.when:
                place = step.target
            else:
                stack.pop()
        return stack[-1]

    def require(self, known: Collection[str]) -> None:
        """Check that every variable is one of `known`, even if evaluation would not reach it.

        Raises:
            ExpressionError: a variable is unknown.
        """
        for name in self.names:
            if name not in known:
                raise ExpressionError(_unknown(name, known), self._places[name])


def compile_expression(text: str) -> Expression:
    """Parse an expression.

    Raises:
        ExpressionError: names what was expected, and the column.
    """
    if len(text) > MOST_CHARACTERS:
        raise ExpressionError(f"the expression has more than {MOST_CHARACTERS:,} characters", MOST_CHARACTERS)
    parser = _Parser(text)
    parser.whole()
    return Expression(text, tuple(parser.places), parser.places, tuple(parser.steps))


# Operators by rising precedence; comparisons do not chain within their level.
_LEVELS: tuple[tuple[str, ...], ...] = (
    ("or",),
    ("and",),
    ("not",),
    ("||",),
    ("&&",),
    ("==", "!=", "eq", "ne"),
    ("<", ">", "<=", ">=", "lt", "gt", "le", "ge"),
    ("+", "-"),
    ("*", "/", "%"),
    ("=~", "!~"),
)
_LEVEL = {operator: level for level, operators in enumerate(_LEVELS) for operator in operators}
_UNCHAINED = (_LEVEL["=="], _LEVEL["<"])
_BRANCHES = {"||": True, "or": True, "&&": False, "and": False}

_OPERATOR = re.compile(r"=~|!~|==|!=|<=|>=|&&|\|\||[<>+*/%-]|(?:or|and|not|eq|ne|lt|gt|le|ge)\b", re.ASCII)
_NUMBER = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_NAME = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})", re.ASCII)
_SINGLE = re.compile(r"'((?:[^'\\]|\\.)*)'", re.DOTALL)
_DOUBLE = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_REGEX = re.compile(r"/((?:[^/\\]|\\.)*)/([A-Za-z]*)", re.DOTALL)
_OPERAND = 'a number, a quoted text, a $name, a function or "("'


class _Parser:
    """Recursive-descent parser that emits steps in order of evaluation."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0
        self.depth = 0
        self.steps: list[Step] = []
        self.places: dict[str, int] = {}

    def whole(self) -> None:
        self._binary(0)
        self._blanks()
        if self.place < len(self.text):
            raise self._expected("an operator or the end")

    def _binary(self, lowest: int) -> None:
        """Operands and the operators between them with a precedence of at least `lowest`."""
        self._deeper()
        if self._operator() == "not" and lowest <= _LEVEL["not"] and not self._calls("not"):
            column = self._take("not")
            self._binary(_LEVEL["not"])
            self._emit(_plain(PREFIX["!"]), 1, column, "! before")
        else:
            self._signed()
        chained = -1
        while (operator := self._operator()) is not None and _LEVEL[operator] >= lowest:
            level = _LEVEL[operator]
            if operator == "not":
                raise self._expected("an operator or the end")
            if level == chained:
                raise self._error(f"{operator}: comparisons do not chain; join them with &&")
            chained = level if level in _UNCHAINED else -1
            self._infix(operator, level)
        self.depth -= 1

    def _infix(self, operator: str, level: int) -> None:
        column = self._take(operator)
        if operator in _BRANCHES:
            branch = len(self.steps)
            self.steps.append(Branch(_BRANCHES[operator], 0))
            self._binary(level + 1)
            self.steps[branch] = Branch(_BRANCHES[operator], len(self.steps))
        elif operator in ("=~", "!~"):
            pattern = self._regex()
            wanted = operator == "=~"
            self._emit(partial(_matches, pattern, wanted), 1, column, Leaf.MATCH, (pattern, wanted))
        else:
            self._binary(level + 1)
            self._emit(_plain(INFIX[operator]), 2, column, operator)

    def _signed(self) -> None:
        """Signs: `-`, `+` and `!` bind less tightly than `**` to their right."""
        self._blanks()
        sign = self.text[self.place : self.place + 1]
        if not sign or sign not in PREFIX or self.text.startswith("!~", self.place):
            self._power()
            return
        self._deeper()
        column = self._take(sign)
        self._signed()
        self._emit(_plain(PREFIX[sign]), 1, column, f"{sign} before")
        self.depth -= 1

    def _power(self) -> None:
        self._operand()
        self._blanks()
        if self.text.startswith("**", self.place):
            self._deeper()
            column = self._take("**")
            self._signed()
            self._emit(_plain(INFIX["**"]), 2, column, "**")
            self.depth -= 1

    def _operand(self) -> None:
        self._blanks()
        column, first = self.place + 1, self.text[self.place : self.place + 1]
        if first == "(":
            self.place += 1
            self._binary(0)
            self._close(column)
        elif first == "$":
            self.steps.append(_variable(self._name(), column))
        elif first in ('"', "'"):
            self._quoted(first)
        elif match := _NUMBER.match(self.text, self.place):
            self.place = match.end()
            self.steps.append(_literal(float(match[0]), column))
        elif match := _WORD.match(self.text, self.place):
            self._function(match[0], match.end())
        else:
            raise self._expected(_OPERAND)

    def _name(self) -> str:
        match = _NAME.match(self.text, self.place)
        if match is None:
            raise self._error("expected a name after $: a letter or _, then letters, digits and _")
        name = match[1] or match[2]
        self.places.setdefault(name, self.place + 1)
        self.place = match.end()
        return str(name)

    def _quoted(self, quote: str) -> None:
        match = (_DOUBLE if quote == '"' else _SINGLE).match(self.text, self.place)
        if match is None:
            raise self._error(f"expected a closing {quote}")
        column, end = self.place + 1, match.end()
        if quote == "'":
            self.steps.append(_literal(re.sub(r"\\([\\'])", r"\1", match[1]), column))
        else:
            self.steps.append(self._template(match.end(1), column))
        self.place = end

    def _template(self, end: int, column: int) -> Compute:
        """Text between double quotes, with interpolated names."""
        parts: list[Compute] = []
        self.place += 1
        while self.place < end:
            here = self.text[self.place]
            if here == "$" and _NAME.match(self.text, self.place, end):
                parts.append(_variable(self._name(), column))
                continue
            if here == "\\":
                self.place += 1
                here = {"n": "\n", "t": "\t"}.get(self.text[self.place], self.text[self.place])
            parts.append(_literal(here, column))
            self.place += 1
        # A single name keeps its value with all digits.
        return parts[0] if len(parts) == 1 else Compute(partial(_joined, parts), 0, column, Leaf.TEXT, parts)

    def _function(self, word: str, end: int) -> None:
        column = self.place + 1
        function = PREFIX["!"] if word == "not" and self._calls(word) else FUNCTIONS.get(word)
        if function is None:
            hint = f"; did you mean ${word} or '{word}'?" if word not in _LEVEL else ""
            raise self._expected(f"{_OPERAND}, not the bare word {word}{hint}", found=False)
        self.place = end
        self._blanks()
        if not self.text.startswith("(", self.place):
            raise self._expected(f'"(" after {word}')
        opened = self.place + 1
        count = 0
        while count == 0 or self.text.startswith(",", self.place):
            self.place += 1
            self._binary(0)
            self._blanks()
            count += 1
        self._close(opened)
        if count > 1 and word not in ANY_COUNT:
            raise ExpressionError(f"{word} takes one value, not {count}", column)
        self._emit(_plain(function), count, column, "! before" if word == "not" else word)

    def _regex(self) -> Pattern:
        self._blanks()
        match = _REGEX.match(self.text, self.place)
        if match is None:
            raise self._expected("a regular expression as /…/")
        if match[2] not in ("", "i"):
            raise self._error(f"expected no letter but i after a regular expression, not {match[2]}")
        try:
            pattern = compile_pattern(match[1].replace(r"\/", "/"), ignore_case=bool(match[2]))
        except PatternError as error:
            raise self._error(f"no regular expression: {error}") from None
        self.place = match.end()
        return pattern

    def _operator(self) -> str | None:
        self._blanks()
        match = _OPERATOR.match(self.text, self.place)
        return match[0] if match else None

    def _calls(self, word: str) -> bool:
        """True if a bracket follows the next word: `not(…)` binds like a function, as in Perl."""
        return re.compile(r"\s*\(").match(self.text, self.place + len(word)) is not None

    def _take(self, operator: str) -> int:
        """Skip the operator; returns its column."""
        self._blanks()
        self.place += len(operator)
        return self.place - len(operator) + 1

    def _close(self, opened: int) -> None:
        self._blanks()
        if not self.text.startswith(")", self.place):
            raise self._expected(f'an operator or the ")" for the "(" in column {opened}')
        self.place += 1

    def _blanks(self) -> None:
        while self.place < len(self.text) and self.text[self.place].isspace():
            self.place += 1

    def _deeper(self) -> None:
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise self._error(f"more than {MOST_DEPTH} levels of brackets, signs and powers")

    def _emit(
        self, function: Callable[..., Value], takes: int, column: int, symbol: str, argument: Any = None
    ) -> None:
        self.steps.append(Compute(function, takes, column, symbol, argument))

    def _expected(self, what: str, *, found: bool = True) -> ExpressionError:
        rest = self.text[self.place : self.place + 1]
        here = (f", found {rest!r}" if rest else ", found the end") if found else ""
        return self._error(f"expected {what}{here}")

    def _error(self, message: str) -> ExpressionError:
        return ExpressionError(message, self.place + 1)


def _plain(function: Callable[..., Value]) -> Callable[..., Value]:
    return lambda _, *values: function(*values)


def _literal(value: Value, column: int) -> Compute:
    return Compute(partial(_constant, value), 0, column, Leaf.CONSTANT, value)


def _variable(name: str, column: int) -> Compute:
    return Compute(partial(_lookup, name), 0, column, Leaf.VARIABLE, name)


def _constant(value: Value, _: Bindings) -> Value:
    return value


def _lookup(name: str, bindings: Bindings) -> Value:
    if name not in bindings:
        raise OperatorError(_unknown(name, bindings))
    return bindings[name]


def _joined(parts: Iterable[Compute], bindings: Bindings) -> Value:
    return "".join(text(part.function(bindings)) for part in parts)


def _matches(pattern: Pattern, wanted: bool, _: Bindings, value: Value) -> Value:
    return pattern.found_in(text(value)) == wanted


def _unknown(name: str, known: Iterable[str]) -> str:
    known = sorted(known)
    alike = difflib.get_close_matches(name, known, 1)
    meant = f", did you mean ${alike[0]}" if alike else ""
    return f"unknown variable ${name}{meant}; known: {', '.join(f'${each}' for each in known) or 'none'}"
