"""A command that is no program: why, as far as its name tells, and what to do."""

from __future__ import annotations

import os
from collections.abc import Sequence

_BUILTINS = """. : alias bg bind break builtin cd command compgen complete continue declare dirs disown eval exec exit
export fc fg getopts hash history jobs let local logout popd pushd read readonly return set shift shopt source suspend
times trap type typeset ulimit umask unalias unset wait"""
BUILTINS = frozenset(_BUILTINS.split())
"""Of sh and bash, less those that are programs as well, such as `echo`."""
_KEYWORDS = "[[ { ( ! case coproc do done elif else esac fi for function if in select then until while"
KEYWORDS = frozenset(_KEYWORDS.split())


def advice(command: Sequence[str], directory: str | None = None) -> str:
    """What to do where the first word of a command was not found in PATH."""
    word = command[0]
    if word in BUILTINS:
        return f"{word} is built into shells and no program; run it by one, with --shell"
    if word.startswith(("(", "{")) or word in KEYWORDS:
        return f"{word} is shell syntax; run it by a shell, with --shell"
    if f"BASH_FUNC_{word}%%" in os.environ:
        return f"{word} is a function that bash exported, and no program; run it by bash, with --shell=bash"
    if len(command) == 1 and any(map(str.isspace, word)):
        return "the quotes make one word of the whole line; leave out the inner ones"
    here = os.path.join(directory or ".", word)
    if "/" not in word and os.path.isfile(here):
        if os.access(here, os.X_OK):
            return f"there is one in this directory; type ./{word}"
        return (
            f"there is a file {word} in this directory, not executable; type chmod +x {word}, then ./{word}"
        )
    if "-c" in command[-2:-1]:  # a shell, most often the one that was asked for
        return "check its spelling, or give its path"
    return (
        "check its spelling, or give its path; an alias or function of your shell is no program: "
        "write its commands out, with --shell"
    )
