"""Checks that root may act on a file: nobody else can have written or replaced it."""

from __future__ import annotations

import errno
import grp
import os
import pwd
import shutil
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from etude.errors import InputError

MAX_LINKS = 40
STANDARD_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


def check_trusted(path: str | os.PathLike[str]) -> None:
    """Refuse a file that anybody but root, or the user that this runs as, could have changed.

    Raises:
        InputError: it is missing, not a regular file, a link, another user's or writable by others, or a directory
        above it is another user's, or lets others replace it.
    """
    file = Path(path).absolute()
    judge = _Judge(file, frozenset((0, os.geteuid())))
    judge.check_directories(file.parent)
    judge.check_file(os.lstat, file)


def check_for_root(path: str | os.PathLike[str]) -> None:
    """Same as `check_trusted`, for files that root is about to act on; other users are not restricted. Afterwards
    nobody else can change the file. See `open_for_root`.

    Raises:
        InputError: same as `check_trusted`.
    """
    if os.geteuid() == 0:
        judge = _Judge(Path(path).absolute(), trusted_users())
        judge.check_file(os.lstat, judge.resolved())


def check_directory_for_root(path: str | os.PathLike[str], *, sticky: bool = False) -> None:
    """The same for a directory, to which others could add files; `sticky`: allowed if they cannot replace root's.

    Raises:
        InputError: same as `check_trusted`.
    """
    if os.geteuid() == 0:
        directory = Path(path).absolute()
        _Judge(directory, trusted_users()).check_directories(directory, sticky)


def check_results_for_root(path: str | os.PathLike[str]) -> None:
    """Refuse a directory to which root is about to write, if others may put links into it, or have put it into a sticky
    directory, such as /tmp, under a name that root would use. A directory in a user's own directory is not refused.

    Raises:
        InputError: it is one of these.
    """
    if os.geteuid() == 0:
        directory = Path(path).absolute()
        _Judge(directory, trusted_users()).check_planted(directory)


def open_for_root(path: str | os.PathLike[str]) -> int:
    """Descriptor of a file to be read and acted on. Root follows no link of others, and opens nothing that others could
    have written.

    Files of the user who called sudo are trusted too, since root acts for that user.

    Raises:
        InputError: same as `check_trusted`.
        OSError: it cannot be opened, or same as `open_user_file`.
    """
    if os.geteuid() != 0:
        return open_user_file(path)
    os.lstat(path)  # raises for a missing file
    judge = _Judge(Path(path).absolute(), trusted_users())
    file = judge.resolved()
    opened = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        judge.check_file(lambda _: os.fstat(opened), file)
    except BaseException:
        os.close(opened)
        raise
    return opened


def tool_environment() -> dict[str, str]:
    """Environment for Étude's own tools; root's PATH without directories that others could have written."""
    if os.geteuid() != 0:
        return dict(os.environ)
    named = [entry for entry in os.environ.get("PATH", "").split(":") if entry.startswith("/")]
    return os.environ | {"PATH": ":".join(dict.fromkeys([*filter(_is_roots, named), *STANDARD_PATH]))}


def tool_words(words: Sequence[str]) -> list[str]:
    """A command of Étude's own whose program is looked up in the PATH of `tool_environment`, but whose environment,
    which users' commands inherit from it, stays the user's.

    Raises:
        FileNotFoundError: its program is not found.
    """
    if os.geteuid() != 0:
        return list(words)
    program = shutil.which(words[0], path=tool_environment()["PATH"])
    if program is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), words[0])
    return [program, *words[1:]]


def _is_roots(directory: str) -> bool:
    try:
        check_directory_for_root(directory)
    except InputError:
        return False
    return True


def trusted_users() -> frozenset[int]:
    """Users whose files root trusts: root, the user who called sudo, and the owner of Étude's own code."""
    called = os.environ.get("SUDO_UID", "")
    return frozenset(
        (0, os.stat(__file__).st_uid, int(called) if called.isascii() and called.isdigit() else 0)
    )


def private_group_of_sudo() -> int | None:
    """The primary group of the user who called sudo, if it has no other members."""
    user = os.environ.get("SUDO_UID", "")
    if not (user.isascii() and user.isdigit()):
        return None
    try:
        group = pwd.getpwuid(int(user)).pw_gid
    except (KeyError, OverflowError):
        return None
    return group if _is_private(group, int(user)) else None


def _others_may_write(file: Path, found: os.stat_result) -> bool:
    """True if its mode lets users other than its owner write. A group that contains only the owner, as a umask of 002
    assumes, does not count; with an access control list, the group's mode stands for all users that the list names."""
    if not found.st_mode & stat.S_IWGRP:
        return bool(found.st_mode & stat.S_IWOTH)
    return bool(found.st_mode & stat.S_IWOTH) or not _is_private(found.st_gid, found.st_uid) or _has_acl(file)


def _has_acl(file: Path) -> bool:
    try:
        return "system.posix_acl_access" in os.listxattr(file)
    except OSError:
        return False


def _is_private(group: int, user: int) -> bool:
    """True if a group belongs to one user: same name, their primary group, no other members."""
    try:
        known, members = pwd.getpwuid(user), grp.getgrgid(group)
    except KeyError:
        return False
    alone = set(members.gr_mem) <= {known.pw_name}
    return alone and known.pw_gid == group and members.gr_name == known.pw_name


