"""Identifying text in results, such as host names and home directories, and its replacement."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

NO_NAMES = frozenset(("", "localhost", "localhost.localdomain", "(none)"))
"""Host names that identify no machine."""
SHORT = 4
"""Minimum length of a name that is replaced everywhere: shorter ones occur in too many words."""
HOME = b"/home/user"
_DEVICES = rb"(?<![0-9A-Fa-f:])(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}(?![0-9A-Fa-f:])"
_INTERFACES = rb"\b(?:en|wl|ww)x[0-9a-f]{12}\b"
"""MAC addresses, and interfaces named after them: kernel messages and the monitor contain them."""
_SERIAL = rb"(?<=SerialNumber: )(?!device-\d)[^\s\"\\]+"
_HOMES = rb"(?<![\w.-])/(?:home|Users)/[^/\s\"'\\:;,<>()]+"


@dataclass(frozen=True)
class Identity:
    """Names of a machine and its user."""

    hosts: tuple[str, ...]
    homes: tuple[str, ...]
    doubtful: tuple[str, ...] = ()
    """Hosts whose names are also other words in the results: replaced only in host fields."""


def identity_of(documents: Iterable[Mapping[str, Any]], own_home: str | None = None) -> Identity:
    """Hosts and home directories in these experiments. own_home: an additional home directory at any path."""
    hosts: dict[str, None] = {}
    homes: dict[str, None] = {}
    words: set[str] = set()
    for document in documents:
        for name, value in _members(document):
            if name in ("host", "hostname") and isinstance(value, str) and value not in NO_NAMES:
                hosts[value] = None
            else:
                words.update([name] if "/" not in name else [])  # mount points and programs are no such words
                if isinstance(value, str) and name.startswith(("distribution", "vendor", "model")):
                    words.add(value)
        text = json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogateescape")
        homes |= dict.fromkeys(found.decode("utf-8", "replace") for found in re.findall(_HOMES, text))
        if own_home not in (None, "", "/", "/root") and (own_home or "").encode() in text:
            homes[own_home or ""] = None
    doubtful = tuple(host for host in hosts if _is_doubtful(host, words))
    return Identity(tuple(hosts), tuple(homes), doubtful)


def _is_doubtful(host: str, words: Collection[str]) -> bool:
    short = host.partition(".")[0]
    return len(short) < SHORT or any(short in word for word in words)


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for name, member in value.items():
            yield str(name), member
            yield from _members(member)
    elif isinstance(value, list):
        for member in value:
            yield from _members(member)


class Anonymizer:
    """Replaces hosts by host-1, host-2 …, home directories by /home/user and device names by device-1,
    device-2 …, consistently.
    """

    def __init__(self, identity: Identity) -> None:
        self._hosts: dict[bytes, bytes] = {}
        self._homes = {_bytes(home) for home in identity.homes}
        self._named: dict[bytes, bytes] = {}
        for number, host in enumerate(identity.hosts, 1):
            new = f"host-{number}".encode()
            self._named[_bytes(host)] = new
            if host not in identity.doubtful:
                self._hosts[_bytes(host)] = new
                self._hosts.setdefault(_bytes(host.partition(".")[0]), new)
        self._devices: dict[bytes, bytes] = {}
        self._pattern = self._compiled()

    def _compiled(self) -> re.Pattern[bytes]:
        def any_of(words: Iterable[bytes]) -> bytes:
            return b"|".join(map(re.escape, sorted(words, key=len, reverse=True)))

        parts = [b"(?P<home>" + _HOMES + b")"]
        if self._homes:
            parts.insert(0, b"(?P<own>(?:" + any_of(self._homes) + rb")(?![\w.-]))")
        if self._named:
            field = rb'"(?:host|hostname)":\s*"|^(?:\w+\.)*host(?:name)? = '
            parts.append(b"(?P<field>" + field + b")(?P<named>" + any_of(self._named) + rb')(?="|\r?$)')
        if self._hosts:
            parts.append(b"(?P<host>" + any_of(self._hosts) + b")")
        parts.append(b"(?P<device>" + _DEVICES + b"|" + _INTERFACES + b"|" + _SERIAL + b")")
        return re.compile(b"|".join(parts), re.MULTILINE)

    def _replaced(self, match: re.Match[bytes]) -> bytes:
        found = match.groupdict()
        if found.get("named"):
            return found["field"] + self._named[found["named"]]
        if found.get("host"):
            return self._hosts[found["host"]]
        if found.get("device"):
            return self._devices.setdefault(found["device"], f"device-{len(self._devices) + 1}".encode())
        return HOME

    def of(self, content: bytes) -> bytes:
        """The content without names."""
        return self._pattern.sub(self._replaced, content)

    def text(self, text: str) -> str:
        """The text without names."""
        return self.of(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")


def _bytes(name: str) -> bytes:
    return os.fsencode(name)
