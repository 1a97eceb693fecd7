"""Recognition of bundles before opening: by the name of a file, or by the index in a directory."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

SUFFIXES = (".tar.gz", ".tgz", ".tar.zst", ".tar")
INDEX = "bundle.json"


def suffix_of(path: Path) -> str | None:
    """The kind of archive by its suffix; None for a directory."""
    return next((suffix for suffix in SUFFIXES if path.name.endswith(suffix) and path.name != suffix), None)


def is_bundle(path: Path) -> bool:
    """True if the path looks like a bundle: an archive by its name, or a directory with a bundle's index."""
    with suppress(OSError):
        return path.is_file() if suffix_of(path) else (path / INDEX).is_file()
    return False
