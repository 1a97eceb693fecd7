"""URL of an HTTP server, in the grammar of `etude load --url`.

The engine has the same parser (engine/load/load/src/options/url.rs); `tests/data/vectors/urls.jsonl` tests both.
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
    """Parts of a URL."""

    text: str
    host: str
    """Host part of the URL: an IPv6 address keeps its brackets."""
    port: int
    path: str
    """Path from its `/`, with the query."""

    @property
    def bare_host(self) -> str:
        """The host without brackets, for a resolver."""
        return self.host.removeprefix("[").removesuffix("]")

    def resolve(self) -> None:
        """Raises MachineRefuses if the host has no address on this machine."""
        try:
            socket.getaddrinfo(self.bare_host.encode(), self.port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise MachineRefuses(
                f"--url {self.text}: {self.bare_host} has no address: {error.strerror}; correct the name, or make "
                "it known to this machine"
            ) from None


def http_url(text: str) -> HttpUrl:
    """Parts of a URL. Raises UsageError."""
    match = _URL.fullmatch(text)
    port = int(match["port"] or 80) if match else 0
    if match is None or port >= 1 << 16 or not _is_address(match["address"]):
        raise UsageError(f"--url {text!r}: {EXPECTED}")
    path = match["path"] or "/"
    return HttpUrl(text, match["host"], port, path if path.startswith("/") else f"/{path}")


def _is_address(text: str | None) -> bool:
    """True for None or a valid IPv6 address (the text inside the brackets)."""
    try:
        return text is None or bool(IPv6Address(text).packed)
    except AddressValueError:
        return False
