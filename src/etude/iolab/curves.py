"""The curves of a sweep: which program, with which options."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from etude.errors import UsageError
from etude.program import beside_engine, engine_path


@dataclass(frozen=True)
class Curve:
    """One way to do the same transfers. `program` is empty for that of the sweep."""

    name: str
    options: tuple[str, ...] = ()
    program: str = ""


KNOWN = {
    curve.name: curve
    for curve in (
        Curve("untouched"),
        Curve("touched", ("--touch",)),
        Curve("huge", ("--huge", "on")),
        Curve("direct", ("-d", "--touch")),
        Curve("pread", ("--method", "pread", "--touch")),
        Curve("random", ("--method", "pread", "--order", "random", "--touch")),
        Curve("mmap", ("--method", "mmap", "--touch")),
        Curve("io_uring", ("--method", "io_uring", "--touch")),
        Curve("static", (), "io-static"),
        Curve("dynamic", (), "io-dynamic"),
    )
}
"""Curves by name. untouched: as the lab's program has it; touched: every page of the buffer is written to
beforehand."""


_SHORT = ("-b", "-t", "-n", "-q", "-v", "-j", "-c", "-r", "-w", "-B")
_LONG = (
    "--buffer",
    "--total",
    "--iterations",
    "--quiet",
    "--verbose",
    "--json",
    "--bare",
    "--tail",
    "--cool",
)
THE_SWEEPS = frozenset((*_SHORT, *_LONG))
"""Options that say what is measured, or what is printed of it."""


def curve(text: str) -> Curve:
    """A known curve by its name, or `NAME=OPTIONS` with options of `etude io`.

    Raises:
        UsageError: it is neither.
    """
    name, equals, options = text.partition("=")
    if not equals:
        if name not in KNOWN:
            raise UsageError(f"curve {name!r}: expected NAME=OPTIONS, or one of {', '.join(KNOWN)}")
        return KNOWN[name]
    if not name.strip():
        raise UsageError(f"curve {text!r}: expected a name before =")
    try:
        words = tuple(shlex.split(options))
    except ValueError as error:
        raise UsageError(f"curve {text!r}: {error}") from None
    for word in words:
        if word in THE_SWEEPS or (not word.startswith("--") and word[:2] in THE_SWEEPS):
            raise UsageError(f"curve {text!r}: {word} is an option of the sweep, not of a curve")
    return Curve(name.strip(), words)


def command_of(chosen: Curve, program: str) -> list[str]:
    """The program of a curve, with its options still to come. Raises MachineRefuses where it is not installed."""
    name = chosen.program or program
    return [engine_path(), "io"] if name == "etude-engine" else [beside_engine(name)]
