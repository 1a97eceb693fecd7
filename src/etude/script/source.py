"""Logical lines of a script's files: comments removed, lines joined, includes spliced in, each with its place.

INCLUDE, OPTINCLUDE and INCLUDEPATH are processed here, in one pass over all files before anything else: they are
not expanded.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from etude.errors import InputError
from etude.osutil.trust import open_for_root, open_user_file
from etude.script.directive_words import shown_word
from etude.script.environment import shipped_directory
from etude.script.program import ScriptError

INCLUDES = ("INCLUDE", "OPTINCLUDE", "INCLUDEPATH")

# Against accidental bombs: if each file includes the next one twice, they grow by powers of two.
MAX_BYTES = 64 << 20
MAX_FILES = 10_000
MAX_NESTED = 64

_COMMENT = re.compile(r"(?<!\\)#.*", re.DOTALL)
_TOGETHER = re.compile(r"""\\.|(?<!\w)'[^']*'|"(?:[^"\\]|\\.)*"|\$\{[^}]*\}""", re.DOTALL)
"""Quoted text of a shell: a # in it is no comment."""
_PROSE = ("ECHO", "PURPOSE", "EXPECT")
"""Directives whose text is prose, with apostrophes."""
_VARIABLE = re.compile(r"%|\$[A-Za-z_][A-Za-z0-9_]*\$")


class LogicalLine(NamedTuple):
    """One directive: without comment and outer blanks, joined; `line` is its first physical one, from 1."""

    text: str
    file: str
    line: int


@dataclass(frozen=True)
class Source:
    """All logical lines in order, with their origin.

    `files` are the physical lines of each file by its name in messages. `digest` is the SHA-256 of all files in the
    order of reading, each after its length: a file included twice counts twice.
    """

    lines: Sequence[LogicalLine]
    files: Mapping[str, tuple[str, ...]]
    digest: str


def read_lines(path: str | Path, search: Sequence[str | Path] = ()) -> Source:
    """The lines of a script and of all that it includes.

    A file is looked for beside the one that includes it, then in the directories of INCLUDEPATH, then in `search`, then
    beside the script itself.

    Raises:
        InputError: the script cannot be read.
        ScriptError: a file is no text, or an INCLUDE is invalid.
    """
    reader = _Reader(search)
    try:
        content, identity = _content(str(path))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; expected a script") from None
    reader.main = [os.path.dirname(path)]
    reader.splice(content, str(path), os.path.dirname(path), identity)
    return reader.source()


def read_stored(files: Mapping[str, Sequence[str]]) -> Source:
    """The lines of a stored script and its includes (`Source.files`, the script first).

    Nothing is read from disk. A file is looked for beside its includer, in INCLUDEPATH, and then among all.

    Raises:
        ScriptError: it is invalid, or an INCLUDE is not among the files.
    """
    reader = _Reader(())
    reader.stored = files
    path = next(iter(files))
    content, identity = reader.content_of(path)
    reader.splice(content, path, os.path.dirname(path), identity)
    return reader.source()


def read_text(text: str, name: str) -> Source:
    """The lines of a script without a file; its includes are looked for in the working directory.

    Raises:
        ScriptError: it is no text, or an INCLUDE is invalid.
    """
    reader = _Reader(())
    reader.reserved = name
    reader.splice(text.encode("utf-8", "surrogatepass"), name, "", None)
    return reader.source()


def error_at(
    files: Mapping[str, tuple[str, ...]], file: str, line: int, message: str, text: str = "", column: int = 0
) -> ScriptError:
    """The error in the logical line that begins at `line`, with its caret in the right physical line.

    `text` is the end of the logical line; `column` counts from 1 within it, 0 is the line's beginning.
    """
    places = _places(files[file], line)
    offset = len(places) - len(text) + column - 1 if column else 0
    if offset < len(places):
        number, at = places[max(offset, 0)]
    else:
        number, at = places[-1][0], places[-1][1] + 1
    return ScriptError(message, file, number, files[file][number - 1], at)


