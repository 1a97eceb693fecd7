"""Tables of a page that are parts of recorded tables: fewer rows and columns, with the same values."""

from __future__ import annotations

import re

Table = tuple[list[str], list[list[str]]]


def tables(text: str) -> list[Table]:
    """The tables of a page in Markdown, each with its header and its rows."""
    blocks = [block.splitlines() for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)]
    return [(_cells(header), [_cells(row) for row in rows]) for header, _, *rows in blocks]


def unrecorded(page: str, recorded: str) -> list[str]:
    """Rows of the page's tables that no recorded table has in columns of these names; brackets may be left out."""
    known = tables(recorded)
    return [
        " | ".join(row)
        for header, rows in tables(page)
        for row in rows
        if not any(_holds(table, header, row) for table in known)
    ]


def _holds(table: Table, header: list[str], row: list[str]) -> bool:
    names, rows = table
    if not set(header) <= set(names):
        return False
    places = [names.index(name) for name in header]
    return any(
        all(cell in (full[at], _plain(full[at])) for cell, at in zip(row, places, strict=True))
        for full in rows
    )


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _plain(cell: str) -> str:
    return re.sub(r" \([^)]*\)$", "", cell)
