"""Numbers and sentences as Markdown: tables, paragraphs, shares that are judged."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence

NOMINAL = 0.95


def cells(values: Sequence[str]) -> str:
    """A line of a table."""
    return f"| {' | '.join(values)} |"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table, and the empty line after it."""
    return [cells(header), "|---" * len(header) + "|", *map(cells, rows), ""]


def paragraph(*sentences: str) -> list[str]:
    """Text in lines of a page, and the empty line after it."""
    return [*textwrap.wrap(" ".join(sentences), 110, break_on_hyphens=False), ""]


def section(title: str, text: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A heading, a paragraph and a table."""
    return [f"## {title}", "", *paragraph(text), *table(header, rows)]


def percent(value: float) -> str:
    """A share in percent, to a tenth."""
    return f"{100 * value:.1f}"


def share(value: float, replications: int, at_least: float = NOMINAL) -> str:
    """A share in percent; bold where it is below `at_least` by more than two standard errors."""
    text = percent(value)
    return f"**{text}**" if value < at_least - 2.0 * standard_error(at_least, replications) else text


def standard_error(value: float, replications: int) -> float:
    """Standard error of a share found in so many replications."""
    return math.sqrt(value * (1.0 - value) / replications)
