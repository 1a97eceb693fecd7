"""FOR: arithmetic and geometric progressions, in exact decimals, with a check for endless loops."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import lru_cache

from etude.script.directive_words import ArgumentError, Word, expected_error, variable_name

_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,15}(?:\.[0-9]{0,15})?|\.[0-9]{1,15})")
_TOKEN = re.compile(r"=|[^\s=]+")

# Numbers have at most 15 digits on either side: sums are exact; products, kept to 28 digits, still progress.
_EXACT = Context(prec=60, traps=[])
_ROUNDED = Context(prec=28, traps=[])


@dataclass(frozen=True, slots=True)
class ForLoop:
    """`NAME=FIRST TO LAST`, last included, times `factor` or plus `add` each time; one of the two is None."""

    name: str
    first: Decimal
    last: Decimal
    factor: Decimal | None
    add: Decimal | None

    def value(self, place: int) -> str | None:
        """The value of a pass, counted from 0; None after the last. There is always a first."""
        if self.factor is not None:
            found = _ROUNDED.multiply(self.first, _EXACT.power(self.factor, place))
            down = self.factor < 1
        else:
            step = self.add or Decimal(1)
            found = _EXACT.add(self.first, _EXACT.multiply(step, Decimal(place)))
            down = step < 0
        return None if (found < self.last if down else found > self.last) else plain(found)


@lru_cache(maxsize=64)  # called at each pass of its loop
def parse_for(text: str) -> ForLoop:
    """`NAME=A TO B [FACTOR M | ADD I]`; the default adds 1.

    Raises:
        ArgumentError: it is malformed, or never gets from A to B.
    """
    tokens = [Word(match[0], match.start() + 1) for match in _TOKEN.finditer(text)]
    count = len(tokens)
    tokens += [Word("", len(text.rstrip()) + 1)] * 8
    name = variable_name(tokens[0])
    _must_be("=", tokens[1])
    first = _number(tokens[2])
    _must_be("TO", tokens[3])
    last = _number(tokens[4])
    if count > 5 and tokens[5].text not in ("FACTOR", "ADD"):
        raise expected_error("FACTOR or ADD", tokens[5])
    by = _number(tokens[6]) if count > 5 else Decimal(1)
    if count > 7:
        raise expected_error("the end of the line", tokens[7])
    if tokens[5].text == "FACTOR":
        _check_factor(first, last, by, tokens)
        return ForLoop(name, first, last, by, None)
    if by == 0:
        raise ArgumentError("ADD 0 never ends", tokens[6].column)
    if (last - first) * by < 0:
        raise ArgumentError(
            f"adding {plain(by)} never gets from {plain(first)} to {plain(last)}", tokens[4].column
        )
    return ForLoop(name, first, last, None, by)


def _check_factor(first: Decimal, last: Decimal, factor: Decimal, tokens: list[Word]) -> None:
    if factor <= 0 or factor == 1:
        raise ArgumentError(
            f"FACTOR {plain(factor)} never ends; expected one above 0 that is not 1", tokens[6].column
        )
    if first <= 0:
        raise ArgumentError("a FACTOR needs numbers above 0", tokens[2].column)
    if last <= 0 or (last - first) * (factor - 1) < 0:
        way = f"FACTOR {plain(factor)} never gets from {plain(first)} to {plain(last)}"
        raise ArgumentError(way, tokens[4].column)


def plain(number: Decimal) -> str:
    """The number without an exponent and trailing zeros."""
    text = format(number, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


def _must_be(text: str, word: Word) -> None:
    if word.text != text:
        raise expected_error(text, word)


def _number(word: Word) -> Decimal:
    if _NUMBER.fullmatch(word.text):
        return Decimal(word.text)
    raise expected_error("a number, of at most 15 digits before and behind the point", word)