def _places(lines: Sequence[str], line: int) -> list[tuple[int, int]]:
    """Physical line and column, both from 1, of each character of the logical line that begins at `line`."""
    places: list[tuple[int, int]] = []
    for number in range(line, len(lines) + 1):
        text, columns = _with_columns(lines[number - 1])
        joins = text.endswith("\\")
        length = len(text[:-1].rstrip()) if joins else len(text)
        if length and places:
            places.append((places[-1][0], places[-1][1] + 1))
        places += [(number, column) for column in columns[:length]]
        if not joins:
            break
    return places or [(line, 1)]


class _Reader:
    """State of reading, across files."""

    def __init__(self, search: Sequence[str | Path]) -> None:
        self.search = [str(directory) for directory in search]
        self.directories: list[str] = []
        self.main: list[str] = []
        """The directory of the script itself."""
        self.reserved = ""
        self.stored: Mapping[str, Sequence[str]] | None = None
        self.lines: list[LogicalLine] = []
        self.files: dict[str, tuple[str, ...]] = {}
        self.hash = hashlib.sha256()
        self.read_files = self.read_bytes = 0
        self.open: list[tuple[str, object]] = []

    def source(self) -> Source:
        return Source(self.lines, self.files, self.hash.hexdigest())

    def splice(self, content: bytes, file: str, directory: str, identity: object) -> None:
        """Append the lines of one file, and of its includes."""
        physical = self.files[file] = _split(content, file)
        self.hash.update(b"%d\n" % len(content) + content)
        self.open.append((file, identity))
        for line in _logical(physical, file, self.stored is None):
            if line.text.startswith(INCLUDES) and (words := line.text.split(None, 1))[0] in INCLUDES:
                self._include(line, words, directory)
            else:
                self.lines.append(line)
        self.open.pop()

    def _include(self, line: LogicalLine, words: list[str], directory: str) -> None:
        what = words[0]
        if len(words) < 2:
            raise self._error(line, f"expected {what} {'DIR' if what == 'INCLUDEPATH' else 'FILE'}")
        name = words[1]
        if match := _VARIABLE.search(name):
            message = f"{what} is read before there are variables: write the name out"
            raise self._error(line, message, name[match.start() :])
        if what == "INCLUDEPATH":
            self.directories.append(os.path.join(directory, name))
            return
        found = self._find(line, name, directory)
        if found:
            self._enter(line, name, *found)
        elif what == "INCLUDE":
            where = ", ".join(place or "." for place in self._places(name, directory))
            raise self._error(line, f"no file {shown_word(name)}; searched {where}", name)

    def _places(self, name: str, directory: str) -> list[str]:
        if os.path.isabs(name):
            return [os.path.dirname(name)]
        places = [directory, *self.directories, *self.search, *self.main, *self._stored_places(name)]
        return list(dict.fromkeys(places))

    def _stored_places(self, name: str) -> list[str]:
        """Directories of stored files of that name: the only ones of a search path that matter."""
        files = [] if self.stored is None else self.stored
        return [
            file.removesuffix(name).rstrip("/") for file in files if file == name or file.endswith(f"/{name}")
        ]

    def _find(self, line: LogicalLine, name: str, directory: str) -> tuple[str, bytes, object] | None:
        for place in self._places(name, directory):
            path = os.path.join(place, name)
            try:
                return (path, *self.content_of(path))
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                raise self._error(line, f"{path}: {error.strerror}", name) from None
        return None

    def _enter(self, line: LogicalLine, name: str, path: str, content: bytes, identity: object) -> None:
        files = [file for file, _ in self.open]
        for place, (_, known) in enumerate(self.open):
            if known == identity:
                chain = " includes ".join([*files[place:], path])
                raise self._error(line, f"a file that includes itself: {chain}", name)
        if len(files) >= MAX_NESTED:
            raise self._error(line, f"{MAX_NESTED} files include each other; is that meant?", name)
        self.read_files += 1
        self.read_bytes += len(content)
        if self.read_files > MAX_FILES or self.read_bytes > MAX_BYTES:
            limits = f"{MAX_FILES:,} files or {MAX_BYTES >> 20} MiB"
            raise self._error(line, f"more than {limits} are included; is that meant?", name)
        file = path if path != self.reserved else os.path.join(".", path)
        self.splice(content, file, os.path.dirname(path), identity)

    def content_of(self, path: str) -> tuple[bytes, object]:
        """Contents and identity of a file; the identity is the same under another name. OSError if there is none.

        Raises:
            InputError: this is root, and others could have written it.
        """
        if self.stored is None:
            if os.path.isdir(path):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
            return _content(
                path, None if os.path.dirname(path) == str(shipped_directory()) else open_for_root
            )
        if path not in self.stored:
            raise FileNotFoundError(path)
        return "".join(f"{line}\n" for line in self.stored[path]).encode("utf-8", "surrogatepass"), path

    def _error(self, line: LogicalLine, message: str, name: str = "") -> ScriptError:
        return error_at(self.files, line.file, line.line, message, name, 1)


