"""The environment of what is measured, without secrets and without what says whose it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from etude.masking import MASKED, SECRET_VARIABLE, Mask

Part = dict[str, Any]

_USUAL = Mask()
LONGEST = 500
"""Characters of a value that are kept."""
PERSONAL = re.compile(
    r"^(?:USER|LOGNAME|USERNAME|MAIL|EMAIL|HOSTNAME|HOST|NAME|SUDO_.*|SSH_.*|GIT_(?:AUTHOR|COMMITTER)_.*|DEBEMAIL"
    r"|DEBFULLNAME|DBUS_SESSION_BUS_ADDRESS|XAUTHORITY|SESSION_MANAGER|KRB5CCNAME|SLURMD?_.*|ETUDE_(?:JOB|NODE|RUN|SETTLED))$"
)
"""Whose it is, from where they came, which job of a scheduler, how long a boot took to settle: it changes no number."""
RANDOM = re.compile(
    r"(?<![\w./+-])(?=[\w+/=-]*\d)(?=[\w+/=-]*[a-z])(?=[\w+=-]*[A-Z])[A-Za-z0-9+=_-]{24,}(?![\w./])"
)
"""A long word of digits, small and capital letters, that is no path: what generators of keys make."""


def variables(environment: Mapping[str, str]) -> Part:
    """All variables, with secrets masked; and how many bytes they are, which shift the stack of what is started."""
    shown = {name: value_shown(name, environment[name]) for name in sorted(environment)}
    size = sum(len(name) + len(value) + 2 for name, value in environment.items())
    return {"variables": {_plain(name): value for name, value in shown.items()}, "size_bytes": size}


def value_shown(name: str, value: str) -> str:
    """The value, or as much of it as may be published."""
    if value and (SECRET_VARIABLE.search(name) or PERSONAL.match(name)):
        return MASKED
    return _plain(RANDOM.sub(MASKED, _USUAL.text(value)))[:LONGEST]


def _plain(text: str) -> str:
    """What is no UTF-8 could not be written as JSON."""
    return text.encode("utf-8", "replace").decode("utf-8")
