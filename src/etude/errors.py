"""What can go wrong, each with the exit code that the command line gives it (docs/exit-codes.md)."""

from __future__ import annotations

from pathlib import Path

EDITED = (ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError, RecursionError)
"""Exceptions of code that takes apart JSON which somebody edited: members that are missing or of another type,
numbers that are infinite, brackets within brackets."""


class EtudeError(Exception):
    """Something the user can act on: one line that says what, where and what to do."""

    exit_code = 5
    detail = ""
    """Lines that stand below the error's own."""
    results: Path | None = None
    """The directory of what was measured before, where something was."""


class UsageError(EtudeError):
    """Options or arguments that cannot be meant."""

    exit_code = 2


class InputError(EtudeError):
    """A file that is not what it should be."""

    exit_code = 3


class NotComparable(InputError):
    """Results that have no ratio with what is measured: other tests, units, or an unknown spread between sessions."""

    exit_code = 7


class CommandFailed(EtudeError):
    """A benchmark command, or a hook, failed and the policy is to stop."""

    exit_code = 4


class MachineRefuses(EtudeError):
    """A missing tool, no permission, no space, a host that cannot be reached."""

    exit_code = 5


def cannot_write(path: Path, error: OSError) -> MachineRefuses:
    """The one line for a file that was asked for beside the results."""
    return MachineRefuses(f"{path}: cannot be written: {error.strerror}; name another file")


class Restarting(EtudeError):
    """The machine is to be restarted, and the experiment goes on afterwards; what was measured is on disk."""

    exit_code = 6

    def __init__(self, entry: str) -> None:
        """`entry`: of the boot loader; empty for its default."""
        super().__init__(f"restarting into {entry}" if entry else "restarting")
        self.entry = entry


class Interrupted(EtudeError):
    """Ended by a signal; what was measured is on disk."""

    def __init__(self, signal_number: int, message: str) -> None:
        super().__init__(message)
        self.exit_code = 128 + signal_number