def _content(path: str, opened: Callable[[str], int] | None = None) -> tuple[bytes, object]:
    """Contents and identity of a file; the identity is the same under another name."""
    with open((opened or open_user_file)(path), "rb") as file:
        status = os.fstat(file.fileno())
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise OSError(0, f"larger than {MAX_BYTES >> 20} MiB")
    return content, (status.st_dev, status.st_ino)


def same_text(path: str, lines: Sequence[str]) -> bool | None:
    """True if a file on disk still has these lines; None if it cannot be read."""
    try:
        return _split(_content(path)[0], path) == tuple(lines)
    except (OSError, ValueError):
        return None
    except ScriptError:
        return False


def _split(content: bytes, file: str) -> tuple[str, ...]:
    """The physical lines. Only a line feed ends one; a carriage return before it is dropped."""
    nul = content.find(b"\0")
    if nul >= 0:
        raise ScriptError("a NUL byte; expected text", file, content.count(b"\n", 0, nul) + 1)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ScriptError("not UTF-8; save the file as UTF-8", file, line) from None
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    if not lines[-1]:
        lines.pop()
    return tuple(lines)


def _logical(physical: Sequence[str], file: str, strict: bool) -> Iterator[LogicalLine]:
    """strict: refuse comments that begin within quotes; stored scripts are read as they were run."""
    numbered = enumerate(physical, 1)
    for number, raw in numbered:
        text = raw.strip()
        if not text or text[0] == "#":
            continue
        careful = strict and not text.startswith(_PROSE)
        if "#" in text:
            if careful:
                _check_comment(raw, file, number)
            text = _uncommented(text)
        if text.endswith("\\"):
            joined = _joined(text, numbered, file if careful else None)
            if joined is None:
                last = physical[-1]
                message = "the file ends after a backslash, which joins the next line"
                raise ScriptError(message, file, len(physical), last, len(last.rstrip()))
            text = joined
        if text:
            yield LogicalLine(text, file, number)


def _uncommented(text: str) -> str:
    return _COMMENT.sub("", text, count=1).replace("\\#", "#").strip()


def _check_comment(raw: str, file: str, line: int) -> None:
    """Refuse a comment that would cut quotes or `${…}` in two.

    Raises:
        ScriptError: it does.
    """
    comment = _COMMENT.search(raw)
    at = comment.start() if comment else 0
    if comment and any(each.start() < at < each.end() for each in _TOGETHER.finditer(raw)):
        message = "a # within quotes or ${…} begins a comment, too; write \\# where it is a character"
        raise ScriptError(message, file, line, raw, at + 1)


def _joined(text: str, rest: Iterator[tuple[int, str]], file: str | None) -> str | None:
    """The line joined with its continuation lines, one blank between; None at the end of the file.

    file: its name, if comments are checked (`_check_comment`).
    """
    parts = []
    while text.endswith("\\"):
        parts.append(text[:-1].rstrip())
        following = next(rest, None)
        if following is None:
            return None
        if file is not None:
            _check_comment(following[1], file, following[0])
        text = _uncommented(following[1])
    parts.append(text)
    return " ".join(part for part in parts if part)


def _with_columns(raw: str) -> tuple[str, list[int]]:
    """Same as `_uncommented`, and the column of each remaining character, from 1."""
    kept: list[str] = []
    columns: list[int] = []
    index = 0
    while index < len(raw) and raw[index] != "#":
        escaped = raw.startswith("\\#", index)
        columns.append(index + 1)
        kept.append("#" if escaped else raw[index])
        index += 1 + escaped
    text = "".join(kept)
    leading = len(text) - len(text.lstrip())
    return text.strip(), columns[leading : len(text.rstrip())]
