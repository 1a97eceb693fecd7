"""A line's words, and whether it needs a shell to be run."""

from __future__ import annotations

import re
import shlex
from functools import lru_cache

_SHELL = re.compile(r"[|&;<>()$`\\*?\[\]{}~!\n]")
_BUILT_IN = frozenset(
    {".", ":", "break", "cd", "continue", "eval", "exec", "exit", "export", "read", "set", "shift", "trap"}
    | {"ulimit", "umask", "unset", "wait"}
)


@lru_cache(maxsize=1024)
def command_words(line: str) -> tuple[str, ...]:
    """The argument list of a line: its own words where nothing in it is for a shell, else /bin/sh -c LINE.

    As Perl's `system`, which ran these lines in Auto-pilot: a shell only where it is needed, since its start is
    measured.
    """
    if not _SHELL.search(line):
        try:
            words = tuple(shlex.split(line))
        except ValueError:  # the shell shall say what is wrong with the quotes
            words = ()
        if words and "=" not in words[0] and words[0] not in _BUILT_IN:
            return words
    return ("/bin/sh", "-c", line)
