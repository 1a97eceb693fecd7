"""Debian package and version of a file: from dpkg's own files, without starting it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from etude.machine import tree

INFO = "var/lib/dpkg/info"
STATUS = "var/lib/dpkg/status"
MAX_STATUS_BYTES = 64 << 20
PACKAGED_DIRECTORIES = ("/usr/", "/bin/", "/sbin/", "/lib", "/opt/", "/etc/")
NOT_PACKAGED_DIRECTORIES = ("/usr/local/",)
MULTI_PROGRAM_PACKAGES = ("coreutils", "binutils", "libc6")
"""Packages with programs and libraries of many names."""
HINTS = {
    "java": ("openjdk", "default-j"),
    "javac": ("openjdk", "default-j"),
    "ninja": ("ninja-build",),
    "node": ("nodejs",),
    "sh": ("dash",),
    "cargo": ("rustc",),
}
"""Packages of programs that are not named like them."""


class Package(NamedTuple):
    """An installed package."""

    name: str
    version: str | None


class Packages:
    """The packages of a system, read on first use and cached."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._status: bytes | None = None
        self._of: dict[tuple[str, bool], Package | None] = {}
        self._lists: list[str] | None = None
        self._age: int | None = None

    def of(self, path: str, *, everywhere: bool = True) -> Package | None:
        """The package of a file (no link); None if it belongs to none, or without dpkg.

        everywhere: also search packages that are not named like it, which takes 10 to 100 ms the first time.
        """
        self._forget_if_changed()
        key = (path, everywhere)
        if key not in self._of:
            self._of[key] = self._find(path, everywhere)
        return self._of[key]

    def _forget_if_changed(self) -> None:
        """Drop the cache if the status file was replaced by an installation or removal."""
        try:
            age = os.stat(os.path.join(self._root, STATUS)).st_mtime_ns
        except OSError:
            age = None
        if age != self._age:
            self._age, self._status, self._lists = age, None, None
            self._of.clear()

    def _find(self, path: str, everywhere: bool) -> Package | None:
        if (
            self._age is None
            or path.startswith(NOT_PACKAGED_DIRECTORIES)
            or not path.startswith(PACKAGED_DIRECTORIES)
        ):
            return None
        wanted = [f"\n{name}\n".encode() for name in _names_of(path)]
        if self._lists is None:
            self._lists = [name for name in tree.names(self._root, INFO) if name.endswith(".list")]
        likely = _likely(self._lists, path)
        for file in (*likely, *self._lists) if everywhere else likely:
            content = b"\n" + self._read(f"{INFO}/{file}") + b"\n"
            if any(name in content for name in wanted):
                name = file.removesuffix(".list")
                return Package(name.partition(":")[0], self._version(name))
        return None

    def _version(self, name: str) -> str | None:
        if self._status is None:
            self._status = b"\n" + self._read(STATUS)
        package, _, architecture = name.partition(":")
        start = -1
        while (start := self._status.find(f"\nPackage: {package}\n".encode(), start + 1)) >= 0:
            end = self._status.find(b"\n\n", start)
            entry = self._status[start : end if end >= 0 else None]
            version = re.search(rb"\nVersion: (\S+)", entry)
            if version and (not architecture or f"\nArchitecture: {architecture}".encode() in entry):
                return version[1].decode("utf-8", "replace")
        return None

    def _read(self, path: str) -> bytes:
        try:
            with open(os.path.join(self._root, path), "rb") as file:
                return file.read(MAX_STATUS_BYTES)
        except OSError:
            return b""


def _names_of(path: str) -> Iterator[str]:
    """Names under which dpkg may list a file: before the merge of /usr it was installed elsewhere."""
    yield path
    if re.match(r"/usr/(?:s?bin|lib\w*)/", path):
        yield path.removeprefix("/usr")
    elif re.match(r"/(?:s?bin|lib\w*)/", path):
        yield f"/usr{path}"


def _likely(lists: Sequence[str], path: str) -> list[str]:
    """Packages that are named like the file, or known to have many programs."""
    name = re.sub(r"^[a-z0-9_]+-linux-gnu(?:\w*)-", "", os.path.basename(path))
    stem = re.match(r"[A-Za-z]*", name)
    hints = (name, *HINTS.get(stem[0] if stem else "", ()), *MULTI_PROGRAM_PACKAGES)
    return [each for each in lists if each.startswith(hints)]
