"""A table of text: a line a row, columns as wide as their cells."""

from __future__ import annotations

from collections.abc import Sequence


def grid(headings: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None) -> list[str]:
    """Lines of a table: headings, a rule, rows; the first column to the left, the others to the right.

    width: of the screen; the first column is shortened where the table is wider.
    """
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    rest = sum(widths[1:]) + 3 * (len(widths) - 1) + 2
    first = widths[0] if width is None else min(widths[0], max(8, width - rest))
    rule = "─" * (first + rest - 1)

    def line(cells: Sequence[str]) -> str:
        name = cells[0] if len(cells[0]) <= first else f"{cells[0][: first - 1]}…"
        return "   ".join(
            [f" {name:<{first}}", *(f"{c:>{w}}" for c, w in zip(cells[1:], widths[1:], strict=True))]
        )

    return [line(headings), f" {rule}", *map(line, rows)]
