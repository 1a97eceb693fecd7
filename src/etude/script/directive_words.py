"""Texts of directives: split into words, with errors at their columns; `%NAME%` and `$NAME$` expanded."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

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


def words_of(names: str) -> list[str]:
    """The names in the variable PROBES or WATCH, separated by commas or blanks."""
    return names.replace(",", " ").split()


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


Kind = Literal["variable", "environment"]

# An identifier directly between two signs: `$mean` alone, `50%` and `$a < $b` are text.
_HOLE = re.compile(r"%(?:%|([A-Za-z_][A-Za-z0-9_]*)%)|\$([A-Za-z_][A-Za-z0-9_]*)\$")


MAX_CHARACTERS = 2**24
"""Maximum length of an expanded line: a variable that doubles itself fills the memory in 40 rounds."""


class ExpansionError(Exception):
    """A text that cannot be expanded."""


class TooLong(ExpansionError):
    """A text that would be longer than `MAX_CHARACTERS`."""

    def __init__(self) -> None:
        super().__init__(
            f"longer than {MAX_CHARACTERS:,} characters with its variables; does one grow in a loop?"
        )


class UndefinedVariable(ExpansionError):
    """A name without a value.

    Attributes:
        name: the name, without its signs
        kind: `variable` for %NAME%, `environment` for $NAME$
        column: its column in the compiled text, from 1
    """

    def __init__(self, name: str, kind: Kind, column: int) -> None:
        self.name, self.kind, self.column = name, kind, column
        if kind == "variable":
            message = f"no variable {name} is set; set it by VAR {name}=VALUE (a percent sign is written %%)"
        else:
            message = f"no environment variable {name} is set; set it by ENV {name}=VALUE"
        super().__init__(message)


class Hole(NamedTuple):
    """Place of a value: name, kind, column (from 1), and the text up to the next hole."""

    name: str
    kind: Kind
    column: int
    after: str


@dataclass(frozen=True, slots=True)
class Template:
    """A text with holes: `text` up to the first one, then each with what follows it."""

    text: str
    holes: tuple[Hole, ...]

    @property
    def is_static(self) -> bool:
        """True if it contains no variables."""
        return not self.holes

    def expand(self, variables: Mapping[str, str], environment: Mapping[str, str]) -> str:
        """The text with all values in their places.

        Raises:
            UndefinedVariable: the first name without a value.
            TooLong: the expanded text is too long for a line.
        """
        if not self.holes:
            return self.text
        parts = [self.text]
        for name, kind, column, after in self.holes:
            try:
                value = variables[name] if kind == "variable" else environment[name]
            except KeyError:
                raise UndefinedVariable(name, kind, column) from None
            parts += (value, after)
        if sum(map(len, parts)) > MAX_CHARACTERS:
            raise TooLong
        return "".join(parts)


def compile_text(text: str) -> Template:
    """The template of a text with `%NAME%` and `$NAME$`; each `%%` becomes a single %."""
    if "%" not in text and "$" not in text:
        return Template(text, ())
    texts, found, end = [""], [], 0
    for match in _HOLE.finditer(text):
        texts[-1] += text[end : match.start()]
        end = match.end()
        if match[0] == "%%":
            texts[-1] += "%"
        else:
            found.append(match)
            texts.append("")
    texts[-1] += text[end:]
    return Template(texts[0], tuple(map(_hole, found, texts[1:])))


def _hole(match: re.Match[str], after: str) -> Hole:
    return Hole(match[1] or match[2], "variable" if match[1] else "environment", match.start() + 1, after)
