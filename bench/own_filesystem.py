"""A file system of one's own for a measurement: empty, and not fragmented by what else is on the disk."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAMS = ("fallocate", "mkfs.ext4", "mount", "umount")


def possible() -> bool:
    """Root alone can mount one."""
    return os.geteuid() == 0 and all(shutil.which(program) for program in PROGRAMS)


@contextmanager
def own_filesystem(within: Path, size_bytes: int) -> Iterator[Path]:
    """A directory in a new ext4 in a file of `within`, until the end of the block; in `within` where that cannot be."""
    within.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fs-", dir=within) as directory:
        if not possible():
            yield Path(directory)
            return
        image, place = Path(directory, "image"), Path(directory, "place")
        place.mkdir()
        _run("fallocate", "-l", str(size_bytes), str(image))
        _run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", str(image))
        try:
            _run("mount", "-o", "loop", str(image), str(place))
        except subprocess.CalledProcessError:
            yield place
            return
        try:
            yield place
        finally:
            _run("umount", str(place))


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)
