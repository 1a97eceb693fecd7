"""Readers of other benchmarking programs' files, and of our own, as one kind of table
(docs/howto/reading-other-tools.md).

A format is a module: `NAME`; `detect(path, head) -> bool`, with the first 64 KiB as head (empty for a directory); and
`read(path) -> Table`. One with `GENERAL = True` is tried only if no other accepts a file. Modules are found
as entry points of the group `etude.readers`, so that other packages can add theirs.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from etude.errors import EtudeError, InputError
from etude.results.bundle import is_bundle
from etude.results.engine_reports import is_report
from etude.results.readers.source import head_of

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from etude.results.table import Table

GROUP = "etude.readers"


class Reader(Protocol):
    """A format. Importing one is fast; polars is imported by `read`."""

    NAME: str

    def detect(self, path: Path, head: bytes) -> bool:
        """True if a file with these first bytes is of this format."""

    def read(self, path: Path) -> Table:
        """The file as a table. Raises InputError if it cannot be read as one."""


def read_table(path: str | os.PathLike[str]) -> Table:
    """Read a file or directory of any known format; `FORMAT:PATH` names the format.

    Raises:
        InputError: it cannot be read, no format or more than one claims it, or it is invalid in its format.
    """
    name, file = _split(os.fspath(path))
    points = _points()
    if name is not None:
        return _read(_load(name, points[name]), file)
    head = head_of(file)
    readers, broken = _all(points)
    claims = _claimants(readers, file, head)
    if len(claims) != 1:
        raise InputError(_unclear(file, [reader.NAME for reader in claims], sorted(points), head))
    table = _read(claims[0], file)
    return replace(table, warnings=(*table.warnings, *broken)) if broken else table


def formats_of(path: str | os.PathLike[str]) -> list[str]:
    """The names of the formats that claim a file or directory, or the one in its prefix.

    Raises InputError: it cannot be read.
    """
    name, file = _split(os.fspath(path))
    if name is not None:
        return [name]
    readers, _ = _all(_points())
    return sorted(reader.NAME for reader in _claimants(readers, file, head_of(file)))


def _split(path: str) -> tuple[str | None, Path]:
    name, colon, rest = path.partition(":")
    if colon and rest and name in _points() and not os.path.exists(path):
        return name, Path(rest)
    return None, Path(path)


def _points() -> dict[str, list[EntryPoint]]:
    from importlib.metadata import entry_points

    points: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=GROUP):
        points.setdefault(point.name, []).append(point)
    return points


def _all(points: dict[str, list[EntryPoint]]) -> tuple[list[Reader], list[str]]:
    readers, broken = [], []
    for name in sorted(points):
        try:
            readers.append(_load(name, points[name]))
        except InputError as error:
            broken.append(f"{error}; it was not used.")
    return readers, broken


def _load(name: str, points: list[EntryPoint]) -> Reader:
    if len({point.value for point in points}) > 1:
        given = " and ".join(sorted(point.value for point in points))
        raise InputError(f"reader {name!r} is given twice, by {given}; uninstall one of them")
    try:
        reader: Reader = points[0].load()
        if not (isinstance(reader.NAME, str) and callable(reader.detect) and callable(reader.read)):
            raise TypeError("it lacks NAME, detect or read")
    except Exception as error:  # a plug-in may be broken in any way
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise InputError(f"reader {name!r} ({points[0].value}) cannot be loaded: {reason}") from error
    return reader


def _claimants(readers: Sequence[Reader], file: Path, head: bytes) -> list[Reader]:
    """The readers that claim a file: a general one only if no other does."""
    special = [reader for reader in readers if not getattr(reader, "GENERAL", False)]
    return [reader for reader in special if _claims(reader, file, head)] or [
        reader for reader in readers if _claims(reader, file, head)
    ]


def _claims(reader: Reader, file: Path, head: bytes) -> bool:
    try:
        return bool(reader.detect(file, head))
    except EtudeError:
        raise
    except Exception as error:
        raise InputError(_mistake(reader, file, error)) from error


def _read(reader: Reader, file: Path) -> Table:
    head_of(file)  # reports missing files and pipes
    try:
        return reader.read(file)
    except EtudeError:
        raise
    except Exception as error:
        raise InputError(_mistake(reader, file, error)) from error


def _mistake(reader: Reader, file: Path, error: Exception) -> str:
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    return f"{file}: the reader {reader.NAME} has a mistake: {reason[:200]}; please report it"


_OTHERWISE = {
    b"\x1f\x8b": "is compressed; unpack it first, by gunzip",
    b"\x28\xb5\x2f\xfd": "is compressed; unpack it first, by unzstd",
    b"\xfd7zXZ": "is compressed; unpack it first, by unxz",
    b"\xff\xfe": "is UTF-16; make it UTF-8, by iconv -f UTF-16 -t UTF-8",
    b"\xfe\xff": "is UTF-16; make it UTF-8, by iconv -f UTF-16 -t UTF-8",
}
"""Descriptions of unreadable kinds by their first bytes, with the command that converts them."""


def _unclear(file: Path, claims: list[str], known: list[str], head: bytes) -> str:
    if claims:
        several = " and ".join(sorted(claims))
        return f"{file}: could be read as {several}; choose one, as in {sorted(claims)[0]}:{file}"
    if not head and not os.path.isdir(file):
        return f"{file}: is empty"
    if is_bundle(file) and not claims:
        return f"{file}: is a bundle, which stats and diff read; unpack it and name a directory below its results/"
    if is_report(file):
        return f"{file}: is the output of etude load or replay --json, which etude report reads"
    if (file / "claims.json").is_file():
        return (
            f"{file}: holds results of claims, a directory for each experiment: name one of them, or use "
            f"etude claims report {file}"
        )
    for begins, advice in _OTHERWISE.items():
        if head.startswith(begins):
            return f"{file}: {advice}"
    return (
        f"{file}: is of no known format ({', '.join(known)}); name one as in csv:{file}, or convert it to CSV"
    )
