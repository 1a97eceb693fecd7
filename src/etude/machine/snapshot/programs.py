"""The programs of an experiment and the tools that build programs: their files, versions and digests."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import stat
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from etude.machine import tree

NOTE, INTERPRETER = 4, 3
MAX_HEADERS = 128
MAX_NOTE_BYTES = 4096
GNU_BUILD_ID = 3


class Elf(NamedTuple):
    """Properties of an ELF file."""

    build_id: str | None
    """The linker's digest of the content, hexadecimal."""
    loader: str | None
    """The program that maps it and its libraries; None if it is static."""


def read_elf(file: int) -> Elf | None:
    """Properties of the open file; None if it is no ELF file, or a damaged one.

    Source: System V ABI, chapters 4 and 5; elf(5).
    """
    try:
        return _read(file)
    except (OSError, struct.error, OverflowError, ValueError):
        return None


def _read(file: int) -> Elf | None:
    head = os.pread(file, 64, 0)
    if head[:4] != b"\x7fELF" or head[4:5] not in (b"\x01", b"\x02") or head[5:6] not in (b"\x01", b"\x02"):
        return None
    order = "<" if head[5] == 1 else ">"
    wide = head[4] == 2
    (start,) = struct.unpack_from(order + ("Q" if wide else "I"), head, 32 if wide else 28)
    size, count = struct.unpack_from(order + "HH", head, 54 if wide else 42)
    table = os.pread(file, size * min(count, MAX_HEADERS), start)
    build_id = loader = None
    for place in range(0, len(table) - (55 if wide else 31), size or len(table) + 1):
        (kind,) = struct.unpack_from(order + "I", table, place)
        offset, length = (
            (
                struct.unpack_from(order + "Q", table, place + 8)[0],
                struct.unpack_from(order + "Q", table, place + 32)[0],
            )
            if wide
            else (
                struct.unpack_from(order + "I", table, place + 4)[0],
                struct.unpack_from(order + "I", table, place + 16)[0],
            )
        )
        if kind == NOTE and build_id is None:
            build_id = _build_id(os.pread(file, min(length, MAX_NOTE_BYTES), offset), order)
        elif kind == INTERPRETER:
            found = os.pread(file, min(length, MAX_NOTE_BYTES), offset)
            loader = found.partition(b"\0")[0].decode("utf-8", "replace") or None
    return Elf(build_id, loader)


def _build_id(notes: bytes, order: str) -> str | None:
    place = 0
    while place + 12 <= len(notes):
        name_length, length, kind = struct.unpack_from(order + "III", notes, place)
        name_end = place + 12 + (name_length + 3) // 4 * 4
        if kind == GNU_BUILD_ID and notes[place + 12 : place + 16] == b"GNU\0":
            return notes[name_end : name_end + min(length, 64)].hex() or None
        place = name_end + (length + 3) // 4 * 4
    return None


Part = dict[str, Any]

HERE = Path("/")

VARIABLE = "APPROGRAMS"
"""Variable with names of further programs, separated by blanks or commas."""
TOOLS = (
    *("cc", "c++", "gcc", "g++", "clang", "clang++", "gfortran", "ld", "as", "ar", "make", "cmake", "ninja"),
    *("rustc", "cargo", "go", "java", "javac", "node", "python3", "perl", "ruby", "bash", "sh", "fio"),
)
INTERPRETERS = (
    *("python", "perl", "ruby", "node", "bash", "dash", "sh", "lua", "Rscript", "tclsh", "awk"),
    *("pypy",),
)
MAX_PROGRAMS = 50
MAX_DIGEST_BYTES = 64 << 20
"""Maximum size of a program that is digested; a larger one has only build id and size: a digest would take as long as
many trials."""
MAX_TOOL_DIGEST_BYTES = 2 << 20
"""Maximum size of a tool that is digested, if it has no build id."""
MAX_LINKS = 4
"""Maximum depth of interpreters of interpreters."""


