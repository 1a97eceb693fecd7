"""`--export` of `etude bench`: its verdict, and the formats of other programs, as files."""

from __future__ import annotations

import os
from pathlib import Path

from etude.errors import MachineRefuses, UsageError

SUMMARIES = {"csv": "csv", "json": "json", "markdown": "md"}
"""Formats of the verdict itself, and how the names of their files end."""

Export = tuple[str, Path | None]


def export_of(text: str) -> Export:
    """Format and file of one `--export`. Raises UsageError for a format that there is not."""
    from etude.export.formats import FORMATS

    form, _, file = text.partition("=")
    if form not in SUMMARIES and form not in FORMATS:
        known = ", ".join((*SUMMARIES, *(name for name in FORMATS if name not in SUMMARIES)))
        raise UsageError(f"--export {text}: expected {known}, with =FILE if need be")
    return form, Path(file) if file else None


def check_places(exports: list[Export], results: str | None) -> None:
    """Raise MachineRefuses for a file that could not be written, before anything is measured for it.

    results: the directory of the results, which is yet to be made.
    """
    for path in (path for _, path in exports if path is not None):
        if results is not None and path.parent == Path(results):
            continue
        why = None
        if path.is_dir():
            why = "is a directory"
        elif not path.parent.is_dir():
            why = f"there is no directory {path.parent}"
        elif not os.access(path if path.exists() else path.parent, os.W_OK):
            why = "permission denied"
        if why is not None:
            raise MachineRefuses(f"{path}: cannot be written: {why}; name another file")
