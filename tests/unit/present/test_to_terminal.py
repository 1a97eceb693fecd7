"""Blocks on a screen: in their order, without what only a page has."""

from __future__ import annotations

import io

from etude.figures.data import Axis, Figure
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
    number,
    page_table,
)
from etude.present.terminal import Terminal, show

NAMES = Column("test", ["a", "bb"])
BLOCKS: tuple[Block, ...] = (
    Sentence("first", "strong"),
    Table((NAMES, Column("mean", [number("1 s", 1.0), number("–", None)]))),
    Paragraphs("Cost", ("one hour", "two")),
    Paragraphs("Answer", ("of the page",), room="page"),
    Picture("of the page", Figure(Axis("x"), ())),
    page_table("key", "caption", ("of the page",), [("cell",)]),
    Command("Then", "etude r"),
    FilePath("Results", "r"),
)


def lines(*blocks: Block) -> list[str]:
    stream = io.StringIO()
    show(blocks, Terminal(stream, {}))
    return stream.getvalue().splitlines()


def test_blocks_stand_in_their_order_without_those_of_a_page() -> None:
    text = lines(*BLOCKS)
    assert [line.strip() for line in text if line and "─" not in line] == [
        "first",
        "test   mean",
        "a       1 s",
        "bb        –",
        "Cost:",
        "one hour",
        "two",
        "Then: etude r",
        "Results: r",
    ]


def test_a_page_has_paragraphs_figures_and_tables_and_no_screen_has_its_tables() -> None:
    screen = Table((NAMES,), room="screen")
    section = Section("key", "Heading", (*BLOCKS, screen))
    assert [each.heading for each in section.paragraphs] == ["Cost", "Answer"]
    assert [each.caption for each in section.pictures] == ["of the page"]
    assert [each.headings for each in section.tables] == [("test", "mean"), ("of the page",)]


def test_a_table_without_rows_has_its_headings() -> None:
    table = page_table("key", "caption", ("a", "b"), [])
    assert table.headings == ("a", "b")
    assert table.rows == ()
