"""argparse with our manners: one line for a wrong argument, and types that say what they expected."""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, NoReturn

from etude.cli.entry import complain
from etude.experiment.monitoring import DEFAULT_MONITORING, MAX_EVERY_S, MAX_TOP, MIN_EVERY_S, Monitoring
from etude.experiment.output_metric import check_place
from etude.experiment.test import MetricPattern
from etude.patterns import PatternError, compile_pattern
from etude.peak import MOST_LOAD
from etude.results.trial_join import JOINS, is_join
from etude.units import parsing

MOST_CPUS = 65536


class Help(argparse.HelpFormatter):
    """Fills the paragraphs of a description; what is indented in it, such as a table, stands as it is."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        from etude.cli.help import fitted

        return fitted(text, width)

    def _split_lines(self, text: str, width: int) -> list[str]:
        """Lines broken at blanks only, so that names of options and paths stay whole."""
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)


class OneLineParser(argparse.ArgumentParser):
    """Prints text as it is written, and an error as one line with exit code 2."""

    def __init__(self, **options: object) -> None:
        super().__init__(**options, formatter_class=Help, allow_abbrev=False)  # type: ignore[arg-type]
        self.instead: Mapping[str, str] = {}
        """The equivalent of each option that other tools have and this verb lacks."""
        self.otherwise = ""
        """Advice for an unknown option that resembles none of the verb's."""
        self.examples = ""
        """Examples at the top of the help."""

    def format_help(self) -> str:
        return self.examples + super().format_help()

    def _print_message(self, message: str, file: Any = None) -> None:
        """Unlike argparse, which takes a full device for one that has the text."""
        (file or sys.stderr).write(message)

    def error(self, message: str) -> NoReturn:
        sys.exit(complain("etude", f"{message}{self._hint(message)}; see {self.prog} --help", 2))

    def _hint(self, message: str) -> str:
        """Advice for the first unknown option that resembles a known one, or is known from another program."""
        words = message.partition("unrecognized arguments: ")[2].split()
        for option in (word.partition("=")[0] for word in words if word.startswith("-")):
            if option in self.instead:
                return f"; {self.instead[option]}"
            if close := closest(option, self._option_string_actions):
                return f" (did you mean {close}?)"
        return f"; {self.otherwise}" if words and self.otherwise else ""


def closest(word: str, known: Iterable[str]) -> str | None:
    """The one of some names that a misspelt word is closest to; None where none is close."""
    import difflib

    return next(iter(difflib.get_close_matches(word, list(known), 1)), None)


def share(text: str) -> float:
    """`0.02` or `2%`: above 0; from 1 on only with the sign, since 2 would be 200 %."""
    value = _read(parsing.share, text)
    if value == 0.0:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a share above 0 such as 2% or 0.02")
    if value >= 1.0 and text.strip()[-1].isdigit():
        raise argparse.ArgumentTypeError(
            f"{text} would be {100 * value:g} %; write {text}% or {value / 100:g}"
        )
    return value


def share_below_half(text: str) -> float:
    """A share of what is left out at either end."""
    value = share(text)
    if value >= 0.5:
        raise argparse.ArgumentTypeError(f"{text}: nothing would be left; expected less than 50%")
    return value


def seconds(text: str) -> float:
    """A duration: `30`, `1.5s`, `4 min` or `1h`."""
    return _read(parsing.duration, text)


def size(text: str) -> int:
    """Bytes: `64K`, `2.5 GB`, `10G`; above 0."""
    found = _read(parsing.size, text)
    if not 1 <= found <= parsing.MOST_BYTES:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a size from 1 B, such as 10G")
    return int(found)


