"""Commands that Étude itself runs to their end: what they said, and in one line why they failed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    status: int
    """Its exit status; minus the number of the signal that ended it."""
    output: bytes
    errors: bytes

    @property
    def text(self) -> str:
        """Its output."""
        return self.output.decode("utf-8", "replace")

    @property
    def why(self) -> str:
        """The last line of its errors, else of its output, else its exit status."""
        for said in (self.errors, self.output):
            if lines := said.decode("utf-8", "replace").strip().splitlines():
                return lines[-1]
        return f"exit status {self.status}"


def run_to_end(
    words: Sequence[str],
    *,
    given: bytes | int = b"",
    into: int | None = None,
    environment: Mapping[str, str] | None = None,
    directory: str | None = None,
    patience_s: float | None = None,
    apart: bool = False,
    holding: Sequence[int] = (),
) -> Done:
    """Run a command, killed after `patience_s`. Its output goes to memory, not to a pipe, so that a process which it
    leaves behind does not hold it up.

    given: its input, or a file with it. into: a file that its output goes to instead. apart: in a session of its own,
    which Ctrl-C does not end halfway.
    holding: files that it keeps open while it runs.

    Raises:
        OSError: it cannot be started.
        subprocess.TimeoutExpired: it took longer.
    """
    output, errors = (os.fdopen(os.memfd_create(f"etude-{name}"), "w+b") for name in ("output", "errors"))
    with output, errors:
        done = subprocess.run(
            words,
            stdin=given if isinstance(given, int) else None if given else subprocess.DEVNULL,
            input=given if isinstance(given, bytes) and given else None,
            stdout=output if into is None else into,
            stderr=errors,
            env=environment,
            cwd=directory,
            timeout=patience_s,
            start_new_session=apart,
            pass_fds=holding,
            check=False,
        )
        output.seek(0)
        errors.seek(0)
        return Done(done.returncode, output.read(), errors.read())
