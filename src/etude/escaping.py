"""Escapes untrusted text for a terminal: control characters are written out.

Names, commands and paths come from files and file systems, and may contain anything: escape sequences (C0 and C1),
line separators, marks that change the direction of writing. All text of the command line goes through one
`EscapingStream`; styles and cursor movements of Étude's own bypass it, through the stream that `unescaped` returns.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Any, TextIO

_LAYOUT = str.maketrans("", "", "\n\t")


def escaped(text: str, *, lines: bool = True) -> str:
    """The text with non-printable characters in JSON's notation: a document of JSON stays the same document.

    Blanks of all widths are unchanged, and with `lines` line ends and tabs.
    """
    if (text.translate(_LAYOUT) if lines else text).isprintable():
        return text
    return "".join(_shown(character, lines) for character in text)


def one_line(text: str) -> str:
    """The text in one line, from which it can be told: escaped, with other blanks than the usual one written out; of
    several blanks all but the last are U+00A0, which no program that shows it merges."""
    if text.isprintable() and "  " not in text:
        return text
    shown = "".join(c if c.isprintable() else _shown(c, False, blanks=False) for c in text)
    return re.sub(" (?= )", "\u00a0", shown)


def visible(name: str) -> str:
    """The name in one line, delimited."""
    return one_line(delimited(name))


def delimited(name: str) -> str:
    """The name; between quotes where it is empty, or begins or ends with a blank."""
    return name if name and name == name.strip(" ") else f"“{name}”"


class EscapingStream:
    """A text stream that escapes what is written to it; everything else is delegated to the stream below."""

    def __init__(self, below: TextIO) -> None:
        self.unescaped = below

    def write(self, text: str) -> int:
        """Write the text, escaped; returns its length."""
        self.unescaped.write(escaped(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each, escaped."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unescaped, name)


def unescaped(stream: TextIO) -> TextIO:
    """The stream below an `EscapingStream`, for Étude's own escape sequences and a program's own output;
    else the stream."""
    found: TextIO = getattr(stream, "unescaped", stream)
    return found


def write_document(stream: TextIO, text: str) -> None:
    """Write a document for another program: unchanged, or escaped to a terminal."""
    if stream.isatty():  # our Markdown has zero-width spaces where a name would be a mention
        text = "\u200b".join(map(escaped, text.split("\u200b")))
    unescaped(stream).write(text)


def _shown(character: str, lines: bool, *, blanks: bool = True) -> str:
    if character.isprintable() or (blanks and unicodedata.category(character) == "Zs"):
        return character
    if lines and character in "\n\t":
        return character
    if character < " ":
        return repr(character)[1:-1]
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return re.sub("(....)", r"\\u\1", units)
