"""Archives as streams: compressing, reading untrusted ones, and lists of checksums in the format of
`sha256sum`."""

from __future__ import annotations

import errno
import gzip
import hashlib
import os
import re
import shutil
import stat
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from etude.errors import InputError, MachineRefuses
from etude.results.regular import open_regular

SUMS = "SHA256SUMS"
_SUM = re.compile(r"(\\?)([0-9a-f]{64}) [ *](.+)", re.DOTALL)
_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r"}

MAX_SUMS_BYTES = 64 << 20
MAX_MEMBERS, MAX_BYTES = 1_000_000, 1 << 40
"""Limits of an unpacked archive: a larger one is no bundle of results, whatever its compressed size."""
FREE_BYTES, MAX_RATIO, MEMBER_BYTES = 1 << 30, 200, 1 << 14
"""An archive may unpack to `FREE_BYTES` plus `MAX_RATIO` its own size; a member counts `MEMBER_BYTES`
more than its content, for its processing time."""
MAX_HEADER_BYTES = 1 << 20
"""Limit of headers before a member's content: the module `tarfile` holds all of it in memory."""
_PART = 1 << 20
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


class Unreadable(Exception):
    """An invalid or truncated archive."""


@dataclass(frozen=True)
class ArchiveMember:
    """A file of an archive or directory."""

    name: str
    """Path below the bundle's directory; an unsafe one is unchanged."""
    digest: str = ""
    content: bytes = b""
    """Contents, for the list of checksums only."""
    problem: str = ""
    """Reason why it was not read."""


@contextmanager
def compressed_archive(file: IO[bytes], suffix: str) -> Iterator[IO[bytes]]:
    """A stream whose content is compressed into the file, without a name or a time of day.

    Raises:
        MachineRefuses: zstandard is not installed.
    """
    if suffix == ".tar":
        yield file
    elif suffix == ".tar.zst":
        with _zstandard().ZstdCompressor(level=12).stream_writer(file, closefd=False) as stream:
            yield stream
    else:
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=9, mtime=0) as stream:
            yield cast(IO[bytes], stream)


def _zstandard() -> Any:
    try:
        import zstandard
    except ImportError:
        raise MachineRefuses("the Python package zstandard is not installed; use .tar.gz") from None
    return zstandard


