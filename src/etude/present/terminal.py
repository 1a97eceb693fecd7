"""A screen: its width, styles and characters, decided in one place, and how sections and sentences stand on it.

Sentences wrap at words, tables fit (present/table_layout.py), characters that the encoding lacks are written in others.
JSON and CSV do not come here.
"""

from __future__ import annotations

import codecs
import os
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TextIO

from etude import trail
from etude.escaping import escaped, unescaped
from etude.present.section import (
    Block,
    Column,
    Command,
    FilePath,
    Paragraphs,
    Picture,
    Section,
    Sentence,
    Table,
)
from etude.present.table_layout import cut, table_lines, wrapped

USUAL_WIDTH = 80
"""Width of a terminal that does not report it."""
LEAST_WIDTH = 20
"""Narrower ones are written to as if they were so wide."""

_BARS = dict(zip("▁▂▃▄▅▆▇█", "_.-=+*#@", strict=True))
PLAIN = _BARS | {
    "±": "+-",
    "…": "..",
    "–": "-",
    "—": "-",
    "−": "-",
    "×": "x",
    "µ": "u",
    "·": "|",
    "─": "-",
    "←": "<-",
    "→": "->",
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
    "√": "sqrt",
    "▲": "^",
    "’": "'",
    "“": '"',
    "”": '"',
}
"""Replacements for characters that the encoding lacks; for sparklines eight levels of ink."""
_STYLES = {"bold": "1", "dim": "2", "yellow": "33"}
_COLOURS = frozenset(("yellow",))


STYLES = {"plain": None, "strong": "bold", "aside": "dim", "warning": "yellow"}
"""Style of each weight of a sentence."""


