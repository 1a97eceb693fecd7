"""A figure as an object: it shows itself in a notebook, and is saved in any format."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from etude.figures.data import Figure
from etude.figures.style import Style

if TYPE_CHECKING:
    import matplotlib.figure


@dataclass(frozen=True)
class Plot:
    """What is shown, as data, and how it looks."""

    data: Figure
    style: Style = field(default_factory=Style)

    @property
    def notes(self) -> tuple[str, ...]:
        """What has to be said beside it: what error bars are, and what was left out."""
        return self.data.notes

    def figure(self) -> matplotlib.figure.Figure:
        """It on a canvas of matplotlib's, to be changed further."""
        from etude.figures.draw import draw

        return draw(self.data, self.style)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as PDF, EPS, SVG or PNG, as the name of the file asks.

        Raises:
            MachineRefuses: the file cannot be written; UsageError: its name ends with no known format.
        """
        from etude.figures.save import save

        save(self.data, os.fspath(path), self.style)

    def _repr_png_(self) -> bytes:
        from etude.figures.save import render

        return render(self.data, "png", self.style)[0]
