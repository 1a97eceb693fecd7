"""Everything that can be seen of a directory, so that two looks at it show the least change."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path


def snapshot(root: Path) -> dict[str, tuple[object, ...]]:
    """Mode, owner, size, times of modification and of change, and content, by path; of directories too, so that a file
    that was made and removed again shows."""
    found = {"": _facts(str(root))}
    for place, directories, files in os.walk(root):
        for name in (*directories, *files):
            path = os.path.join(place, name)
            found[os.path.relpath(path, root)] = _facts(path)
    return found


def _facts(path: str) -> tuple[object, ...]:
    told = os.lstat(path)
    content = ""
    if stat.S_ISLNK(told.st_mode):
        content = os.readlink(path)
    elif stat.S_ISREG(told.st_mode):
        with open(path, "rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
    owner = (told.st_uid, told.st_gid, told.st_ino, told.st_nlink)
    return (told.st_mode, *owner, told.st_size, told.st_mtime_ns, told.st_ctime_ns, content)
