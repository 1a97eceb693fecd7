"""A script as a flat list of instructions with positions; and errors of scripts, with a caret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from etude.errors import InputError


class Op(StrEnum):
    """Operation of an instruction. Closers are resolved: a DONE became NEXT, END_TEST or END_INTERLEAVE, an
    ELSE a JUMP."""

    ECHO = "ECHO"
    SYSTEM = "SYSTEM"
    EVAL = "EVAL"
    STOP = "STOP"
    VAR = "VAR"
    VAREX = "VAREX"
    ENV = "ENV"
    ENVEX = "ENVEX"
    THREADS = "THREADS"
    HOSTS = "HOSTS"
    COPY = "COPY"
    FASTFAIL = "FASTFAIL"
    CHECKPOINT = "CHECKPOINT"
    REBOOT = "REBOOT"
    QUIET = "QUIET"
    TEST = "TEST"
    END_TEST = "END_TEST"
    PRESETUP = "PRESETUP"
    SETUP = "SETUP"
    EXEC = "EXEC"
    CLEANUP = "CLEANUP"
    POSTCLEANUP = "POSTCLEANUP"
    PURPOSE = "PURPOSE"
    EXPECT = "EXPECT"
    CACHE = "CACHE"
    BOOT = "BOOT"
    AGE = "AGE"
    FILL = "FILL"
    PRECONDITION = "PRECONDITION"
    TIMEOUT = "TIMEOUT"
    METRIC = "METRIC"
    INTERLEAVE = "INTERLEAVE"
    END_INTERLEAVE = "END_INTERLEAVE"
    IF = "IF"
    JUMP = "JUMP"
    WHILE = "WHILE"
    FOREACH = "FOREACH"
    FOR = "FOR"
    NEXT = "NEXT"


@dataclass(frozen=True, slots=True)
class Instruction:
    """One directive at its place.

    `text` is what follows the directive's word, without comments, joined, stripped, not yet expanded. `target` is an
    index into the program: where IF and WHILE go if their condition is false, FOREACH and FOR after their last
    value, JUMP always, NEXT back to its loop; TEST and INTERLEAVE to their own END_….
    """

    op: Op
    text: str
    file: str
    line: int
    target: int = -1


@dataclass(frozen=True)
class Program:
    """A compiled script with all that it includes.

    `digest` is the SHA-256 of every line of every file in the order of reading: CHECKPOINT compares it.
    `lines` are the physical lines of each file, for messages.
    """

    path: str
    instructions: tuple[Instruction, ...]
    digest: str
    lines: Mapping[str, tuple[str, ...]]


class ScriptError(InputError):
    """An invalid script: one line with the place and what was expected, then the line itself and a caret."""

    def __init__(self, message: str, file: str, line: int, text: str = "", column: int = 0) -> None:
        """`line` and `column` count from 1; column 0 stands for the whole line."""
        super().__init__(f"{file}:{line}: {message}")
        shown = text.expandtabs(1)
        under = " " * (max(column, 1) - 1)
        self.detail = f"{line:6} | {shown}\n       | {under}^" if shown.strip() else ""
