"""What `getstats` and `graphit` do as programs of their own: streams, exit codes, and one line for what is wrong."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable


def run_program(name: str, main: Callable[[], int]) -> None:
    """Run `main` with streams that take any text, and end with its exit code (docs/exit-codes.md)."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
        code = 128 + 13
    except OSError as error:
        _drop_output()
        code = complain(name, f"standard output cannot be written: {error.strerror}", 5)
    except KeyboardInterrupt:
        code = complain(name, "ended by SIGINT", 130)
    sys.exit(code)


def _drop_output() -> None:
    """What could not be written must not be tried again at the very end: the code would be Python's own, 120."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complain(name: str, line: str, code: int) -> int:
    """Say in one line what is wrong; returns the code."""
    print(f"{name}: {' '.join(line.split())}", file=sys.stderr)
    return code
