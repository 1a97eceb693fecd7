"""The environment of what is measured, without secrets and without what says whose it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

Part = dict[str, Any]

MASKED = "(masked)"
LONGEST = 500
"""Characters of a value that are kept."""
SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASS(?!IVE|ENV)|PASSWD|CREDENTIAL|(?:^|_|API|ACCESS|PRIVATE|AUTH|SSH)KEY(?!BOARD|MAP|CHAIN_PATH)"
    r"|AUTH(?!OR)|COOKIE|SIGNATURE|PRIVATE|_PW$|_PIN$|WEBHOOK|_DSN$|CONNECTION_STRING",
    re.I,
)
PERSONAL = re.compile(
    r"^(?:USER|LOGNAME|USERNAME|MAIL|EMAIL|HOSTNAME|HOST|NAME|SUDO_.*|SSH_.*|GIT_(?:AUTHOR|COMMITTER)_.*|DEBEMAIL"
    r"|DEBFULLNAME|DBUS_SESSION_BUS_ADDRESS|XAUTHORITY|SESSION_MANAGER|KRB5CCNAME|SLURMD?_.*|ETUDE_(?:JOB|NODE|RUN))$"
)
"""Whose it is, from where they came, and which job of a scheduler: it changes no number."""
IN_A_URL = re.compile(r"(?<=://)[^/\s\"'<>]+@")
"""Up to the last @: a password may hold others."""
KNOWN_SECRETS = re.compile(
    r"\bgh[pousr]_\w{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{15,}|\bsk-[\w-]{16,}|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"
    r"|\bxox[abeoprs]-[\w-]{10,}|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*|\bAIza[\w-]{30,}|\bnpm_\w{20,}|\bpypi-[\w-]{20,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*"
    r"|(?i:\b(?:bearer|basic)\s+)[\w.~+/=-]{8,}|(?i:\b[\w-]*(?:password|passwd|token|secret|api_?key)=)[^\s;&,]+"
)
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
    if value and (SECRET_NAME.search(name) or PERSONAL.match(name)):
        return MASKED
    for pattern, by in ((KNOWN_SECRETS, MASKED), (IN_A_URL, f"{MASKED}@"), (RANDOM, MASKED)):
        value = pattern.sub(by, value)
    return _plain(value)[:LONGEST]


def _plain(text: str) -> str:
    """What is no UTF-8 could not be written as JSON."""
    return text.encode("utf-8", "replace").decode("utf-8")
