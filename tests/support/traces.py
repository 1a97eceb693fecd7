"""Traces that the engine makes of text as strace writes it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from etude.iotrace.reader import Trace
from etude.program import engine_path
from support.places import DATA

COPY = DATA / "copy.strace"
"""Of one program and its child; written by hand."""
CALLS = 29
"""That stand in it."""

Make = Callable[[str], Trace]
"""A trace from lines."""


def imported(text: Path, trace: Path) -> Path:
    """Make a trace of a text; returns its path."""
    command = [engine_path(), "trace", "import", str(text), str(trace)]
    subprocess.run(command, check=True, capture_output=True)
    return trace
