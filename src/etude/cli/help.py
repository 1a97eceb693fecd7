"""Help that was written by hand, as wide as the terminal: paragraphs are filled, and what stands beside an option."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence

_BESIDE = re.compile(r" +\S+(?: \S+)*  +(?=\S)")
"""An option with its values, up to what is said of it."""


def help_width() -> int | None:
    """Columns of the terminal on standard output, or those of COLUMNS; None without both."""
    if not sys.stdout.isatty() and not os.environ.get("COLUMNS", "").isdigit():
        return None
    return shutil.get_terminal_size().columns


def fitted(text: str, width: int | None) -> str:
    """The text with its paragraphs, and its entries of options, filled where a line is wider; all else as it is."""
    if width is None or all(len(line) <= width for line in text.splitlines()):
        return text
    lines = [line for block in _blocks(text.splitlines()) for line in _filled(block, width)]
    return "\n".join(lines) + "\n" * text.endswith("\n")


def _blocks(lines: Sequence[str]) -> Iterator[list[str]]:
    """Lines that belong together: a paragraph, or an option and all that is said of it."""
    block: list[str] = []
    for line in lines:
        if block and not _goes_on(block, line):
            yield block
            block = []
        block.append(line)
    if block:
        yield block


def _goes_on(block: Sequence[str], line: str) -> bool:
    first, indent = block[0], len(line) - len(line.lstrip())
    if not line or not first or first.startswith("usage:"):
        return False
    if beside := _BESIDE.match(first):
        return indent == beside.end()
    return indent == 0 and not first.startswith(" ")


def _filled(block: Sequence[str], width: int) -> list[str]:
    if all(len(line) <= width for line in block):
        return list(block)
    first, rest = block[0], [line.strip() for line in block[1:]]
    if beside := _BESIDE.match(first):
        head, said = first[: beside.end()], " ".join([first[beside.end() :], *rest])
        if len(head) <= width // 2:
            return _fill(said, width, head, " " * len(head))
        return [head.rstrip(), *_fill(said, width, " " * 8, " " * 8)]
    if first.startswith((" ", "usage:")):
        indent = " " * (len(first) - len(first.lstrip()))
        return _fill(first.strip(), width, indent, indent + " " * 8)
    return _fill(" ".join([first, *rest]), width, "", "")


def _fill(text: str, width: int, first: str, further: str) -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=further,
        break_long_words=False,
        break_on_hyphens=False,
    )
