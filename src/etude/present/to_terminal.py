"""Sections on a terminal: the one place where a sentence or a table meets a screen."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TextIO

from etude.present.section import (
    Block,
    Command,
    FilePath,
    Paragraphs,
    Picture,
    Section,
    Sentence,
    Table,
)
from etude.present.terminal import Terminal

STYLES = {"plain": None, "strong": "bold", "aside": "dim", "warning": "yellow"}
"""Style of each weight of a sentence."""


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
