"""The parts of an expression of which one has to hold: what stands between its outermost `||` or `or`."""

from __future__ import annotations

import re

from etude.stats.expression import Expression, ExpressionError, compile_expression

_WORD = re.compile(
    r"""(?P<quoted>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|(?P<word>\$?\w+)|(?P<or>\|\|)|(?P<other>.)""", re.S
)


def alternatives(text: str) -> tuple[Expression, ...]:
    """The parts of a predicate in their order, each as it is written, without parentheses round it as a whole; none
    where they cannot be told apart."""
    try:
        parts = _split(_bare(text))
        return tuple(compile_expression(_bare(part)) for part in parts)
    except ExpressionError:
        return ()


def _split(text: str) -> list[str]:
    """At `or`; where there is no operator in letters, which all bind looser, at `||`."""
    words, signs = _places(text)
    if any(word != "or" for _, _, word in words):
        return _cut(text, [place for place in words if place[2] == "or"])
    return _cut(text, words or signs)


def _cut(text: str, places: list[tuple[int, int, str]]) -> list[str]:
    ends = [*(begin for begin, _, _ in places), len(text)]
    begins = [0, *(end for _, end, _ in places)]
    return [text[begin:end] for begin, end in zip(begins, ends, strict=True)]


def _places(text: str) -> tuple[list[tuple[int, int, str]], list[tuple[int, int, str]]]:
    """Of `or`, `and`, `not`, and of `||`, outside of parentheses: begin, end and which it is."""
    words, signs, depth = [], [], 0
    for found in _WORD.finditer(text):
        place = (found.start(), found.end(), found.group())
        depth += (place[2] == "(") - (place[2] == ")")
        if depth == 0 and place[2] in ("or", "and", "not"):
            words.append(place)
        elif depth == 0 and place[2] == "||":
            signs.append(place)
    return words, signs


def _bare(text: str) -> str:
    """Without blanks and parentheses round the whole of it."""
    text = " ".join(text.split())
    while text.startswith("(") and text.endswith(")") and _closes_at_end(text):
        text = text[1:-1].strip()
    return text


def _closes_at_end(text: str) -> bool:
    depth = 0
    for found in _WORD.finditer(text):
        depth += (found.group() == "(") - (found.group() == ")")
        if depth == 0:
            return found.end() == len(text)
    return False
