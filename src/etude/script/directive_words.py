"""Splits lines and directives' texts into words, with errors at their columns."""

from __future__ import annotations

import re
import shlex
from functools import lru_cache
from typing import NamedTuple

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORD = re.compile(r"""\s*+((?:[^\s'"\\]++|'[^']*+'|"(?:[^"\\]++|\\.)*+"|\\.)++)""", re.DOTALL)
_BLANK_WORD = re.compile(r"\S+")
_QUOTED = re.compile(r"""'([^']*)'|"((?:[^"\\]++|\\.)*+)"|\\(.)""", re.DOTALL)
_ESCAPED = re.compile(r'\\(["\\$`])')


class ArgumentError(ValueError):
    """Error in a directive's text; `column` counts from 1 within it, 0 stands for all of it."""

    def __init__(self, message: str, column: int = 0) -> None:
        super().__init__(message)
        self.message, self.column = message, column


class Word(NamedTuple):
    """One word without its quotes, and its first column, from 1."""

    text: str
    column: int


def split_words(text: str) -> list[Word]:
    """The words of a text by the shell's rules: quotes group, a backslash escapes the next character.

    Nothing is expanded. Within double quotes a backslash escapes only a double quote, \\, $ and `.

    Raises:
        ArgumentError: an unclosed quote, or a backslash at the end.
    """
    if "'" not in text and '"' not in text and "\\" not in text:
        return [Word(match[0], match.start() + 1) for match in _BLANK_WORD.finditer(text)]
    found, end = [], 0
    for match in _WORD.finditer(text):
        if match.start() != end:
            break
        word, end = match[1], match.end()
        quoted = "'" in word or '"' in word or "\\" in word
        found.append(Word(_QUOTED.sub(_unquoted, word) if quoted else word, match.start(1) + 1))
    rest = text[end:].lstrip()
    if rest:
        what = "nothing follows the backslash" if rest[0] == "\\" else f"the {rest[0]} is not closed"
        raise ArgumentError(what, len(text) - len(rest) + 1)
    return found


def _unquoted(match: re.Match[str]) -> str:
    if match[1] is not None:
        return match[1]
    return match[3] if match[2] is None else _ESCAPED.sub(r"\1", match[2])


def shown_word(text: str) -> str:
    """A text quoted for messages: printable, and shortened."""
    return repr(text if len(text) <= 40 else text[:37] + "…")


def expected_error(what: str, word: Word, hint: str = "") -> ArgumentError:
    """The error of a word that is unexpected, or missing (an empty one)."""
    found = f", found {shown_word(word.text)}" if word.text else ""
    return ArgumentError(f"expected {what}{found}{hint}", word.column)


def variable_name(word: Word) -> str:
    """A word that is the name of a variable.

    Raises:
        ArgumentError: it is invalid.
    """
    if not NAME.fullmatch(word.text):
        raise expected_error("the name of a variable", word)
    return word.text


_SHELL = re.compile(r"[|&;<>()$`\\*?\[\]{}~!\n]")
_BUILT_IN = frozenset(
    {".", ":", "break", "cd", "continue", "eval", "exec", "exit", "export", "read", "set", "shift", "trap"}
    | {"ulimit", "umask", "unset", "wait"}
)


@lru_cache(maxsize=1024)
def command_words(line: str) -> tuple[str, ...]:
    """The argument list of a line: its words if it has no shell syntax, else /bin/sh -c LINE.

    Perl's `system`, which ran these lines in Auto-pilot, does the same: a shell only if needed, since its start is
    measured.
    """
    if not _SHELL.search(line):
        try:
            words = tuple(shlex.split(line))
        except ValueError:  # the shell reports errors in quotes
            words = ()
        if words and "=" not in words[0] and words[0] not in _BUILT_IN:
            return words
    return ("/bin/sh", "-c", line)