@dataclass(frozen=True)
class _Judge:
    """Checks one file, and refuses it if anybody but its owners could have changed it."""

    file: Path
    owners: frozenset[int]

    def check_file(self, look: Callable[[Path], os.stat_result], file: Path) -> None:
        """Check the file itself; its directories have been checked."""
        found = self._look(file, look)
        if stat.S_ISLNK(found.st_mode):
            raise self._refused("is a link: refused; name the file that it leads to")
        if not stat.S_ISREG(found.st_mode):
            raise self._refused("is no regular file: refused")
        if found.st_uid not in self.owners:
            raise self._refused(f"belongs to user {found.st_uid}, not to root: refused")
        if _others_may_write(file, found):
            raise self._refused("others may write to it: refused; chmod go-w it if you trust what it holds")

    def check_directories(self, directory: Path, sticky: bool = True) -> None:
        """Check the path from / downwards, along links: no directory or entry could be changed; `sticky`: others may
        add entries to the last one."""
        self._check_directory(self._walked(directory), sticky)

    def check_planted(self, directory: Path) -> None:
        """Refuse entries that others put into a sticky directory on the path, or a directory that others
        may write to."""
        for path in dict.fromkeys((directory, Path(os.path.realpath(directory)))):
            for place in (*reversed(path.parents), path):
                if not os.path.lexists(place):
                    return
                found, above = self._look(place, os.lstat), self._look(place.parent, os.stat)
                if (
                    above.st_mode & stat.S_ISVTX
                    and _others_may_write(place.parent, above)
                    and found.st_uid not in self.owners
                ):
                    raise self._refused(
                        f"{place} was put there by user {found.st_uid}: refused; name another"
                    )
        if _others_may_write(directory, self._look(directory, os.stat)):
            raise self._refused("others may put files into it: refused; chmod go-w it, or name another")

    def resolved(self) -> Path:
        """Path of the file with links resolved; all directories on the way are checked."""
        return self._walked(self.file)

    def _walked(self, path: Path) -> Path:
        at, names, links = Path("/"), list(path.parts[1:]), 0
        self._check_directory(at)
        while names:
            name = names.pop(0)
            if name == "..":
                at = at.parent
                continue
            found = self._look(at / name, os.lstat)
            if not stat.S_ISLNK(found.st_mode):
                at = at / name
                if names:
                    self._check_directory(at)
                continue
            links += 1
            if found.st_uid not in self.owners or links > MAX_LINKS:
                raise self._refused(f"{at / name} is a link that is not root's: refused")
            target = os.readlink(at / name)
            names = [part for part in target.split("/") if part not in ("", ".")] + names
            at = Path("/") if target.startswith("/") else at
        return at

    def _check_directory(self, directory: Path, sticky: bool = True) -> None:
        found = self._look(directory, os.lstat)
        if not stat.S_ISDIR(found.st_mode):
            raise self._refused(f"{directory} is no directory")
        if found.st_uid not in self.owners:
            raise self._refused(f"{directory} belongs to user {found.st_uid}, not to root: refused")
        # In a sticky directory others may add entries, but not replace root's files.
        if _others_may_write(directory, found) and not (sticky and found.st_mode & stat.S_ISVTX):
            raise self._refused(f"others may put files into {directory}: refused; chmod go-w it")

    def _look(self, path: Path, look: Callable[[Path], os.stat_result]) -> os.stat_result:
        try:
            return look(path)
        except FileNotFoundError:
            raise self._refused("no such file") from None
        except OSError as error:
            raise self._refused(f"cannot be looked at: {error.strerror}") from None

    def _refused(self, why: str) -> InputError:
        return InputError(f"{self.file}: {why}")


WRITE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND


def open_user_file(path: str | os.PathLike[str], flags: int = os.O_RDONLY) -> int:
    """Descriptor of a file, opened with `flags`. To be read, it is no FIFO, which may have no writer; a pipe of the
    shell's, as `<(…)` names it, has one. A FIFO of this user that is written waits for its reader, as in any program.

    Raises:
        OSError: it cannot be opened, is a FIFO to be read, or one that another user has made.
    """
    reads = flags & os.O_ACCMODE == os.O_RDONLY
    try:
        waits = _is_pipe(path, os.stat(path)) and not reads
    except FileNotFoundError:
        waits = False
    file = os.open(path, flags | os.O_CLOEXEC | (0 if waits else os.O_NONBLOCK), 0o666)
    if not waits:
        try:
            if _is_pipe(path, os.fstat(file)) and reads and not _is_anonymous_pipe(file):
                raise OSError(errno.EINVAL, "is a FIFO, not a file", os.fspath(path))
            os.set_blocking(file, True)
        except BaseException:
            os.close(file)
            raise
    return file


def write_user_file(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file's whole content. Raises OSError: same as `open_user_file`, or it cannot be written."""
    with open(open_user_file(path, WRITE), "wb") as file:
        file.write(content)


def _is_pipe(path: str | os.PathLike[str], found: os.stat_result) -> bool:
    if not stat.S_ISFIFO(found.st_mode):
        return False
    if found.st_uid not in trusted_users() | {os.geteuid()}:
        raise OSError(errno.EACCES, f"is a FIFO of user {found.st_uid}: refused", os.fspath(path))
    return True


def _is_anonymous_pipe(file: int) -> bool:
    return os.readlink(f"/proc/self/fd/{file}").startswith("pipe:")
