"""Expansion of `%NAME%` and `$NAME$` in a line: once, before the line is split."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

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
