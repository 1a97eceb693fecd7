"""Parsers of directives' arguments, one function each: text to plain data, or an error.

`parse.py` calls them for text without variables, the machine for text after expansion.
"""

from __future__ import annotations

import math
import re
import shlex
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from functools import lru_cache

from etude.errors import UsageError
from etude.experiment.output_metric import check_place, unquoted_text
from etude.patterns import PatternError, compile_pattern
from etude.results.model import CACHE_WAYS, METRICS
from etude.results.trial_join import JOINS, is_join
from etude.script.directive_words import (
    NAME,
    ArgumentError,
    Word,
    expected_error,
    shown_word,
    split_words,
    variable_name,
)
from etude.script.forloop import plain
from etude.units.parsing import QuantityError, duration

MAX_THREADS = 4096
QUIET_OFF = "off"
"""Word of QUIET that restores the machine."""
NAME_OF_HOST = r"[A-Za-z0-9][A-Za-z0-9_.-]*"
HOST = re.compile(NAME_OF_HOST)

_CONDITION = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*(!?(?:<=|>=|==|=|<|>))(?![<>=!])\s*")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_WHOLE = re.compile(r"[0-9]{1,9}")
_ASIDE = re.compile(r"FROM\s+CLEANUP(?:\s+|$)")
FIRST_NUMBER = r"[-+]?[0-9][0-9.,]*(?:[eE][-+]?[0-9]+)?"
_PLACE = re.compile(rf"@({NAME_OF_HOST}(?:,{NAME_OF_HOST})*):(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Condition:
    """`NAME OP VALUE`; `op` is one of = < > <= >=, or one of them after a !; `value` may be empty."""

    name: str
    op: str
    value: str


@dataclass(frozen=True, slots=True)
class TestHeader:
    """`NAME MIN [MAX=N] [TIME=DURATION] [STEP PROGRAM ARG…]`.

    `program` are the words of the stop program without their quotes, empty without a stop program;
    `program_text` is the same text as written.
    """

    __test__ = False  # not a class of pytest

    name: str
    minimum: int
    maximum: int | None
    budget_s: float | None
    step: int | None
    program: tuple[str, ...]
    program_text: str


def parse_assignment(text: str) -> tuple[str, str]:
    """`NAME=VALUE`: blanks around either are removed, and the value may be empty.

    Raises:
        ArgumentError: no name, or no =.
    """
    before, equals, value = text.partition("=")
    end = len(before.rstrip()) + 1
    if not equals:
        raise ArgumentError("expected NAME=VALUE", end)
    name = before.strip()
    if not NAME.fullmatch(name):
        raise expected_error(
            "a name of letters, digits and _", Word(name, len(before) - len(before.lstrip()) + 1)
        )
    return name, value.strip()


def parse_condition(text: str) -> Condition:
    """`NAME OP VALUE`, blanks around OP are optional; == is = and the value is the rest of the line.

    Raises:
        ArgumentError: no bare name, or no operator.
    """
    match = _CONDITION.match(text)
    if match:
        return Condition(match[1], match[2].replace("==", "="), text[match.end() :].strip())
    begin = len(text) - len(text.lstrip())
    name = NAME.match(text, begin)
    if not name:
        found = text[begin:].split(None, 1)
        raise expected_error("a variable's bare name", Word(found[0] if found else "", begin + 1))
    rest = text[name.end() :]
    found = rest.split(None, 1)
    place = len(text) - len(rest.lstrip()) if found else name.end()
    raise expected_error("= < > <= or >=, or ! and one of these", Word(found[0] if found else "", place + 1))


def is_true(condition: Condition, left: str) -> bool:
    """True if `left`, the variable's value, meets the condition.

    Both are compared as numbers if both are numbers, else as text.

    Raises:
        ArgumentError: texts with an operator other than = or !=.
    """
    negated, op = condition.op[0] == "!", condition.op.lstrip("!")
    left, right = left.strip(), condition.value
    if _NUMBER.fullmatch(left) and _NUMBER.fullmatch(right):
        order = Decimal(left).compare(Decimal(right))
        return negated != (
            (order == 0 and "=" in op) or (order < 0 and "<" in op) or (order > 0 and ">" in op)
        )
    if op == "=":
        return negated != (left == right)
    asked = f"{condition.name} is {shown_word(left)}: {condition.op} {shown_word(right)}"
    raise ArgumentError(f"{asked} needs numbers; text has = and != only")


@lru_cache(maxsize=64)  # called at each pass of its loop
def parse_foreach(text: str) -> tuple[str, tuple[str, ...]]:
    """`NAME VALUE…`, the values split by the shell's rules; there may be none.

    Raises:
        ArgumentError: no name, or an unclosed quote.
    """
    words = split_words(text)
    return variable_name(words[0] if words else Word("", 1)), tuple(word.text for word in words[1:])


def parse_test(text: str) -> TestHeader:
    """`NAME MIN [MAX=N] [TIME=DURATION] [STEP PROGRAM ARG…]`, split by the shell's rules.

    Raises:
        ArgumentError: an item is missing or invalid.
    """
    words = split_words(text)
    end = Word("", len(text.rstrip()) + 1)
    if not words or not words[0].text:
        raise expected_error("NAME MIN [MAX=N] [TIME=DURATION] [STEP PROGRAM …]", words[0] if words else end)
    minimum = _whole(words[1] if len(words) > 1 else end, "MIN, a whole number from 1")
    maximum, budget_s, place = None, None, 2
    while place < len(words):
        option, equals, value = words[place].text.partition("=")
        value_word = Word(value, words[place].column + len(option) + 1)
        if option == "MAX" and equals and maximum is None:
            maximum = _whole(value_word, f"a whole number from MIN, {minimum}", minimum)
        elif option == "TIME" and equals and budget_s is None:
            budget_s = _duration(value_word)
        else:
            break
        place += 1
    if place == len(words):
        return TestHeader(words[0].text, minimum, maximum, budget_s, None, (), "")
    step = _whole(words[place], "STEP, a whole number from 1")
    program = words[place + 1 :]
    if not program or not program[0].text:
        raise expected_error(
            "the program that STEP asks whether it is enough", program[0] if program else end
        )
    program_text = text[program[0].column - 1 :].strip()
    arguments = tuple(word.text for word in program)
    return TestHeader(words[0].text, minimum, maximum, budget_s, step, arguments, program_text)


def parse_metric(text: str) -> tuple[str, ...]:
    """`NAME[:UNIT] [sum|max|mean|min] REGEX`, or `NAME[:UNIT] FROM CLEANUP COMMAND [REGEX]`, as a tuple: name, unit
    (default 1), expression or JSON path (the rest of the line, without quotes around all of it), join of workers (empty
    if not given), and COMMAND if there is one.

    Raises:
        ArgumentError: the name is invalid or taken, or the expression is invalid.
    """
    name, unit = parse_metric_name(text)
    words = text.split(None, 1)
    if len(words) < 2:
        raise ArgumentError("expected a regular expression behind the name", len(text.rstrip()) + 1)
    rest = words[1]
    command, rest = _aside(rest, len(text) - len(rest))
    how, *more = rest.split(None, 1)
    if how in JOINS and more and not command:
        rest = more[0]
    else:
        how = ""
    written = rest.rstrip()
    regex = unquoted_text(written)
    begin = len(text) - len(rest) + 1 + (regex != written)
    try:
        check_place(regex)
    except ValueError as error:
        raise ArgumentError(str(error), begin) from None
    try:
        compile_pattern(regex)
    except PatternError as error:
        raise ArgumentError(f"no regular expression: {error}", begin + error.place) from None
    return (name, unit, regex, how, command) if command else (name, unit, regex, how)


def metric_text(name: str, unit: str, regex: str, how: str = "", command: str = "") -> str:
    """The text from which `parse_metric` makes these."""
    named = name if unit == "1" else f"{name}:{unit}"
    if not command:
        return " ".join(filter(None, (named, how, regex)))
    quoted = f'"{command}"' if '"' not in command else shlex.quote(command)
    return " ".join((named, "FROM CLEANUP", quoted, *([regex] if regex != FIRST_NUMBER else [])))


def _aside(text: str, before: int) -> tuple[str, str]:
    """The command of `FROM CLEANUP COMMAND [REGEX]` and the expression, by default the first number; for any other text
    an empty command and the text itself. `before`: number of characters before the text."""
    match = _ASIDE.match(text)
    if match is None:
        return "", text
    words = split_words(text[match.end() :])
    if not words or not words[0].text:
        raise ArgumentError(
            "expected a command in quotes behind FROM CLEANUP", before + len(text.rstrip()) + 1
        )
    regex = text[match.end() + words[1].column - 1 :] if len(words) > 1 else FIRST_NUMBER
    return words[0].text, regex


def parse_metric_name(text: str) -> tuple[str, str]:
    """Name and unit of a METRIC, whatever its expression.

    Raises:
        ArgumentError: the name is invalid or taken.
    """
    words = text.split(None, 1)
    word = Word(words[0] if words else "", len(text) - len(text.lstrip()) + 1)
    name, colon, unit = word.text.partition(":")
    if not NAME.fullmatch(name) or (colon and not unit):
        raise expected_error("NAME REGEX or NAME:UNIT REGEX", word)
    if is_join(unit or "1"):
        raise expected_error(f"NAME:UNIT {'|'.join(JOINS)} REGEX", word)
    if name in METRICS:
        raise ArgumentError(f"{name} is measured already; choose another name", word.column)
    return name, unit or "1"


def parse_cache(text: str) -> tuple[str, tuple[str, ...]]:
    """`WAY [PATH…]`: one of `CACHE_WAYS`, and the data set.

    Raises:
        ArgumentError: an unknown way, or one that needs a data set without one.
    """
    way, *paths = split_words(text) or [Word("", 1)]
    if way.text not in CACHE_WAYS:
        close = get_close_matches(way.text[:40].lower(), CACHE_WAYS, 1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise expected_error(f"one of {', '.join(CACHE_WAYS)}", way, hint)
    if way.text.startswith("remount") and not paths:
        raise expected_error(
            "the data set whose file system is mounted anew", Word("", len(text.rstrip()) + 2)
        )
    return way.text, tuple(path.text for path in paths)


def parse_quiet(text: str) -> list[str]:
    """`off`, or the operations to make the machine quiet, as in `etude quiet on`; no words change nothing.

    Raises:
        ArgumentError: there is no such operation.
    """
    words = text.split()
    if words == [QUIET_OFF]:
        return words
    from etude.machine.quiet.table import parse

    try:
        parse(words)
    except UsageError as error:
        raise ArgumentError(str(error), 0) from None
    return words


@dataclass(frozen=True, slots=True)
class CommandOnHosts:
    """A command and the hosts that it runs on; without hosts: only here."""

    hosts: tuple[str, ...]
    line: str
    accepted: tuple[int, ...] = ()
    """Exit statuses that are no failure, in addition to 0."""


@lru_cache(maxsize=256)
def parse_on_hosts(text: str) -> CommandOnHosts:
    """`[@HOST[,HOST…]] COMMAND`.

    Raises:
        ArgumentError: invalid or repeated hosts, or no command.
    """
    if not text.startswith("@"):
        return CommandOnHosts((), text)
    first, _, line = text.partition(" ")
    hosts = tuple(first[1:].split(","))
    if not all(map(HOST.fullmatch, hosts)):
        raise expected_error("@HOST[,HOST…] COMMAND", Word(first, 1))
    if len(set(hosts)) < len(hosts):
        raise expected_error("each host once", Word(first, 1))
    if not line.strip():
        raise ArgumentError(f"expected a command behind {first}", len(text) + 1)
    return CommandOnHosts(hosts, line.strip())


@lru_cache(maxsize=256)
def parse_exec(text: str) -> CommandOnHosts:
    """`[@HOST[,HOST…]] [ACCEPT STATUS[,STATUS…]] COMMAND`.

    Raises:
        ArgumentError: same as `parse_on_hosts`; a status outside 1 to 255, or no command.
    """
    placed = parse_on_hosts(text)
    first, *rest = placed.line.split(None, 2)
    if first != "ACCEPT":
        return placed
    column = len(text.rstrip()) - len(placed.line) + 1
    listed = rest[0] if rest else ""
    word = Word(listed, column + placed.line.find(listed, len(first)) if listed else len(text.rstrip()) + 1)
    what = "exit statuses from 1 to 255 with commas in between, such as ACCEPT 1"
    statuses = tuple(_whole(word._replace(text=each), what, 1, 255) for each in listed.split(","))
    if len(rest) < 2:
        raise ArgumentError(f"expected a command behind ACCEPT {listed}", len(text.rstrip()) + 1)
    return CommandOnHosts(placed.hosts, rest[1], statuses)


@dataclass(frozen=True, slots=True)
class CopyCommand:
    """Arguments of COPY: from here to hosts, or back from them. `target` is empty if not given."""

    hosts: tuple[str, ...]
    back: bool
    source: str
    target: str


def parse_copy(text: str) -> CopyCommand:
    """`PATH @HOST[,HOST…]:[PATH]`, or `@HOST[,HOST…]:PATH [PATH]`.

    Raises:
        ArgumentError: it is neither.
    """
    words = split_words(text)
    end = len(text.rstrip()) + 1
    there = [(number, _PLACE.fullmatch(word.text)) for number, word in enumerate(words)]
    placed = [(number, match) for number, match in there if match]
    if len(placed) != 1 or not 1 <= len(words) <= 2:
        raise ArgumentError("expected PATH @HOST:PATH, or @HOST:PATH [PATH]", end)
    number, match = placed[0]
    hosts, path = tuple(match[1].split(",")), match[2]
    if number == 1:
        return CopyCommand(hosts, False, words[0].text, path)
    if not path:
        raise ArgumentError("expected a path behind the host", end)
    return CopyCommand(hosts, True, path, words[1].text if len(words) == 2 else "")


def parse_timeout(text: str) -> float:
    """A duration, s.

    Raises:
        ArgumentError: it is invalid.
    """
    return _duration(Word(text.strip(), 1))


def parse_threads(text: str) -> int:
    """A whole number from 1 to `MAX_THREADS`.

    Raises:
        ArgumentError: it is invalid.
    """
    return _whole(Word(text.strip(), 1), f"a whole number from 1 to {MAX_THREADS}", 1, MAX_THREADS)


def number_text(value: float) -> str:
    """A number as a variable's value: without an exponent, and without a point if it is whole.

    Raises:
        ArgumentError: it is infinite or nan.
    """
    if not math.isfinite(value):
        raise ArgumentError(f"the result is {value}; expected a number")
    return plain(Decimal(repr(value)))


def _whole(word: Word, what: str, least: int = 1, most: int = 999_999_999) -> int:
    number = int(word.text) if _WHOLE.fullmatch(word.text) else 0
    if not least <= number <= most:
        raise expected_error(what, word)
    return number


def _duration(word: Word) -> float:
    with suppress(QuantityError):
        if (seconds := duration(word.text)) > 0:
            return seconds
    raise expected_error("a duration such as 90s, 5m, 2h or 30", word)
