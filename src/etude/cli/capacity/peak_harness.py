"""Options of `etude peak` that take the place of a harness file: a URL or a load command, and limits."""

from __future__ import annotations

import argparse
import re
import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from etude.cli import parser as kinds
from etude.errors import InputError, MachineRefuses, UsageError
from etude.osutil.processes import one_thread
from etude.peak import LONGEST_S, MOST_PIECES

if TYPE_CHECKING:
    from etude.peak.sources import Source

PERCENTILES = ("p50", "p90", "p95", "p99", "p99.9")
LIMITS = ("mean", *PERCENTILES)


def add_harness_options(group: argparse._ArgumentGroup) -> None:
    """Declare them."""
    add = group.add_argument
    repeated = partial(add, action="append", default=[])
    one = group.add_mutually_exclusive_group()
    one.add_argument(
        "--url",
        metavar="URL",
        help="measure an HTTP server: GET requests of etude load, on kept connections",
    )
    one.add_argument(
        "--run",
        dest="load_command",
        metavar="'CMD {load}'",
        help="offer load with a command; {runlength}, {seed} and {requests} in it are replaced, too",
    )
    repeated(
        "--read",
        metavar="REGEX",
        help="with --run: REGEX whose group is the limited time, with its unit (1.83ms). NAME:UNIT=REGEX, such as "
        "p95:ms=REGEX or completed:1=REGEX: a number by name; may be given several times. windows (default), "
        "pgbench, sysbench, httperf, fio, hey, vegeta or k6: the kind of a reader",
    )
    add("--mean", type=kinds.time_to(LONGEST_S), metavar="TIME", help="limit of the mean response time")
    for name in PERCENTILES:
        add(
            f"--{name}",
            dest=name,
            type=kinds.time_to(LONGEST_S),
            metavar="TIME",
            help=f"limit of the {name[1:]}th percentile",
        )
    add(
        "--errors",
        type=kinds.share,
        metavar="SHARE",
        help="limit of failed requests (default with --url: 1%%)",
    )
    add(
        "--loads",
        type=_loads,
        metavar="LOW..HIGH",
        help="range of offered loads (default 10..100000 requests/s, or 1..1000 clients)",
    )
    add("--clients", action="store_true", help="{load} is a number of clients, not a rate")
    add(
        "--runlength",
        type=kinds.time_to(LONGEST_S),
        metavar="TIME",
        help="duration of the longest trial (default 10s)",
    )
    add(
        "--warmup",
        type=kinds.time_to(LONGEST_S, zero=True),
        metavar="TIME",
        help="offer half of the load before each trial; not counted",
    )
    add(
        "--pieces",
        type=kinds.whole_to(MOST_PIECES),
        metavar="N",
        help="with --run: number of runs of the command in a trial, which may end after any of them (default: 5 with "
        "--read REGEX and a CMD with {runlength}, else 1)",
    )
    add(
        "--hosts",
        metavar="FILE",
        help="offer the load from all hosts of this file together, each its share (docs/howto/remote.md)",
    )
    add("--start", metavar="CMD", help="start the system with this command; it is ended after the search")
    add(
        "--ready",
        metavar="CMD",
        help="command that succeeds once the system answers (default with --url: it accepts connections)",
    )
    add("--save", metavar="FILE", help="write the harness to FILE, and search with it")


def _loads(text: str) -> tuple[float, float]:
    first, dots, last = text.partition("..")
    if dots:
        low, high = kinds.load(first), kinds.load(last)
    if not dots or last.startswith(".") or low >= high:
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected two loads that rise, such as 10..5000 or 1k/s..5k/s"
        )
    return low, high


def short_harness(options: argparse.Namespace) -> str:
    """The harness in TOML; empty where neither --url nor --run is given.

    Raises UsageError for options that have no meaning there.
    """
    for name in ("hosts", "start", "ready", "save"):
        if getattr(options, name) == "":
            what = "a command" if name in ("start", "ready") else "the name of a file"
            raise UsageError(f"--{name} '': expected {what}, or leave it out")
    given: dict[str, Any] = {
        "errors": options.errors,
        "read": options.read,
        "loads": options.loads,
        "clients": options.clients,
        "runlength_s": options.runlength,
        "warmup_s": options.warmup,
        "pieces": options.pieces,
        "hosts": options.hosts,
        "start": options.start,
        "ready": options.ready,
    }
    given = {name: value for name, value in given.items() if value not in (None, []) and value is not False}
    limits = {name: limit for name in LIMITS if (limit := getattr(options, name)) is not None}
    if options.url is None and options.load_command is None:
        if names := [
            *limits,
            *(name.removesuffix("_s") for name in given),
            *(["save"] if options.save else []),
        ]:
            raise UsageError(f"--{names[0]} is for --url and --run: a HARNESS.toml has its own setting")
        return ""
    if options.harness or options.simulate is not None:
        which = "--url" if options.url is not None else "--run"
        other = "HARNESS" if options.harness else "--simulate"
        raise UsageError(f"{which} replaces {other}: leave out one of them")
    if options.factor:
        raise UsageError("--factor is for a HARNESS.toml: --url and --run have none")
    one_thread()
    from etude.peak.harnesses.harness_text import HarnessOptions, harness_text, read_value

    reads = [read_value(text) for text in given.pop("read", ())]
    where = _directory(options.save)
    if where != "{here}" and options.hosts is not None:
        given["hosts"] = str(Path(options.hosts).absolute())
    return harness_text(
        HarnessOptions(options.url, options.load_command, limits, reads=reads, directory=where, **given)
    )


def resolve_host(options: argparse.Namespace) -> None:
    """Look up the host of --url, where the search itself is to connect to a server that runs already.

    Another ready check, a start command or the hosts that offer the load may know names that this machine does not.
    Raises MachineRefuses: the host has no address.
    """
    if options.url is None or options.ready or options.start or options.hosts:
        return
    from etude.peak.harnesses.harness_text import http_url

    http_url(options.url).resolve()


def _directory(save: str | None) -> str:
    """The directory in which commands are given: that of the harness, unless it is written elsewhere."""
    here = Path.cwd()
    return "{here}" if save is None or Path(save).resolve().parent == here else shlex.quote(str(here))


def parsed(path: Path, text: str) -> Source:
    """The source that a harness of options describes.

    Raises:
        UsageError: with the line in question, since nobody sees the file; InputError: in a file that it names.
    """
    from etude.peak.sources import of_text

    try:
        return of_text(path, text)
    except InputError as error:
        if not str(error).startswith(f"{path}:"):  # of a hosts file
            raise
        what = str(error).removeprefix(str(path))
        place = re.match(r":(\d+): ", what)
        line = f"the line `{text.splitlines()[int(place[1]) - 1].strip()}`" if place else "a harness"
        raise UsageError(f"these options make {line}: {what[place.end() if place else 2 :]}") from None


def save_harness(options: argparse.Namespace, text: str) -> None:
    """Write the harness as --save says, after which it is the one that is searched.

    Raises:
        UsageError: another file is there, or it has no meaning, and is not written.
        MachineRefuses: it cannot be written.
    """
    if options.save is None:
        return
    path = Path(options.save)
    parsed(path, text)
    try:
        if not path.exists():
            path.write_text(text, encoding="utf-8")
        elif path.read_bytes() != text.encode():
            raise UsageError(f"--save {path}: is there with another text; name another file, or remove it")
    except OSError as error:
        raise MachineRefuses(
            f"--save {path}: cannot be written: {error.strerror}; name another file"
        ) from None
    options.harness = [str(path)]