@dataclass(frozen=True)
class Command:
    """Words to run; search: the PATH to look in, directory: working directory, unless it is our own."""

    words: tuple[str, ...]
    search: str | None = None
    directory: str | None = None


def programs(root: Path, commands: Iterable[Command], environment: Mapping[str, str]) -> Part:
    """Programs of the commands, their scripts, and those that the user names, by the name by which they were called.

    None for a program that does not exist; of a shell line only its first one is listed then.
    """
    found: Part = {}
    further = environment.get(VARIABLE, "").replace(",", " ").split()
    for command in (*commands, *(Command((name,)) for name in further)):
        search = command.search or environment.get("PATH") or os.defpath
        for place, name in enumerate(_names(command.words)):
            needed = place <= 1 or resolve(root, name, search, command.directory)
            if needed and name not in found and len(found) < MAX_PROGRAMS:
                _add(root, found, name, search, command.directory)
    return found


def toolchain(root: Path, environment: Mapping[str, str]) -> Part:
    """Build tools and interpreters of PATH, and the C library, by name; None for missing ones."""
    search = environment.get("PATH") or os.defpath
    found: Part = {}
    for name in TOOLS:
        path = resolve(root, name, search, None)
        found[name] = path and describe(root, path, MAX_TOOL_DIGEST_BYTES)
    shell = resolve(root, "sh", search, None)
    loader = _elf_of(root, shell) if shell else None
    found["libc"] = describe(root, loader.loader, MAX_TOOL_DIGEST_BYTES) if loader and loader.loader else None
    return found


def _names(words: Sequence[str]) -> Iterator[str]:
    """Program names in a command: the first word; for a shell line those of its commands, for an interpreter its
    script."""
    if not words:
        return
    first, *rest = words
    yield first
    base = os.path.basename(first)
    if not base.startswith(INTERPRETERS):
        return
    if base.endswith("sh") and rest[:1] == ["-c"] and len(rest) > 1:
        yield from _of_line(rest[1])
        return
    options = list(takewhile(lambda word: word.startswith("-"), rest))
    script = rest[len(options)] if len(options) < len(rest) else ""
    given = base.startswith("awk") or any(word[:2] in ("-c", "-m", "-e", "-E") for word in options)
    if not given and _SCRIPT.fullmatch(script):
        yield script


_SCRIPT = re.compile(r"[\w./+@=-]*[./][\w./+@=-]*")
"""Path of a script, as opposed to the text of a program."""


