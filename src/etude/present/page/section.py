"""A part of a report of its own, which a kind of results brings with it: sentences, figures, tables."""

from __future__ import annotations

import base64
from dataclasses import dataclass

from etude.figures.data import Figure
from etude.present.page.tables import Table


@dataclass(frozen=True)
class Paragraphs:
    """Sentences under a heading."""

    heading: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Picture:
    """A figure with what it shows in words."""

    caption: str
    figure: Figure
    size: tuple[float, float] | None = None
    """Width and height in inches; None: a column's width."""

    def source(self) -> str:
        """It as SVG, inside an address that loads nothing."""
        from etude.figures.save import render
        from etude.figures.style import Style

        drawn, _ = render(self.figure, "svg", Style(*self.size) if self.size else Style())
        return f"data:image/svg+xml;base64,{base64.b64encode(drawn).decode()}"


@dataclass(frozen=True)
class Section:
    """One section."""

    key: str
    """Its anchor; of several results with their numbers, so that each is once in a page."""
    heading: str
    paragraphs: tuple[Paragraphs, ...]
    pictures: tuple[Picture, ...]
    tables: tuple[Table, ...]
    answer: tuple[str, ...] = ()
    """What the whole page opens with; empty where the tests' own verdict does."""
