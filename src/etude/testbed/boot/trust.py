"""Whether a file may be acted on by root: nobody else can have written it, or put it there."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from etude.errors import InputError

OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
MOST_LINKS = 40


def trusted(path: str | os.PathLike[str]) -> None:
    """Refuse a file that anybody but root, or the user that this runs as, could have changed.

    Raises:
        InputError: it is missing, no regular file, a link, another's or writable by others, or a directory above it is
            another's, or lets others put things in its place.
    """
    file = Path(os.path.abspath(path))
    _check_directories(file.parent, file)
    found = _look(file, file)
    if stat.S_ISLNK(found.st_mode):
        raise InputError(f"{file}: is a link: refused; name the file that it leads to")
    if not stat.S_ISREG(found.st_mode):
        raise InputError(f"{file}: is no regular file: refused")
    if _foreign(found):
        raise InputError(f"{file}: belongs to user {found.st_uid}, not to root: refused")
    if found.st_mode & OTHERS_MAY_WRITE:
        raise InputError(f"{file}: others may write to it: refused; chmod go-w it if you trust what it holds")


def _check_directories(directory: Path, file: Path) -> None:
    """From / downwards, along links: none could be changed, nor what stands in it be replaced."""
    at, names, links = Path("/"), list(directory.parts[1:]), 0
    _check_directory(at, file)
    while names:
        name = names.pop(0)
        if name == "..":
            at = at.parent
            continue
        found = _look(at / name, file)
        if not stat.S_ISLNK(found.st_mode):
            at = at / name
            _check_directory(at, file)
            continue
        links += 1
        if _foreign(found) or links > MOST_LINKS:
            raise InputError(f"{file}: {at / name} is a link that is not root's: refused")
        target = os.readlink(at / name)
        names = [part for part in target.split("/") if part not in ("", ".")] + names
        at = Path("/") if target.startswith("/") else at


def _check_directory(directory: Path, file: Path) -> None:
    found = _look(directory, file)
    if not stat.S_ISDIR(found.st_mode):
        raise InputError(f"{file}: {directory} is no directory")
    if _foreign(found):
        raise InputError(f"{file}: {directory} belongs to user {found.st_uid}, not to root: refused")
    # In a sticky directory others may add names, but not replace those of root's files.
    if found.st_mode & OTHERS_MAY_WRITE and not found.st_mode & stat.S_ISVTX:
        raise InputError(f"{file}: others may put files into {directory}: refused; chmod go-w it")


def _look(path: Path, file: Path) -> os.stat_result:
    try:
        return os.lstat(path)
    except FileNotFoundError:
        raise InputError(f"{file}: no such file") from None
    except OSError as error:
        raise InputError(f"{file}: cannot be looked at: {error.strerror}") from None


def _foreign(found: os.stat_result) -> bool:
    return found.st_uid not in (0, os.geteuid())