def _of_line(line: str) -> Iterator[str]:
    """The first word of each command of a shell line, without assignments, shell builtins and functions."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=_BETWEEN)
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:
        return
    begins, functions = True, set()
    before = ""
    for word, after in zip(words, [*words[1:], ""], strict=True):
        if _is_between(word):
            begins = begins or not set(word) & {"<", ">"}
        elif begins and not set(before) & {"<", ">"} and not _ASSIGNMENT.match(word) and word not in _LEADING:
            begins = False
            if after.startswith("()"):
                functions.add(word)
            elif word not in _SHELLS_OWN | functions and all(c not in word for c in "$`{}*?!"):
                yield word
        before = word if _is_between(word) else ""


def _is_between(word: str) -> bool:
    return bool(word) and set(word) <= set(_BETWEEN)


_BETWEEN = "();<>|&\n"
"""Characters that end a word, and a command unless they redirect."""
_ASSIGNMENT = re.compile(r"[^\W\d]\w*=")
_LEADING = frozenset(
    ("!", "do", "elif", "else", "exec", "if", "nohup", "then", "time", "until", "while", "{", "}")
)
"""Words before the first word of a command."""
_SHELLS_OWN = frozenset(
    (
        *(".", ":", "[", "alias", "bg", "break", "case", "cd", "command", "continue", "done", "echo", "esac"),
        *("eval", "exit", "export", "false", "fi", "for", "function", "local", "printf", "read", "return"),
        *("set", "shift", "source", "test", "trap", "true", "ulimit", "umask", "unset", "wait"),
    )
)


def _add(root: Path, found: Part, name: str, search: str, directory: str | None) -> None:
    """Add the program, and the interpreters that it names in its first line."""
    path = resolve(root, name, search, directory)
    found[name] = path and describe(root, path, MAX_DIGEST_BYTES)
    for _ in range(MAX_LINKS):
        interpreter = (found[name] or {}).get("interpreter")
        if interpreter is None or interpreter in found:
            return
        name, path = interpreter, resolve(root, interpreter, search, None)
        found[name] = path and describe(root, path, MAX_DIGEST_BYTES)


def resolve(root: Path, name: str, search: str, directory: str | None) -> str | None:
    """The path of a name by the rules of execvp(3); files that are not executable only with a `/`."""
    if "/" in name or "." in name:
        here = os.path.abspath(os.path.join(directory or "", name))
        if "/" in name or _is_file(root, here):
            return here if _is_file(root, here) else None
    for place in search.split(":"):
        path = os.path.join(place, name)
        if os.path.isabs(path) and _is_file(root, path) and os.access(_below(root, path), os.X_OK):
            return path
    return None


def _below(root: Path, path: str) -> str:
    return path if root == HERE else os.path.join(root, path.lstrip("/"))


def _is_file(root: Path, path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(_below(root, path)).st_mode)
    except (OSError, ValueError):
        return False


def describe(root: Path, path: str, largest: int) -> Part | None:
    """Description of the file that a path leads to: size, digest, build id, package and version; None if not readable.

    largest: maximum bytes of a file that is digested; for tools a build id replaces the digest.
    """
    real = _real(root, path)
    try:
        file = os.open(_below(root, real), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError):
        return None
    try:
        status = os.fstat(file)
        key = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, largest)
        known = _KNOWN.get(key)
        if known is None:
            known = _KNOWN[key] = _content(file, status.st_size, largest)
    except OSError:
        return None
    finally:
        os.close(file)
    package = _packages(root).of(real, everywhere=largest > MAX_TOOL_DIGEST_BYTES)
    return {
        "path": path,
        "file": real,
        "bytes": status.st_size,
        **known,
        "package": package and package.name,
        "version": package and package.version,
    }


def describe_again(program: Part) -> Part | None:
    """The program that the path of an earlier description leads to now; None if it cannot be opened."""
    path = program.get("path")
    return describe(HERE, path, MAX_DIGEST_BYTES) if isinstance(path, str) else None


_KNOWN: dict[tuple[int, ...], Part] = {}
"""Cached contents by device, inode, size, modification time and maximum size."""
_OF_ROOTS: dict[Path, Packages] = {}


def _packages(root: Path) -> Packages:
    return _OF_ROOTS.setdefault(root, Packages(root))


def _content(file: int, size: int, largest: int) -> Part:
    head = os.pread(file, 256, 0)
    elf = read_elf(file)
    spared = largest == MAX_TOOL_DIGEST_BYTES and elf is not None and elf.build_id is not None
    return {
        "sha256": None if size > largest or spared else _digest(file),
        "build_id": elf and elf.build_id,
        "interpreter": _interpreter(head),
    }


def _digest(file: int) -> str:
    digest = hashlib.sha256()
    place = 0
    while part := os.pread(file, 1 << 20, place):
        digest.update(part)
        place += len(part)
    return digest.hexdigest()


def _interpreter(head: bytes) -> str | None:
    """`python3` for a first line `#!/usr/bin/env python3`; else the path after `#!`."""
    if not head.startswith(b"#!"):
        return None
    words = head[2:].partition(b"\n")[0].decode("utf-8", "replace").split()
    if words and os.path.basename(words[0]) == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    return words[0] if words else None


def _elf_of(root: Path, path: str) -> Elf | None:
    try:
        file = os.open(_below(root, path), os.O_RDONLY | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        return read_elf(file)
    finally:
        os.close(file)


def _real(root: Path, path: str) -> str:
    found = os.path.realpath(_below(root, path))
    if root == HERE:
        return found
    base = os.path.realpath(root)
    return found.removeprefix(base) if found.startswith(base + "/") else path


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
