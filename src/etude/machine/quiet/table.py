"""The operations, in the order in which they are done; and the parser of their names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches

from etude.errors import UsageError
from etude.machine.quiet.cpus import Governor, Interrupts, Shield, Turbo
from etude.machine.quiet.operation import Operation, Request
from etude.machine.quiet.services import Logins, Services, Ssh
from etude.machine.quiet.settings import Background, HugePages, Layout, Sampling, Swap, Watchdogs, Writeback

OPERATIONS: tuple[Operation, ...] = (
    Logins(),
    Ssh(),
    Services(),
    Swap(),
    Background(),
    Writeback(),
    Governor(),
    Turbo(),
    Layout(),
    HugePages(),
    Watchdogs(),
    Sampling(),
    Interrupts(),
    Shield(),
)
BY_NAME = {operation.name: operation for operation in OPERATIONS}
USUAL = "usual"
MAX_CPUS = 65536
_CPUS = re.compile(r"\d{1,5}(-\d{1,5})?(,\d{1,5}(-\d{1,5})?)*", re.ASCII)
_UNITS = re.compile(r"[\w@.:\\-]+(,[\w@.:\\-]+)*", re.ASCII)


def parse(words: Sequence[str], without: Sequence[str] = ()) -> Request:
    """The request of `usual`, NAME, NAME=VALUE and cpus=LIST; no words request nothing. `without`: excluded names.

    Raises:
        UsageError: an invalid word.
    """
    named: set[str] = set()
    values: dict[str, str] = {}
    cpus: set[int] = set()
    usual = False
    for word in words:
        name, equals, value = word.partition("=")
        if word == USUAL:
            usual = True
        elif name == "cpus" and equals:
            cpus |= _cpus(value)
        else:
            operation = _operation(name)
            named.add(name)
            if equals:
                values[name] = _choice(operation, value)
    left_out = {_operation(name).name for name in without}
    names = [
        operation.name
        for operation in OPERATIONS
        if (operation.name in named or (usual and operation.usual and (cpus or not operation.needs_cpus)))
        and operation.name not in left_out
    ]
    if cpus and not any(BY_NAME[name].needs_cpus for name in names):
        raise UsageError("cpus= is for irqs and shield: name one of them, or usual")
    for name in names:
        if BY_NAME[name].needs_cpus and not cpus:
            raise UsageError(
                f"{name} needs the CPUs that are to be kept free: add cpus=LIST, such as cpus=2-3"
            )
    return Request(tuple(names), frozenset(named), values, frozenset(cpus))


def all_of(cpus: frozenset[int] = frozenset()) -> Request:
    """A request of every operation, for the status."""
    return Request(tuple(BY_NAME), cpus=cpus)


def _operation(name: str) -> Operation:
    if name in BY_NAME:
        return BY_NAME[name]
    close = get_close_matches(name[:40], [*BY_NAME, USUAL], 1)
    hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(BY_NAME)}, and {USUAL}"
    raise UsageError(f"nothing named {name[:40]!r} can be made quiet; {hint}")


def _choice(operation: Operation, value: str) -> str:
    if operation.name == "services" and _UNITS.fullmatch(value):
        return value
    if value in operation.choices and operation.name != "services":
        return value
    offered = f"one of {', '.join(operation.choices)}" if operation.choices else "no value: it takes none"
    raise UsageError(f"{operation.name}={value[:40]}: expected {offered}")


def _cpus(text: str) -> set[int]:
    found: set[int] = set()
    for part in text.split(",") if _CPUS.fullmatch(text) else ():
        first, _, last = part.partition("-")
        if int(last or first) < int(first):
            break
        found |= set(range(int(first), int(last or first) + 1))
    else:
        if found and max(found) < MAX_CPUS:
            return found
    raise UsageError(f"cpus={text[:40]}: expected a list of CPUs, such as 1,4-7")