def each_file(path: Path, into: Path | None = None) -> Iterator[ArchiveMember]:
    """The files of a bundle, in their order; unpacked below `into`, if that is given.

    Only regular files below the bundle's own directory are read: all others have a problem.

    Raises:
        Unreadable: it is no archive, or truncated. InputError: it does not exist.
        OSError: a file cannot be read, or not be written below `into`.
    """
    if path.is_dir():
        yield from _of_directory(path)
        return
    try:
        file = open_regular(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    with file:
        size = os.fstat(file.fileno()).st_size
        yield from _of_archive(_Metered(_decompressed(file), allowance(size)), into)


def allowance(packed_bytes: int) -> int:
    """Maximum bytes that an archive of that size may unpack to, `MEMBER_BYTES` for each member included."""
    return FREE_BYTES + MAX_RATIO * packed_bytes


class _Metered:
    """A decompressed stream with a limit: a few bytes can unpack to any number."""

    def __init__(self, stream: IO[bytes], left_bytes: int) -> None:
        self._stream = stream
        self._left_bytes = left_bytes
        self._until_member = MAX_HEADER_BYTES

    def read(self, size: int) -> bytes:
        """Same as `read` of a file. Raises Unreadable beyond the limit."""
        data = self._stream.read(size)
        self._until_member -= len(data)
        if self._until_member < 0:
            raise Unreadable(f"a header in it is larger than {MAX_HEADER_BYTES >> 20} MiB")
        self._take(len(data))
        return data

    def begin_member(self, size: int) -> None:
        """Announce `size` bytes of content, followed by a header."""
        self._until_member = size + MAX_HEADER_BYTES
        self._take(MEMBER_BYTES)

    def _take(self, size: int) -> None:
        self._left_bytes -= size
        if self._left_bytes < 0:
            raise Unreadable(f"it unpacks to more than {FREE_BYTES >> 30} GiB and {MAX_RATIO} times its size")


def _of_directory(path: Path) -> Iterator[ArchiveMember]:
    for directory, directories, names in os.walk(path):
        directories.sort()
        here = os.path.relpath(directory, path)
        links = [name for name in directories if os.path.islink(os.path.join(directory, name))]
        for name in sorted([*names, *links]):
            place = os.path.join(directory, name)
            told = name if here == "." else f"{here}/{name}"
            if not stat.S_ISREG(os.lstat(place).st_mode):
                yield ArchiveMember(told, problem="is no plain file")
                continue
            try:
                file = open_regular(place, follow=False)
            except OSError as error:
                yield ArchiveMember(told, problem=f"cannot be read: {error.strerror}")
                continue
            with file:
                yield _read(told, file, None)


def _decompressed(file: IO[bytes]) -> IO[bytes]:
    head = file.read(4)
    file.seek(0)
    if head.startswith(_GZIP):
        return cast(IO[bytes], gzip.GzipFile(fileobj=file))
    if head == _ZSTD:
        return cast(IO[bytes], _zstandard().ZstdDecompressor().stream_reader(file, read_across_frames=True))
    return file


def _of_archive(stream: _Metered, into: Path | None) -> Iterator[ArchiveMember]:
    root: str | None = None
    left_bytes = MAX_BYTES if into is None else min(MAX_BYTES, shutil.disk_usage(into).free)
    with _said_as_unreadable(), tarfile.open(fileobj=cast(IO[bytes], stream), mode="r|") as tar:
        for number, info in enumerate(tar, 1):
            tar.members.clear()  # type: ignore[attr-defined]  # it would store everything that it has read
            stream.begin_member(max(info.size, 0))
            left_bytes -= max(info.size, 0)
            if number > MAX_MEMBERS:
                raise Unreadable(f"it holds more than {MAX_MEMBERS:,} members")
            if left_bytes < 0:
                raise OSError(errno.ENOSPC, "its files are larger than the room that there is, or than 1 TiB")
            name = info.name.removeprefix("./")
            if info.isdir() and not _is_unsafe(name):
                continue
            top, _, below = name.partition("/")
            problem = _problem(info, name, below, root)
            if problem:
                yield ArchiveMember(info.name, problem=problem)
                continue
            root = top
            content = tar.extractfile(info)
            assert content is not None
            if into is None:
                yield _read(below, content, None)
                continue
            place = into / below
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                with open(place, "xb") as file:
                    yield _read(below, content, file)
            except (FileExistsError, NotADirectoryError, IsADirectoryError):
                yield ArchiveMember(info.name, problem="is in it twice")


def _problem(info: tarfile.TarInfo, name: str, below: str, root: str | None) -> str:
    if _is_unsafe(name):
        return "has a name that leads out of the bundle"
    if not info.isreg() or info.issparse():
        return "is no plain file"
    if not below or (root is not None and name.partition("/")[0] != root):
        return "lies outside of the bundle's directory"
    return ""


def _is_unsafe(name: str) -> bool:
    return (
        name.startswith("/")
        or "\0" in name
        or any(part in ("", ".", "..") for part in name.rstrip("/").split("/"))
    )


@contextmanager
def _said_as_unreadable() -> Iterator[None]:
    broken: tuple[type[Exception], ...] = (
        tarfile.TarError,
        EOFError,
        zlib.error,
        gzip.BadGzipFile,
        ValueError,
        OverflowError,
        RecursionError,  # headers before headers
    )
    try:
        yield
    except broken as error:
        raise Unreadable(f"it cannot be read as an archive ({error or 'it ends too soon'})") from None
    except Exception as error:
        if type(error).__name__ == "ZstdError":
            raise Unreadable(f"it cannot be read as an archive ({error})") from None
        raise


def _read(name: str, source: IO[bytes], target: IO[bytes] | None) -> ArchiveMember:
    digest, kept, size = hashlib.sha256(), [], 0
    while part := source.read(_PART):
        digest.update(part)
        size += len(part)
        if target is not None:
            target.write(part)
        if name == SUMS:
            if size > MAX_SUMS_BYTES:
                raise OSError(errno.EFBIG, f"{SUMS} is too large")
            kept.append(part)
    return ArchiveMember(name, digest.hexdigest(), b"".join(kept))


def line_of(digest: str, name: str) -> str:
    """A file's line. A name with a backslash or a line end is escaped, and the line begins with a backslash."""
    escaped = "".join(_ESCAPES.get(character, character) for character in name)
    return f"{'' if escaped == name else chr(92)}{digest}  {escaped}\n"


def sums_of(content: bytes) -> tuple[dict[str, str], list[str]]:
    """The digests by name, and errors of the list, a line each."""
    found: dict[str, str] = {}
    wrong = []
    lines = content.decode("utf-8", "surrogateescape").split("\n")
    for number, line in enumerate(lines, 1):
        if not line and number == len(lines):
            continue
        match = _SUM.fullmatch(line)
        if match is None:
            wrong.append(f"{SUMS}, line {number}: is no checksum")
            continue
        name = _unescaped(match[3]) if match[1] else match[3]
        if name in found:
            wrong.append(f"{name}: is in {SUMS} twice")
        found[name] = match[2]
    return found, wrong


def _unescaped(name: str) -> str:
    back = {escape[1]: character for character, escape in _ESCAPES.items()}
    return re.sub(r"\\(.)", lambda m: back.get(m[1], m[0]), name)
