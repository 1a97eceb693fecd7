"""State of the files below a directory, without reading them: what has changed in it since."""

from __future__ import annotations

import json
import os
import stat
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

TreeState: TypeAlias = Mapping[str, tuple[int, int, int]]
"""Mode, size (B) and time of modification (ns since 1970) by path below the directory; of directories the mode."""
_BLOCK_BYTES = 512


def tree_state(root: Path, *, skip: Path | None = None) -> TreeState:
    """All files and directories below `root` but those below `skip`. Those that cannot be read are left out."""
    return {path: _state(found) for path, found in _walk(root, skip)}


def changed_paths(before: TreeState, after: TreeState, *, new: bool = True) -> tuple[str, ...]:
    """Paths that differ, in order; without `new`, files that are only in `after` do not count."""
    names = before.keys() | after.keys() if new else before.keys()
    return tuple(sorted(name for name in names if before.get(name) != after.get(name)))


def build_state(tree: Path) -> tuple[TreeState, int]:
    """State of a source tree after its build, without git's own files but HEAD; and the disk space of all, in bytes.

    git's own files change with each `git status`.
    """
    state: dict[str, tuple[int, int, int]] = {}
    size_bytes = 0
    for path, found in _walk(tree, None):
        size_bytes += found.st_blocks * _BLOCK_BYTES
        if path == ".git/HEAD" or path.partition("/")[0] != ".git":
            state[path] = _state(found)
    return state, size_bytes


def packed(state: TreeState) -> bytes:
    """A state as a file's content."""
    return zlib.compress(json.dumps(state).encode("ascii"), 1)


def unpacked(content: bytes) -> TreeState:
    """The state in a file. Raises ValueError: it is damaged."""
    try:
        told = json.loads(zlib.decompress(content))
        return {path: (int(mode), int(size), int(time)) for path, (mode, size, time) in told.items()}
    except (zlib.error, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(str(error)) from None


def _state(found: os.stat_result) -> tuple[int, int, int]:
    # A directory's size and time change with the files in it, each of which has a state of its own.
    whole = not stat.S_ISDIR(found.st_mode)
    return (found.st_mode, found.st_size, found.st_mtime_ns) if whole else (found.st_mode, 0, 0)


def _walk(root: Path, skip: Path | None) -> Iterator[tuple[str, os.stat_result]]:
    waiting = [""]
    while waiting:
        inside = waiting.pop()
        try:
            with os.scandir(root / inside) as entries:
                listed = list(entries)
        except OSError:
            continue
        for entry in listed:
            path = f"{inside}{entry.name}"
            try:
                found = entry.stat(follow_symlinks=False)
            except OSError:  # removed meanwhile
                continue
            if skip is not None and root / path == skip:
                continue
            yield path, found
            if stat.S_ISDIR(found.st_mode):
                waiting.append(f"{path}/")
