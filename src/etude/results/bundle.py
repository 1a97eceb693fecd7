"""Bundles on disk: an archive or a directory with checksums, written reproducibly, verified, unpacked safely.

docs/howto/bundle.md describes the format. `etude.present.bundle` selects the contents of a bundle.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import signal
import sys
import tarfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import orjson

from etude.errors import EDITED, InputError, MachineRefuses
from etude.osutil.files import scratch_directory, try_lock
from etude.results.packing import (
    MEMBER_BYTES,
    SUMS,
    Unreadable,
    allowance,
    compressed_archive,
    each_file,
    line_of,
    sums_of,
)
from etude.results.writer import is_held_by_others

FORMAT, VERSION = "etude-bundle", 1
MAX_SHOWN = 3
_HEADERS_BYTES = 4096
"""Maximum bytes of a member's headers: Étude's names are short."""


@dataclass(frozen=True)
class Member:
    """A file of a bundle."""

    name: str
    """Path below the bundle's directory, with `/`."""
    read: Callable[[], Iterable[bytes]]
    """Returns its content, anew at each call."""


def member_of(name: str, text: str) -> Member:
    """A file with that text."""
    content = text.encode("utf-8", "surrogateescape")
    return Member(name, lambda: [content])


def write_bundle(target: Path, root: str, members: Sequence[Member], time_s: int) -> None:
    """Write the members and their checksums atomically: sorted, without an owner, all with the same time.

    target: a name that ends in .tar.gz, .tgz, .tar.zst or .tar, or a directory. root: the archive's directory.

    Raises:
        InputError: the target exists, or would exceed the readers' limits.
        MachineRefuses: it cannot be written, or a member changed meanwhile.
    """
    if os.path.lexists(target):
        raise InputError(f"{target}: exists already; remove it, or name another with -o")
    measured = [(member, *_measured(member)) for member in sorted(members, key=lambda m: m.name)]
    sums = member_of(SUMS, "".join(line_of(digest, member.name) for member, digest, _ in measured))
    files = sorted([*measured, (sums, *_measured(sums))], key=lambda entry: entry[0].name)
    beside = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        if suffix_of(target) is None:
            _write_directory(beside, files, time_s)
        else:
            _write_archive(beside, suffix_of(target) or "", root, files, time_s)
            _check_readable(target, beside.stat().st_size, [size for _, _, size in files])
        os.rename(beside, target)
    except OSError as error:
        raise _refused(target, error) from error
    finally:
        with suppress(OSError):
            beside.unlink() if not beside.is_dir() else shutil.rmtree(beside)


def _measured(member: Member) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    for part in member.read():
        digest.update(part)
        size += len(part)
    return digest.hexdigest(), size


def _copied(member: Member, digest: str, file: IO[bytes]) -> None:
    """Write the content, which must still have the same digest."""
    found = hashlib.sha256()
    for part in member.read():
        found.update(part)
        file.write(part)
    if found.hexdigest() != digest:
        raise _changed(member)


def _changed(member: Member) -> MachineRefuses:
    return MachineRefuses(f"{member.name}: changed while it was packed; wait until nothing writes there")


def _write_archive(
    path: Path, suffix: str, root: str, files: Sequence[tuple[Member, str, int]], time_s: int
) -> None:
    with open(path, "xb") as file:
        with (
            compressed_archive(file, suffix) as stream,
            tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as tar,
        ):
            for member, digest, size in files:
                info = tarfile.TarInfo(f"{root}/{member.name}")
                info.size, info.mtime, info.mode = size, time_s, 0o644
                content = _Content(member)
                try:
                    tar.addfile(info, cast(IO[bytes], content))
                except OSError as error:
                    if error.errno is not None:
                        raise
                    raise _changed(member) from None  # raised by tarfile: fewer bytes than announced
                if not content.is_whole(digest):
                    raise _changed(member)
        file.flush()
        os.fsync(file.fileno())


def _check_readable(target: Path, packed_bytes: int, sizes: Sequence[int]) -> None:
    """Refuse to write what `verify` would refuse."""
    if sum(sizes) + (MEMBER_BYTES + _HEADERS_BYTES) * len(sizes) > allowance(packed_bytes):
        raise InputError(
            f"{target}: is compressed too well to be read again; name a .tar with -o, or leave logs out by --no-logs"
        )


class _Content:
    """A member's content as a readable file, digested on the way."""

    def __init__(self, member: Member) -> None:
        self._parts = iter(member.read())
        self._part = io.BytesIO()
        self._digest = hashlib.sha256()

    def read(self, size: int) -> bytes:
        found = self._part.read(size)
        while len(found) < size:
            part = next(self._parts, None)
            if part is None:
                break
            self._digest.update(part)
            self._part = io.BytesIO(part)
            found += self._part.read(size - len(found))
        return found

    def is_whole(self, digest: str) -> bool:
        return not self.read(1) and self._digest.hexdigest() == digest


def _write_directory(path: Path, files: Sequence[tuple[Member, str, int]], time_s: int) -> None:
    path.mkdir()
    for member, digest, _ in files:
        place = path / member.name
        place.parent.mkdir(parents=True, exist_ok=True)
        with open(place, "xb") as file:
            _copied(member, digest, file)
            file.flush()
            os.fsync(file.fileno())
    for directory, _, names in os.walk(path, topdown=False):
        for name in (*names, ""):
            os.utime(os.path.join(directory, name), (time_s, time_s))


