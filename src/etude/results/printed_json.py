"""JSON objects in the output of a program, among its other lines."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator
from typing import Any

MOST_NESTED = 100
"""Objects within each other in one that spans lines."""
OBJECT = re.compile(r"^[ \t]*(?=\{)", re.MULTILINE)
"""The beginning of a line at which an object may begin."""
_TOKEN = re.compile(r'^[ \t]*+\{|"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"|[{}"]', re.MULTILINE)
"""A brace, at the beginning of a line or not, a whole text, or the quotation mark of one that does not end."""


def json_objects(text: str) -> Iterator[Any]:
    """The outermost JSON objects that start at the beginning of a line, in a time linear in the text."""
    decoder, end = json.JSONDecoder(), 0
    ends, known = dict[int, int](), 0
    while match := OBJECT.search(text, end):
        begin, end = match.end(), match.end() + 1
        newline = text.find("\n", begin)
        line = text[begin : newline if newline >= 0 else len(text)]
        try:
            document, length = decoder.raw_decode(line)
        except (ValueError, RecursionError):
            if begin >= known:
                ends, known = _closing_braces(text, begin)
            if begin not in ends:
                continue
            try:
                document, length = decoder.raw_decode(text[begin : ends[begin]])
            except (ValueError, RecursionError):
                continue
        end = begin + length
        yield document


def _closing_braces(text: str, begin: int) -> tuple[dict[int, int], int]:
    """Ends of the objects that start a line, by their begins, and the place up to which all are known: the end of the
    first one, or of what may belong to it. One without an end, or with more than `MOST_NESTED` in it, is left out."""
    ends, opened = dict[int, int](), deque[int](maxlen=MOST_NESTED)
    for token in _TOKEN.finditer(text, begin):
        place, last = token.end() - 1, token[0][-1]
        if token[0] == '"':
            return ends, place
        if last == "{":
            opened.append(place if place == begin or token.start() < place or text[place - 1] == "\n" else -1)
        elif last == "}":
            if (start := opened.pop()) >= 0:
                ends[start] = place + 1
            if not opened:
                return ends, place + 1
    return ends, len(text)
