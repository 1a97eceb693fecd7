"""Shell quoting of a command on one line, and its parsing; and any text on one line."""

from __future__ import annotations

import re
from collections.abc import Iterable

_PLAIN = "_-+=./,:@%^"
_PIECE = re.compile(
    r"""(?P<blank>[ \t]+)
    | \$'(?P<escapes>(?:[^'\\]|\\.)*)'
    | '(?P<single>[^']*)'
    | "(?P<double>(?:[^"\\]|\\.)*)"
    | \\(?P<escaped>.)
    | (?P<plain>(?:[^ \t'"\\$]|\$(?!'))+)""",
    re.DOTALL | re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{1,4}|x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "v": "\v", "f": "\f", "e": "\x1b"}


def join_words(words: Iterable[str]) -> str:
    """The words on one line, each quoted if a shell would need it."""
    return " ".join(map(_quoted, words))


def split_words(text: str) -> list[str] | None:
    """The words of a line; None for an unclosed quote. Shell operators are ordinary words."""
    words: list[str] = []
    open_word: str | None = None
    place = 0
    while place < len(text):
        match = _PIECE.match(text, place)
        if match is None:
            return None
        place = match.end()
        if match.lastgroup == "blank":
            words += [] if open_word is None else [open_word]
            open_word = None
        else:
            open_word = (open_word or "") + _meant(str(match.lastgroup), match[str(match.lastgroup)])
    return words if open_word is None else [*words, open_word]


def one_line(text: str) -> str:
    """The text itself if it can end a line unquoted, else in the form of `escaped`."""
    plain = text == text.strip() and not text.startswith("$'") and not any(map(_is_control, text))
    return text if plain and text else escaped(text)


def from_one_line(text: str) -> str:
    """Inverse of `one_line` and `escaped`."""
    match = re.fullmatch(r"\$'((?:[^'\\]|\\.)*)'", text, re.DOTALL)
    return _unescaped(match[1]) if match else text


def escaped(text: str) -> str:
    """The text as `$'…'`, without blanks and equals signs."""
    return "$'" + "".join(c if c.isalnum() else _escape(c, also=" =") for c in text) + "'"


def _quoted(word: str) -> str:
    if word and all(c.isalnum() or c in _PLAIN for c in word):
        return word
    if any(map(_is_control, word)):
        return "$'" + "".join(map(_escape, word)) + "'"
    return "'" + word.replace("'", r"'\''") + "'"


def _escape(c: str, also: str = "") -> str:
    if c in "'\\":
        return "\\" + c
    if c in "\n\t":
        return {"\n": r"\n", "\t": r"\t"}[c]
    return f"\\u{ord(c):04x}" if _is_control(c) or c in also or (also and c.isspace()) else c


def _is_control(c: str) -> bool:
    return c < " " or "\x7f" <= c <= "\x9f"


def _meant(kind: str, piece: str) -> str:
    if kind == "escapes":
        return _unescaped(piece)
    if kind == "double":
        return re.sub(r'\\([$`"\\\n])', r"\1", piece)
    return piece


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda match: _character(match[1]), text)


def _character(escape: str) -> str:
    if escape[0] in "ux" and len(escape) > 1:
        code = int(escape[1:], 16)
    elif escape[0] in "01234567":
        code = int(escape, 8)
    else:
        return _LETTERS.get(escape, escape if escape in "'\"\\?" else "\\" + escape)
    return "\ufffd" if 0xD800 <= code <= 0xDFFF else chr(code)
