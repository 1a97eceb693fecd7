"""The hosts file: names of machines, and how to connect to them (docs/howto/remote.md).

Every error in it is one line: FILE:LINE: what, and what was expected.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from etude.toml_config import Section, document

LOCAL = "local"
"""Name of the machine that Étude runs on, among the names of hosts."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
"""Names that `etude.script.arguments` accepts after an @."""
CONNECT_S, PATIENCE_S, SILENCE_S = 10.0, 10.0, 15.0
_KEYS = (
    *("address", "user", "port", "identity", "known_hosts", "options", "connect_timeout"),
    *("patience", "silence", "directory", "measure", "environment"),
)
_PROCESS = re.compile(r"[^/\x00-\x1f]+")


@dataclass(frozen=True)
class Entry:
    """One host. Options that are None are left to ssh."""

    name: str
    address: str
    user: str | None = None
    port: int | None = None
    identity: Path | None = None
    known_hosts: Path | None = None
    options: tuple[str, ...] = ()
    """Options of ssh, as in its configuration: NAME=VALUE."""
    connect_timeout_s: float = CONNECT_S
    patience_s: float = PATIENCE_S
    """Time for which connecting is retried, since the host may be starting, s."""
    silence_s: float = SILENCE_S
    """Silence after which a host counts as lost, s."""
    directory: str = "/tmp"
    """Directory there below which Étude works; its files are removed in the end."""
    measure: tuple[str, ...] = ()
    """Names of processes and kernel threads whose CPU time is read around each EXEC."""
    environment: Mapping[str, str] | None = None

    @property
    def shown(self) -> str:
        """Name of the host in messages."""
        user = f"{self.user}@" if self.user else ""
        port = f":{self.port}" if self.port else ""
        return f"host {self.name} ({user}{self.address}{port})"


def read_hosts(path: Path) -> dict[str, Entry]:
    """The hosts of a file, by name, in its order.

    Raises:
        InputError: it cannot be read, or is invalid.
    """
    whole = document(path)
    whole.only(("hosts",))
    hosts = whole.section("hosts")
    if not hosts.values:
        whole.fail(None, "names no host: expected a table [hosts.NAME] with an address")
    return {name: _entry(name, hosts) for name in hosts.values}


def _entry(name: str, hosts: Section) -> Entry:
    if not NAME.fullmatch(name) or name == LOCAL:
        taken = "; local is this machine" if name == LOCAL else ""
        hosts.fail(name, f"{name!r} is no name of a host: expected letters, digits, '.', '_' and '-'{taken}")
    table = hosts.section(name)
    table.only(_KEYS)
    address = table.text_at("address")
    if not address or address.startswith("-") or re.search(r"[\s\x00@/]", address):
        table.fail(
            "address", f"{table.named('address')} is {address!r}: expected a name or a number of a host"
        )
    return Entry(
        name,
        address,
        user=_word(table, "user"),
        port=_port(table),
        identity=_path(table, "identity"),
        known_hosts=_path(table, "known_hosts"),
        options=_options(table),
        connect_timeout_s=_seconds(table, "connect_timeout", CONNECT_S),
        patience_s=_seconds(table, "patience", PATIENCE_S, least=0.0),
        silence_s=_seconds(table, "silence", SILENCE_S),
        directory=_directory(table),
        measure=_processes(table),
        environment=_environment(table),
    )


def _word(table: Section, key: str) -> str | None:
    text = table.text_at(key)
    if key in table.values and (not text or text.startswith("-") or re.search(r"[\s\x00@]", text)):
        table.fail(key, f"{table.named(key)} is {text!r}: expected one word")
    return text or None


def _port(table: Section) -> int | None:
    port = table.values.get("port")
    if port is not None and (type(port) is not int or not 0 < port < 65536):
        table.fail("port", f"{table.named('port')} is {port!r}: expected a whole number from 1 to 65535")
    return port


def _path(table: Section, key: str) -> Path | None:
    """A local file, relative to the hosts file."""
    text = table.text_at(key)
    if not text:
        return None
    path = (table.path.parent / Path(text).expanduser()).absolute()
    if not os.path.isfile(path):  # also False if the name is too long
        table.fail(key, f"{table.named(key)}: {path} is no file")
    return path


def _seconds(table: Section, key: str, default: float, least: float = 1.0) -> float:
    seconds = table.seconds(key, default) or 0.0
    if not least <= seconds <= 3600.0:
        table.fail(key, f"{table.named(key)} is {seconds:g} s: expected from {least:g} s to 1 h")
    return seconds


def _directory(table: Section) -> str:
    directory = table.text_at("directory", "/tmp")
    if not directory.startswith("/") or re.search(r"[\x00\n]", directory):
        table.fail("directory", f"{table.named('directory')} is {directory!r}: expected an absolute path")
    return directory.rstrip("/") or "/"


def _texts(table: Section, key: str) -> tuple[str, ...]:
    values = table.values.get(key, [])
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        table.fail(key, f"{table.named(key)} is {values!r}: expected a list of texts")
    return tuple(values)


def _options(table: Section) -> tuple[str, ...]:
    options = _texts(table, "options")
    for option in options:
        if not re.fullmatch(r"[A-Za-z]+=[^\x00\n]*", option):
            table.fail(
                "options", f"{table.named('options')}: {option!r}: expected NAME=VALUE, as ssh -o takes it"
            )
    return options


def _processes(table: Section) -> tuple[str, ...]:
    names = _texts(table, "measure")
    for name in names:
        if not _PROCESS.fullmatch(name):
            table.fail(
                "measure",
                f"{table.named('measure')}: {name!r}: expected the name of a process, without a path",
            )
    return tuple(dict.fromkeys(names))


def _environment(table: Section) -> Mapping[str, str]:
    section = table.section("environment")
    for name, value in section.values.items():
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or not isinstance(value, str) or "\0" in value:
            section.fail(name, f'{section.named(name)} is {value!r}: expected NAME = "a text"')
    return dict(section.values)
