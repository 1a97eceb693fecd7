"""Parameter sweeps: `-P name=a,b,c` and `-P threads=1..32*2`, in all combinations."""

from __future__ import annotations

import itertools
import math
import re
import shlex
from collections.abc import Container, Mapping, Sequence
from decimal import Decimal

from etude.errors import UsageError

Sweep = tuple[str, tuple[str, ...]]
"""A parameter and its values."""

_NUMBER = r"-?[0-9]+(?:\.[0-9]+)?"
_RANGE = re.compile(rf"({_NUMBER})\.\.({_NUMBER})(?:([*+])({_NUMBER}))?")
_NAME = re.compile(r"[A-Za-z_]\w*")
MAX_VALUES = 10_000
_TOKEN = re.compile(r"""\{(\w+)\}|\\[\\'"]|['"]""")
"""A name in braces, or a character that starts or ends quotes."""


def parse_parameter(text: str) -> Sweep:
    """Name and values of one `-P`. Raises UsageError: it is neither a list nor a finite range."""
    name, equals, values = text.partition("=")
    if not equals or not _NAME.fullmatch(name) or not values:
        raise UsageError(
            f"-P {text}: expected NAME=A,B,C or NAME=FIRST..LAST, with *FACTOR or +STEP if need be"
        )
    match = _RANGE.fullmatch(values)
    if match:
        return name, _range(text, *match.groups())
    found = tuple(values.split(","))
    if ".." in values or "" in found:
        raise UsageError(
            f"-P {text}: {values!r} is neither a list A,B,C nor a range such as 1..32*2 or 0..10+2"
        )
    return name, found


def parse_list(name: str, values: str) -> Sweep:
    """Name and values of one `-L`: separated by commas, except those after a backslash. Raises UsageError: the name is
    invalid."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"-L {name} {values}: expected NAME A,B,C with a name of letters, digits and _")
    parts = re.findall(r"(?:^|,)((?:\\[,\\]|[^,])*)", values)
    return name, tuple(re.sub(r"\\([,\\])", r"\1", part) for part in parts)


def _range(text: str, first: str, last: str, sign: str | None, step: str | None) -> tuple[str, ...]:
    value, end, by = Decimal(first), Decimal(last), Decimal(step or 1)
    grows = (by > 1 and value > 0) if sign == "*" else by > 0
    if not grows or value > end:
        raise UsageError(f"-P {text}: never gets from {first} to {last}; the step must lead there")
    found = []
    while value <= end:
        found.append(format(value.normalize(), "f"))
        value = value * by if sign == "*" else value + by
        if len(found) > MAX_VALUES:
            raise UsageError(f"-P {text}: has more than {MAX_VALUES} values; use a larger step")
    return tuple(found)


def combinations(parsed: Sequence[Sweep]) -> list[dict[str, str]]:
    """Every combination of the values of all parameters, the last varying fastest; one empty combination for none.
    Raises UsageError: a name occurs twice, or there are too many."""
    names = [name for name, _ in parsed]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"-P {name}: stands twice; give all its values in one")
    count = math.prod(len(values) for _, values in parsed)
    if count > MAX_VALUES:
        raise UsageError(f"-P: {count:,} combinations; at most {MAX_VALUES:,} can be run")
    return [dict(zip(names, values, strict=True)) for values in itertools.product(*(v for _, v in parsed))]


def substitute(text: str, parameters: Mapping[str, str], words: Container[str] = ()) -> str:
    """`{name}` replaced by its value; other braces are unchanged. `words`: parameters whose values are quoted as one
    shell word each, within the text's quotes as well; an empty value becomes no word."""
    around = ""

    def replaced(found: re.Match[str]) -> str:
        nonlocal around
        token, name = found[0], found[1]
        if name is not None:
            value = parameters.get(name)
            return token if value is None else _as_word(value, around) if name in words else value
        if around == "'":
            around = "" if token.endswith("'") else around
        elif token == around:
            around = ""
        elif not around and len(token) == 1:
            around = token
        return token

    return _TOKEN.sub(replaced, text)


def _as_word(value: str, around: str) -> str:
    if around == "'":
        return value.replace("'", "'\\''")
    if around == '"':
        return re.sub(r'([$`"\\])', r"\\\1", value)
    return shlex.quote(value) if value else ""


def check_used(parameters: Sequence[Mapping[str, str]], texts: Sequence[str]) -> None:
    """Raise UsageError for a parameter that occurs in no command or hook: every combination would be the same."""
    for name in parameters[0] if parameters else ():
        if not any("{" + name + "}" in text for text in texts):
            raise UsageError(f"-P {name}: no command or hook contains {{{name}}}")
