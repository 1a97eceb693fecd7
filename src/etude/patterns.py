"""Regular expressions of users, matched by RE2 in time linear in the text.

Python's `re` backtracks: a METRIC such as `(x+x+)+y` would block Étude for days, and no signal would end it. RE2 has no
look-around, no backreferences and no conditions; its `\\d`, `\\w`, `\\s` and `\\b` are ASCII.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

LACKING = "look-around, backreferences and conditions are not supported (RE2's syntax)"
MAX_SHOWN = 80
"""Maximum characters shown of RE2's message, which quotes the pattern."""
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_PYTHONS = re.compile(r"perl operator|escape sequence: \\[1-9]")


class PatternError(ValueError):
    """An invalid regular expression, in one line; `place` is the offset of the error, if known."""

    def __init__(self, message: str, place: int = 0) -> None:
        super().__init__(message)
        self.place = place


@dataclass(frozen=True)
class Pattern:
    """A compiled regular expression."""

    text: str
    _compiled: Any

    @property
    def groups(self) -> int:
        """The number of its groups."""
        return int(self._compiled.groups)

    def found_in(self, text: str) -> bool:
        """True if it matches somewhere."""
        return self._compiled.search(_encodable(text)) is not None

    def values(self, text: str) -> Iterator[str | None]:
        """The first group of each match (None if it took no part), or all of the match if it has no group."""
        group = min(self.groups, 1)
        return (match[group] for match in self._compiled.finditer(_encodable(text)))

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Non-empty spans of `values`, in rising order, without overlaps."""
        behind, group = 0, min(self.groups, 1)
        for match in self._compiled.finditer(_encodable(text)):  # this keeps all character offsets
            start, end = match.span(group)
            if end > start >= behind:
                yield start, end
                behind = end

    def replaced(self, text: str, by: str) -> str:
        """The text with the first group of each match, or all of it without a group, replaced."""
        return cut_out(text, self.spans(text), by)


def cut_out(text: str, spans: Iterable[tuple[int, int]], by: str) -> str:
    """The text with `by` in place of each span; spans rise and do not overlap."""
    parts, behind = list[str](), 0
    for start, end in spans:
        parts += [text[behind:start], by]
        behind = end
    return "".join([*parts, text[behind:]])


@functools.lru_cache(maxsize=128)
def compile_pattern(text: str, *, ignore_case: bool = False, multiline: bool = False) -> Pattern:
    r"""A pattern. `multiline`: `^` and `$` match at lines. Python's `\Z` is read as RE2's `\z`.

    Raises:
        PatternError: the invalid or unsupported part.
    """
    import re2

    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not ignore_case
    here = _ESCAPED.sub(lambda match: r"\z" if match[1] == "Z" else match[0], text)
    try:
        return Pattern(text, re2.compile(f"(?m){here}" if multiline else here, options))
    except (re2.error, UnicodeError) as error:
        message = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error)
        place = max(text.find(message.partition(": ")[2]), 0)
        short = message if len(message) <= MAX_SHOWN else f"{message[:MAX_SHOWN]}…"
        short = "".join(c if c.isprintable() else repr(c)[1:-1] for c in short)
        raise PatternError(f"{short}; {LACKING}" if _PYTHONS.search(message) else short, place) from None


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
