"""Error classes, each with the exit code of the command line (docs/reference/exit-codes.md)."""

from __future__ import annotations

from pathlib import Path

EDITED = (ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError, RecursionError)
"""Exceptions of code that parses JSON edited by hand: members that are missing or of another type, infinite numbers,
deep nesting."""


class EtudeError(Exception):
    """Base of errors that the user can act on: one line with what, where, and advice."""

    exit_code = 5
    detail = ""
    """Lines below the error's own line."""
    results: Path | None = None
    """Directory of earlier measurements, if any."""


class UsageError(EtudeError):
    """Invalid options or arguments."""

    exit_code = 2


class InputError(EtudeError):
    """An invalid file."""

    exit_code = 3


class NotComparable(InputError):
    """Results without a ratio to what is measured: other tests, units, or an unknown spread between sessions."""

    exit_code = 7


class CommandFailed(EtudeError):
    """A benchmark command, or a hook, failed and the policy is to stop."""

    exit_code = 4


class MachineRefuses(EtudeError):
    """A missing tool, no permission, no space, a host that cannot be reached."""

    exit_code = 5


def cannot_write(path: Path, error: OSError) -> MachineRefuses:
    """The error for an additional output file."""
    return MachineRefuses(f"{path}: cannot be written: {error.strerror}; name another file")


class Restarting(EtudeError):
    """The machine is to be restarted, and the experiment resumes afterwards; what was measured is on disk."""

    exit_code = 6

    def __init__(self, entry: str) -> None:
        """`entry`: entry of the boot loader; empty for its default."""
        super().__init__(f"restarting into {entry}" if entry else "restarting")
        self.entry = entry


class Interrupted(EtudeError):
    """Ended by a signal; what was measured is on disk."""

    def __init__(self, signal_number: int, message: str) -> None:
        super().__init__(message)
        self.exit_code = 128 + signal_number