def place(text: str) -> str:
    """A directory or file to write to."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty: expected a name")
    return text


def time_to(most_s: float, *, zero: bool = False) -> Callable[[str], float]:
    """A duration up to `most_s`; above 0 unless `zero`."""

    def seconds_to(text: str) -> float:
        found = seconds(text)
        if found == 0 and not zero:
            raise argparse.ArgumentTypeError(f"{text!r}: expected more than 0")
        if found > most_s:
            raise argparse.ArgumentTypeError(f"{text!r}: expected at most {parsing.duration_text(most_s)}")
        return found

    return seconds_to


def whole(text: str) -> int:
    """A whole number of 64 bits."""
    found = parsing.whole_in(text)
    if found is None or not -(2**63) <= found < 2**63:
        below = "" if found is None else " below 2^63"
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number{below}")
    return found


def whole_to(most: int, least: int = 1) -> Callable[[str], int]:
    """A whole number from `least` to `most`."""

    def number(text: str) -> int:
        if re.fullmatch(r"[0-9]{1,30}", text) and least <= int(text) <= most:
            return int(text)
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number from {least} to {most}")

    return number


def load(text: str) -> float:
    """A rate above 0, or a number of clients: `200`, `5k/s`, `90/min`."""
    found = _read(parsing.rate, text)
    if not 0 < found <= MOST_LOAD:
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected a load above 0, and at most {MOST_LOAD:g} requests/s"
        )
    return found


def seed(text: str) -> int:
    """A whole number from 0."""
    found = parsing.whole_in(text)
    if found is None or "-" in text or found >= 2**63:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number from 0, below 2^63")
    return found


def _read(kind: Callable[[str], float], text: str) -> float:
    try:
        return kind(text)
    except parsing.QuantityError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def monitor_every(text: str) -> float | None:
    """`off`, which is None, or how often the monitor reads, s."""
    if text == "off":
        return None
    found = seconds(text)
    if not MIN_EVERY_S <= found <= MAX_EVERY_S:
        raise argparse.ArgumentTypeError(f"{text}: expected off, or 10ms to 1h")
    return found


def monitor_top(text: str) -> int:
    """Number of processes that the monitor lists in each reading."""
    found = parsing.whole_in(text)
    if found is None or not 0 <= found <= MAX_TOP:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number of processes from 0 to {MAX_TOP}")
    return found


def add_monitor(add: Callable[..., object]) -> None:
    """Declare `--monitor` and `--monitor-top`; `add`: of a parser or a group."""
    add(
        "--monitor",
        type=monitor_every,
        default=DEFAULT_MONITORING.every_s,
        metavar="off|DURATION",
        help="how often the machine is looked at beside the trials "
        f"(default {DEFAULT_MONITORING.every_s:g}s; docs/howto/monitor.md)",
    )
    add(
        "--monitor-top",
        type=monitor_top,
        default=DEFAULT_MONITORING.top,
        metavar="N",
        help=f"... and how many of its busiest processes are listed each time (default {DEFAULT_MONITORING.top})",
    )


def monitor(options: argparse.Namespace) -> Monitoring | None:
    """The monitoring that the options request; None without it."""
    return None if options.monitor is None else Monitoring(options.monitor, options.monitor_top)


def add_mask(add: Callable[..., object]) -> None:
    """Declare `--mask`."""
    add(
        "--mask",
        type=_mask,
        action="append",
        default=[],
        metavar="PATTERN",
        help="a regular expression for secrets in commands and names, besides password=…, user:pw@host and the like "
        "(docs/explanation/security.md); repeat for more",
    )


def _mask(text: str) -> str:
    try:
        compile_pattern(text)
    except PatternError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None
    return text


def cpus(text: str) -> tuple[int, ...]:
    """`0,2-3`."""
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"([0-9]+)(?:-([0-9]+))?", part)
        if not match or not int(match[1]) <= int(match[2] or match[1]) < MOST_CPUS:
            raise argparse.ArgumentTypeError(f"{text!r} is no list of CPUs; expected such as 0 or 0,2-3")
        found += range(int(match[1]), int(match[2] or match[1]) + 1)
    return tuple(found)


def metric(text: str) -> MetricPattern:
    """`NAME=REGEX`, `NAME:UNIT=REGEX` or `NAME:UNIT:JOIN=REGEX`."""
    match = re.fullmatch(rf"([A-Za-z_]\w*)(?::([^=]+?)(?::({'|'.join(JOINS)}))?)?=(.+)", text, re.DOTALL)
    if not match:
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected NAME=REGEX, NAME:UNIT=REGEX or NAME:UNIT:sum=REGEX"
        )
    name, unit, join, regex = match.groups()
    if unit and is_join(unit):
        raise argparse.ArgumentTypeError(
            f"{text!r}: {unit!r} is no unit; expected NAME=REGEX, NAME:UNIT=REGEX or NAME:UNIT:{'|'.join(JOINS)}=REGEX"
        )
    try:
        check_place(regex)
        compile_pattern(regex)
    except PatternError as error:
        raise argparse.ArgumentTypeError(f"{regex!r} is no regular expression: {error}") from None
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{regex!r}: {error}") from None
    return MetricPattern(name, regex, unit or "1", join or "")


def named_metric(text: str) -> MetricPattern:
    """A metric as of `metric`; or the name of one that Étude measures, whose pattern is empty."""
    return MetricPattern(text, "") if re.fullmatch(r"[A-Za-z_]\w*", text) else metric(text)


def inner(text: str) -> int | str:
    """`auto` or a number from 1."""
    if text == "auto":
        return text
    found = parsing.whole_in(text)
    if found is None or found < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected auto or a number from 1")
    return found


def percent_between(text: str) -> float:
    """`95` or `95 %`: a confidence in percent, as a fraction."""
    found = percent(text)
    if not 0.01 < found < 1.0:
        raise argparse.ArgumentTypeError(f"{text!r}: expected percent between 1 and 100, such as 95")
    return found


def percent(text: str) -> float:
    """`5` or `5 %`: percent, as a fraction."""
    return _read(partial(parsing.share, bare="%"), text)


def percentile_list(text: str) -> tuple[float, ...]:
    """`p50,p99.9` as shares."""
    shares = []
    for part in text.split(","):
        match = re.fullmatch(r"p?([0-9]+(?:\.[0-9]+)?)", part.strip())
        share = float(match[1]) / 100.0 if match else 0.0
        if not 0.0 < share < 1.0:
            raise argparse.ArgumentTypeError(f"{part!r} is no percentile; expected such as p50,p90,p99.9")
        shares.append(share)
    return tuple(dict.fromkeys(shares))


def number_above_0(text: str) -> float:
    """Finite."""
    value = parsing.number_in(text)
    if value is None or value <= 0:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number above 0")
    return value


def count(text: str) -> int:
    """An integer from 1 to a million."""
    if not re.fullmatch(r"[0-9]{1,20}", text) or not 1 <= int(text) <= 10**6:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number from 1 to 1000000")
    return int(text)


def deadline(text: str) -> datetime:
    """`17:30`, of today or tomorrow, or `2026-11-23T08:00`; of the local clock unless it says otherwise."""
    now = datetime.now().astimezone()
    try:
        if re.fullmatch(r"[0-9]{1,2}:[0-9]{2}", text):
            hour, minute = map(int, text.split(":"))
            found = now.replace(hour=hour, minute=minute, second=0, microsecond=0)
            return found if found > now else found + timedelta(days=1)
        found = datetime.fromisoformat(text)
        return found if found.tzinfo else found.astimezone()
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no time; expected such as 17:30 or {now + timedelta(hours=2):%Y-%m-%dT%H:%M}"
        ) from None


def moment(text: str) -> datetime:
    """`2026-11-23T08:00Z` or `2026-11-23`; of UTC unless it says otherwise."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no time; expected such as 2026-11-23T08:00Z") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