def verify(path: Path, into: Path | None = None) -> list[str]:
    """Differences from the checksums, a line each, the file's name first; empty if there are none.

    into: an empty directory into which the files are unpacked.

    Raises:
        InputError: it is no bundle. MachineRefuses: it cannot be unpacked there.
    """
    found: dict[str, str] = {}
    problems: list[str] = []
    sums = b""
    has_index = False
    try:
        for file in each_file(path, into):
            if file.problem:
                problems.append(f"{file.name}: {file.problem}")
                continue
            if file.name in found:
                problems.append(f"{file.name}: is in it twice")
            found[file.name] = file.digest
            sums = file.content if file.name == SUMS else sums
            has_index = has_index or file.name == INDEX
    except Unreadable as error:
        if SUMS not in found:
            raise InputError(f"{path}: is no bundle: {error}") from None
        problems.append(f"{path}: {error}")
    except OSError as error:
        raise _no_room(path, error, into) from error
    if SUMS not in found:
        raise InputError(f"{path}: is no bundle of Étude: it holds no {SUMS}")
    expected, wrong = sums_of(sums)
    if INDEX not in expected and not has_index:
        raise InputError(f"{path}: is no bundle of Étude: it holds no {INDEX}")
    del found[SUMS]
    problems += wrong
    problems += [f"{name}: is missing" for name in sorted(expected.keys() - found.keys())]
    problems += [f"{name}: is not in {SUMS}" for name in sorted(found.keys() - expected.keys())]
    problems += [
        f"{name}: differs from its checksum"
        for name in sorted(found.keys() & expected.keys())
        if found[name] != expected[name]
    ]
    return sorted(problems)


@contextmanager
def open_bundle(path: Path) -> Iterator[tuple[Path, ...]]:
    """The results directories of a bundle, verified, and unpacked into a private temporary directory.

    Raises:
        InputError: it is none, or does not match its checksums. MachineRefuses: there is no room to unpack it.
    """
    if path.is_dir():
        _insist(path, verify(path))
        yield _results(path, path)
        return
    with _ending_by_sigterm(), scratch_directory() as root:
        _insist(path, verify(path, root))
        yield _results(path, root)


@contextmanager
def bundles_opened(paths: Sequence[str]) -> Iterator[dict[str, str]]:
    """Labels by path of the results, those of bundles unpacked for the time of the block.

    Raises: same as `open_bundle`.
    """
    with ExitStack() as stack:
        labels: dict[str, str] = {}
        for path in paths:
            if not is_bundle(Path(path)):
                labels[path] = path
                continue
            found = stack.enter_context(open_bundle(Path(path)))
            labels |= {str(each): f"{path}: {each.name}" if len(found) > 1 else path for each in found}
        yield labels


@contextmanager
def _ending_by_sigterm() -> Iterator[None]:
    """Turns SIGTERM into an exception within the block, if it would end the process at once: unpacked
    files are removed."""
    plain = signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    if not plain or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _insist(path: Path, problems: Sequence[str]) -> None:
    if problems:
        more = f"; and {len(problems) - MAX_SHOWN} more" if len(problems) > MAX_SHOWN else ""
        raise InputError(
            f"{path}: is not as it was packed: {'; '.join(problems[:MAX_SHOWN])}{more} (etude bundle --verify)"
        )


def _results(path: Path, root: Path) -> tuple[Path, ...]:
    try:
        index: Any = orjson.loads((root / INDEX).read_bytes())
        if index["format"] != FORMAT or type(index["version"]) is not int:
            raise ValueError(f'expected "format": "{FORMAT}" and a version')
        if index["version"] > VERSION:
            raise InputError(
                f"{path}: version {index['version']} of the bundle format; this Étude reads up to {VERSION}: "
                "use a newer Étude"
            )
        names = [entry["name"] for entry in index["results"]]
        if not all(
            isinstance(name, str) and name not in ("", ".", "..") and "/" not in name for name in names
        ):
            raise ValueError("a result's name is none")
    except EDITED as error:
        raise InputError(f"{path}: {INDEX} cannot be read: {error}") from None
    return tuple(root / "results" / name for name in names)


@contextmanager
def no_writer(directory: Path) -> Iterator[None]:
    """Ensures that no Étude writes there within the block.

    Raises:
        InputError: there is no such directory. MachineRefuses: one is writing.
    """
    try:
        file = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise InputError(
            f"{directory}: cannot be read: {error.strerror}; expected a results directory"
        ) from None
    try:
        with suppress(OSError):  # a file system without locks
            if not try_lock(file, shared=True) and not is_held_by_others(file):
                raise MachineRefuses(f"{directory}: an Étude is writing here; wait until it has ended")
        yield
    finally:
        os.close(file)


def _refused(target: Path, error: OSError) -> MachineRefuses:
    return MachineRefuses(
        f"{target}: cannot be written: {error.strerror or error}; nothing was left there: name another place with -o"
    )


def _no_room(path: Path, error: OSError, into: Path | None) -> MachineRefuses:
    if into is None:
        return MachineRefuses(f"{path}: cannot be read: {error.strerror or error}")
    return MachineRefuses(
        f"{path}: cannot be unpacked: {error.strerror or error}; TMPDIR names a directory with more room"
    )


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
