"""Text of a harness file for one server or load command, from the options of `etude peak`.

URLs are in the grammar of `etude load --url`, whose parser in the engine is engine/load/load/src/options/url.rs;
`tests/data/vectors/urls.jsonl` tests both.
"""

from __future__ import annotations

import difflib
import json
import re
import shlex
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import AddressValueError, IPv6Address
from pathlib import Path
from urllib.parse import urlsplit

from etude.errors import MachineRefuses, UsageError
from etude.peak.harnesses.readers import FIGURES, PRINTED, TOOLS
from etude.peak.harnesses.spec import COUNTS, PERCENTILES
from etude.units.parsing import TIME

RATES = (10.0, 100_000.0)
"""Default range of offered loads, requests/s."""
CLIENTS = (1.0, 1000.0)
RUNLENGTH_S = 10.0
READY_S = 10.0
"""Ready timeout of a server that is already running, s; one that is started has the default."""
OUTSTANDING = 1000
"""Maximum outstanding requests of `etude load`."""
PIECES = 5
"""Runs per trial of a command that prints one summary: a search then takes 1.4 times the benchmarking time of one with
a load command that reports while it runs, and 1.8 times with one run per trial (docs/reference/harness.md)."""
KINDS = ("windows", *TOOLS)
UNITS = (*TIME, PRINTED, *filter(None, COUNTS))

