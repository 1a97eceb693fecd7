"""The URL of a server of HTTP, as `etude load --url` reads it.

The engine reads the same (engine/load/load/src/url.rs); `tests/data/vectors/urls.jsonl` holds both to it.
"""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv6Address

from etude.errors import MachineRefuses, UsageError

EXPECTED = "expected http://HOST[:PORT][/PATH] in characters of RFC 3986, others as %XX"

_URL = re.compile(
    r"(?i:http)://"
    r"(?P<host>[A-Za-z0-9._-]+|\[(?P<address>[0-9A-Fa-f:.]+)(?:%[A-Za-z0-9._~-]+)?\])"
    r"(?::0*(?P<port>[1-9][0-9]{0,4}))?"
    r"(?P<path>[/?][A-Za-z0-9._~:/?\[\]@!$&'()*+,;=%-]*)?"
)


@dataclass(frozen=True, slots=True)
class HttpUrl:
    """Where to connect, and what is requested."""

    text: str
    host: str
    """As in the URL: an IPv6 address has its brackets."""
    port: int
    path: str
    """From its `/`, with its query."""

    @property
    def bare_host(self) -> str:
        """The host as a resolver takes it."""
        return self.host.removeprefix("[").removesuffix("]")

    def resolve(self) -> None:
        """Raises MachineRefuses where the host has no address on this machine."""
        try:
            socket.getaddrinfo(self.bare_host.encode(), self.port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise MachineRefuses(
                f"--url {self.text}: {self.bare_host} has no address: {error.strerror}; correct the name, or make "
                "it known to this machine"
            ) from None


def http_url(text: str) -> HttpUrl:
    """The parts of a URL. Raises UsageError."""
    match = _URL.fullmatch(text)
    port = int(match["port"] or 80) if match else 0
    if match is None or port >= 1 << 16 or not _is_address(match["address"]):
        raise UsageError(f"--url {text!r}: {EXPECTED}")
    path = match["path"] or "/"
    return HttpUrl(text, match["host"], port, path if path.startswith("/") else f"/{path}")


def _is_address(text: str | None) -> bool:
    """Whether what stands in brackets, if anything does, is an IPv6 address."""
    try:
        return text is None or bool(IPv6Address(text).packed)
    except AddressValueError:
        return False
