"""Shell syntax in a command that is started without a shell, where it would be handed to the program as text."""

from __future__ import annotations

import re
from glob import glob

_EXPANSION = re.compile(r"\$[\w{(@*#?$!'\"-]")
_IN_QUOTES = re.compile(r"\$[\w{(@*#?$!-]")
_ASSIGNMENT = re.compile(r"\s*[A-Za-z_]\w*=")
_OPERATORS = ("&&", "||", ">>", "<<", "|", ">", "<", ";", "&", "*", "`", "\n")


_LONGEST = 4096
"""No path is longer."""
_BRACES = re.compile(r"""\{[^\s{}'"\\]*(?:,|\.\.)[^\s{}'"\\]*\}""")
"""A list of words, such as `{a,b}` and `{1..9}`; not `{}`, and not JSON, whose names have quotes."""


def shell_syntax(command: str) -> str | None:
    """The first part of a command line that only a shell understands, such as `|`; None where there is none.

    Looked for outside of quotes, `$` and backquotes also within double quotes: operators, patterns, expansions,
    `~` at the start of a word, an assignment in front, and the end of a line before the last one.
    """
    command = command.strip()
    assignment = _ASSIGNMENT.match(command)
    if assignment:
        return assignment[0].strip()
    quote, place = "", 0
    while place < len(command):
        char = command[place]
        if char == "\\" and quote != "'":
            if command[place + 1 : place + 2] == "\n":
                return "\n"
            place += 2
            continue
        if char == quote:
            quote = ""
        elif not quote and char in "'\"":
            quote = char
        elif quote != "'" and (found := _found(command, place, quoted=bool(quote))):
            return found
        place += 1
    return None


def _found(command: str, place: int, *, quoted: bool) -> str | None:
    """What stands there, if only a shell understands it."""
    if expansion := (_IN_QUOTES if quoted else _EXPANSION).match(command, place):
        return re.match(r"\$(\w+|.)", expansion[0] + command[expansion.end() :], re.DOTALL)[0]  # type: ignore[index]
    if quoted:
        return "`" if command[place] == "`" else None
    if command[place] in "~#" and (place == 0 or command[place - 1].isspace()):
        return command[place]
    if braces := _BRACES.match(command, place):
        return braces[0]
    if command[place] in "?[" and _matches_files(command, place):
        return command[place]
    return next((each for each in _OPERATORS if command.startswith(each, place)), None)


def _matches_files(command: str, place: int) -> bool:
    """Whether the word there is a pattern that matches files that exist; asked at its first `?` or `[` alone."""
    start = max(command.rfind(space, 0, place) for space in " \t\n") + 1
    word = command[start : start + _LONGEST + 1].split(maxsplit=1)[0]
    if len(word) > _LONGEST or {"?", "["} & set(word[: place - start]):
        return False
    return not {"'", '"', "\\"} & set(word) and bool(glob(word))
