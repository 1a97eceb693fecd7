"""Numbers as the text of docs/calibration.md."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence

NOMINAL = 0.95


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows), ""]


def paragraph(*sentences: str) -> list[str]:
    """Text in lines of a page, and the empty line after it."""
    return [*textwrap.wrap(" ".join(sentences), 110, break_on_hyphens=False), ""]


def share(value: float, replications: int, at_least: float = NOMINAL) -> str:
    """A share in percent; bold where it is below `at_least` by more than two standard errors."""
    text = f"{100 * value:.1f}"
    return f"**{text}**" if value < at_least - 2.0 * standard_error(at_least, replications) else text


def standard_error(value: float, replications: int) -> float:
    """Standard error of a share found in so many replications."""
    return math.sqrt(value * (1.0 - value) / replications)


def factor_line(name: str, factors: Iterable[tuple[int, float]]) -> str:
    """The machine-readable line that tests/unit/stats/test_calibration.py compares with the code."""
    return f"factors {name}: " + " ".join(f"{minimum}:{factor:.2f}" for minimum, factor in factors)