class Terminal:
    """A stream that people read, and what it can show."""

    def __init__(
        self,
        stream: TextIO | None = None,
        environment: Mapping[str, str] | None = None,
        *,
        progress: bool = False,
    ) -> None:
        """Standard output, unless another stream is given. progress: a full disk or device does not end what is shown;
        only that nobody reads any more does."""
        self._progress = progress
        self._stream = unescaped(sys.stdout if stream is None else stream)  # what goes there is `shown`
        self._environment = os.environ if environment is None else environment
        self._is_terminal = self._stream.isatty()
        self._encoding = encoding_of(self._stream, self._environment)
        able = self._environment.get("TERM", "dumb") not in ("dumb", "unknown", "")
        self.obeys = self._is_terminal and able
        """True if it moves its cursor and draws over a line."""
        self._styled = self.obeys or bool(self._environment.get("FORCE_COLOR"))
        self._after_empty = False

    @property
    def width(self) -> int | None:
        """Characters in a line, as it is now; None where the output is no terminal, and lines are not broken."""
        if not self._is_terminal:
            return None
        return max(LEAST_WIDTH, self._columns())

    def _columns(self) -> int:
        stated = self._environment.get("COLUMNS", "")
        if stated.isdecimal() and int(stated) > 0:
            return int(stated)
        with suppress(OSError, ValueError, AttributeError):
            return os.get_terminal_size(self._stream.fileno()).columns or USUAL_WIDTH
        return USUAL_WIDTH

    def shown(self, text: str) -> str:
        """The text in characters that it has; what would steer a terminal is written out."""
        text = escaped(text, lines=False)
        if not text.isprintable():  # blanks of other widths
            text = "".join(c if c.isprintable() else " " for c in text)
        if text.isascii() or _fits(text, self._encoding):
            return text
        return "".join(c if _fits(c, self._encoding) else _instead(c, self._encoding) for c in text)

    def styled(self, text: str, style: str | None) -> str:
        """The text in a style (`bold`, `dim`, `yellow`), where there are such."""
        colourless = bool(self._environment.get("NO_COLOR"))
        if style is None or not text or not self._styled or (colourless and style in _COLOURS):
            return text
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"

    def say(self, text: str = "", style: str | None = None) -> None:
        """A sentence: wrapped at words, further lines indented."""
        trail.note("said", text)
        for part in wrapped(self.shown(text), self.width):
            self._write(part, style)

    def say_path(self, what: str, path: str, style: str | None = None) -> None:
        """`what: path`; the path is never broken, so that it can be copied: a long one stands in a line of its own."""
        trail.note("said", f"{what}: {path}")
        line, width = self.shown(f"{what}: {path}"), self.width
        for part in [line] if width is None or len(line) <= width else [f"{what}:", self.shown(path)]:
            self._write(part, style)

    def say_command(self, what: str, command: str) -> None:
        """`what: command`: wrapped between the shell's words, so that it can still be copied."""
        trail.note("said", f"{what}: {command}")
        line, width = self.shown(f"{what}: {command}"), self.width
        if width is None or len(line) <= width:
            self._write(line)
            return
        self.say(f"{what}:")
        words = re.findall(r"""(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\])+""", command)
        parts = wrapped("  " + "\0".join(map(self.shown, words)), width - 2, separator="\0")
        for number, part in enumerate(parts, 1):
            self._write(part.replace("\0", " ") + (" \\" if number < len(parts) else ""))

    def table(self, columns: Sequence[Column], *, every: bool = False) -> None:
        """A table between empty lines. Where it is too wide, columns are left out by their `rank`, unless `every`."""
        for lines in self.table_lines(columns, every=every):
            self._write("")
            for number, line in enumerate(lines):
                self._write(line, "bold" if number == 0 and len(lines) > 1 else None)
        self._write("")

    def table_lines(self, columns: Sequence[Column], *, every: bool = False) -> list[list[str]]:
        """The lines of the tables that it takes: one, or more where `every` column is wanted."""
        told = [
            Column(self.shown(c.heading), [self.shown(text) for text in c.texts], c.rank, c.words)
            for c in columns
        ]
        tables = table_lines(told, self.width, every=every, dots=self.shown("…"))
        return [[line.replace("─", self.shown("─")) for line in lines] for lines in tables]

    def one_line(self, text: str, spare: int = 1) -> str:
        """The text, shortened to a line that leaves `spare` columns free, so that it can be drawn over."""
        width = self.width
        told = self.shown(text)
        return told if width is None else cut(told, width - spare, self.shown("…"))

    def draw(self, text: str = "") -> None:
        """Put this in place of the line that the cursor stands in; nothing where it cannot be moved."""
        if not self.obeys:
            return
        with self._tolerated():
            self._stream.write(f"\r\x1b[K{self.one_line(text)}")
            self._stream.flush()

    def flush(self) -> None:
        """Pass on what has been written."""
        with self._tolerated():
            self._stream.flush()

    @contextmanager
    def _tolerated(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if not self._progress or isinstance(error, BrokenPipeError):
                raise

    def _write(self, line: str, style: str | None = None) -> None:
        line = line.rstrip()
        if line or not self._after_empty:
            with self._tolerated():
                print(self.styled(line, style), file=self._stream)
        self._after_empty = not line


def encoding_of(stream: TextIO, environment: Mapping[str, str]) -> str:
    """The encoding whose characters a stream can show.

    Python writes UTF-8 under LANG=C; the terminal of somebody who says so has ASCII. PYTHONIOENCODING and PYTHONUTF8
    say what the stream is, whatever the locale.
    """
    own = getattr(stream, "encoding", None) or "utf-8"
    if environment.get("PYTHONIOENCODING", "").partition(":")[0] or environment.get("PYTHONUTF8") == "1":
        return own
    locale = next((v for name in ("LC_ALL", "LC_CTYPE", "LANG") if (v := environment.get(name))), "")
    name = locale.partition("@")[0].partition(".")[2]
    if locale in ("C", "POSIX"):
        return "ascii"
    with suppress(LookupError):
        if name and codecs.lookup(name).name != codecs.lookup(own).name:
            return "ascii"
    return own


def _fits(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _instead(character: str, encoding: str) -> str:
    known = PLAIN.get(character)
    if known is not None:
        return known
    base = "".join(c for c in unicodedata.normalize("NFKD", character) if not unicodedata.combining(c))
    return (
        base
        if base and _fits(base, encoding)
        else repr(character.encode("unicode_escape"))[2:-1].replace("\\\\", "\\")
    )


def show(blocks: Section | Iterable[Block], screen: Terminal | TextIO | None = None) -> None:
    """Print blocks one after the other, as they are made, on standard output or another screen."""
    screen = screen if isinstance(screen, Terminal) else Terminal(screen)
    for block in blocks.blocks if isinstance(blocks, Section) else blocks:
        _show(block, screen)


def show_aside(*blocks: Block) -> None:
    """Print blocks on standard error, beside a document on standard output."""
    show(blocks, sys.stderr)


def _show(block: Block, screen: Terminal) -> None:
    match block:
        case Sentence():
            screen.say(block.text, STYLES[block.weight])
        case Command():
            screen.say_command(block.what, block.command)
        case FilePath():
            screen.say_path(block.what, block.path, STYLES[block.weight])
        case Paragraphs() if block.room != "page":
            screen.say(f"{block.heading}:", "bold")
            for line in block.lines:
                screen.say(f"  {line}")
        case Table() if block.room != "page":
            screen.table(block.columns, every=block.every)
        case Paragraphs() | Table() | Picture():
            pass  # for a page; figures are drawn into files, which stand as a FilePath