_NAMED = re.compile(rf"([A-Za-z_][\w.-]*):(?:{'|'.join(map(re.escape, UNITS))})=", re.ASCII)
"""Prefix of a pattern that looks like a mistyped name."""
_READ = re.compile(rf"({'|'.join(FIGURES)}|p[0-9]{{1,2}}(?:\.[0-9]+)?):([^=()]*)=(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Value:
    """A number in the output of the load command."""

    find: str
    """A regular expression with one group."""
    name: str = ""
    """Name of the number, as in [reader.values]; empty: the one that the goal limits."""
    unit: str = PRINTED


@dataclass(frozen=True, slots=True)
class HarnessOptions:
    """Options of a harness: a URL or a load command, and limits."""

    url: str | None = None
    command: str | None = None
    limits_s: Mapping[str, float] = field(default_factory=dict)
    """Limits of response times by name: mean, p95."""
    errors: float | None = None
    """Limit of failed requests, a share."""
    reads: Sequence[Value | str] = ()
    """Values to read, or the kind of a reader."""
    loads: tuple[float, float] | None = None
    clients: bool = False
    runlength_s: float = RUNLENGTH_S
    warmup_s: float = 0.0
    pieces: int | None = None
    """None: `PIECES` if values are read and the command takes a run length, else 1."""
    start: str = ""
    ready: str = ""
    hosts: str = ""
    """A hosts file, relative to the harness: the load command runs on these."""
    directory: str = "{here}"
    """Working directory of the commands, quoted for the shell."""


def read_value(text: str) -> Value | str:
    """Parse `NAME:UNIT=REGEX`, `REGEX`, or the kind of a reader. Raises UsageError for an unknown name."""
    if text in KINDS:
        return text
    match = _READ.fullmatch(text)
    if match is None and (named := _NAMED.match(text)):
        known = (*FIGURES, *PERCENTILES)
        alike = difflib.get_close_matches(named[1], known, 1)
        hint = f"{alike[0]}?" if alike else f"known are {', '.join(known)} and other percentiles"
        raise UsageError(f"--read {text!r}: there is no number called {named[1]}: {hint}")
    return Value(match[3], match[1], match[2]) if match else Value(text)


def harness_text(options: HarnessOptions) -> str:
    """Harness file in TOML (docs/reference/harness.md). Raises UsageError if the options do not make a harness."""
    url = http_url(options.url) if options.url is not None else None
    errors = 0.01 if options.errors is None and options.url is not None else options.errors
    goal = {name: f"{1000 * limit:.12g} ms" for name, limit in options.limits_s.items()}
    if errors is not None:
        goal["errors"] = f"{100 * errors:.12g} %"
    if not goal or (options.errors is None and not options.limits_s):
        raise UsageError("what is too much is missing: expected a limit such as --mean 40ms or --p99 100ms")
    lowest, highest = options.loads or (CLIENTS if options.clients else RATES)
    load = {
        "unit": "clients" if options.clients else "requests/s",
        "lowest": lowest,
        "highest": highest,
        "runlength": f"{options.runlength_s:.12g} s",
    }
    commands: dict[str, str | float] = {
        "start": _within(options, options.start),
        "ready": _within(options, options.ready) or (_answers(url) if url else ""),
        "load": _load(options),
        "ready_timeout": "" if options.start else f"{READY_S:g} s",
        "warmup": f"{options.warmup_s:.12g} s" if options.warmup_s else "",
        "pieces": pieces if (pieces := _pieces(options)) > 1 else "",
    }
    parts = [
        f"name = {_toml(_name(options))}",
        _table("goal", goal),
        _table("load", load),
        _table("commands", {key: value for key, value in commands.items() if value}),
        *_reader(options),
    ]
    generator: dict[str, str | float] = (
        {"outstanding": OUTSTANDING} if options.url and not options.clients else {}
    )
    generator |= {"hosts": options.hosts} if options.hosts else {}
    if generator:
        parts.append(_table("generator", generator))
    text = "\n\n".join(parts) + "\n"
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError("the options of a harness have to be UTF-8") from None
    return text


def _name(options: HarnessOptions) -> str:
    if options.url:
        whole = urlsplit(options.url).netloc
    else:
        words = [word for word in (options.command or "").split() if word != "exec"]
        whole = Path(words[0]).name if words else ""
    return re.sub(r"[^\w.-]+", "-", whole).strip("-.") or "server"


def _pieces(options: HarnessOptions) -> int:
    if options.pieces is not None:
        return options.pieces
    summary = any(isinstance(each, Value) for each in options.reads)
    return PIECES if summary and "{runlength}" in (options.command or "") else 1


def _load(options: HarnessOptions) -> str:
    """The load command; other hosts run it in a directory created there."""
    if options.url:
        return _requests(options)
    return (options.command or "") if options.hosts else _within(options, options.command or "")


def _within(options: HarnessOptions, command: str) -> str:
    return f"cd {options.directory} && {command}" if command else ""


def _requests(options: HarnessOptions) -> str:
    how = "--clients" if options.clients else "--rate"
    offered = f"{how} {{load}} --seconds {{runlength}} --seed {{seed}}"
    return f"exec etude load --json --url {shlex.quote(options.url or '')} {offered}"


def _answers(url: HttpUrl) -> str:
    """Shell command that succeeds if the port accepts connections."""
    return shlex.join(("bash", "-c", f"exec 3<>/dev/tcp/{url.bare_host}/{url.port}"))


def _reader(options: HarnessOptions) -> list[str]:
    kinds = [each for each in options.reads if isinstance(each, str)]
    values = [each for each in options.reads if not isinstance(each, str)]
    if options.url and options.reads:
        raise UsageError("--read is for --run: what --url prints is known")
    if len(options.reads) > 1 and kinds:
        raise UsageError(f"--read {kinds[0]} reads all that is needed: leave out the others")
    if not values:
        return [_table("reader", {"kind": kinds[0] if kinds else "windows"})]
    tables = [_table("reader", {"kind": "regex"})]
    for value in values:
        name = value.name or _only_limit(options)
        unit = {"unit": value.unit} if value.unit else {}
        tables.append(_table(f"reader.values.{_key(name)}", {"find": value.find} | unit))
    names = [value.name or _only_limit(options) for value in values]
    if len(set(names)) < len(names):
        raise UsageError("--read names the same number twice")
    return tables


def _only_limit(options: HarnessOptions) -> str:
    if len(options.limits_s) != 1:
        raise UsageError(
            "--read REGEX is for one limit: write --read NAME:UNIT=REGEX, as p95:ms=REGEX, for each"
        )
    return next(iter(options.limits_s))


def _table(name: str, values: Mapping[str, str | float]) -> str:
    return "\n".join([f"[{name}]", *(f"{_key(key)} = {_toml(value)}" for key, value in values.items())])


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml(name)


def _toml(value: str | float) -> str:
    """TOML value; a basic string of TOML is a JSON string, except for DEL."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return f"{value:.12g}"


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
