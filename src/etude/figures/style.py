"""The look of figures: colours that colour-blind readers tell apart, marks that survive a grey print, embedded
fonts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from etude.errors import UsageError

COLUMN_IN = 3.3
"""Width of a column of a paper, inches."""

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#7f7f7f")
"""Okabe and Ito's, without their yellow, which cannot be seen on white."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)))
HATCHES = ("", "////", "....", "\\\\\\\\", "xx", "--", "++", "oo")
GREY_COLOUR = "#7f7f7f"
LINE_COLOUR = "#555555"
BAND_COLOUR = "#ededed"


@dataclass(frozen=True)
class Style:
    """Size in inches, text in points."""

    width: float = COLUMN_IN
    height: float | None = None
    """None: as the figure needs."""
    font: float = 8.0
    dots: int = 200
    """Per inch, of a PNG."""


def check_font(points: float) -> float:
    """The size of a text. Raises UsageError: it is not from 3 to 72 points."""
    if not 3 <= points <= 72:
        raise UsageError(f"font {points:g}: expected 3 to 72 points")
    return points


def check_side(inches: float) -> float:
    """The width or height of a figure. Raises UsageError: it is not from 1 to 40 inches."""
    if not 1 <= inches <= 40:
        raise UsageError(
            f"size {inches:g}: expected width and height in inches, 1 to 40, such as 3.3 and 2.4"
        )
    return inches


def colour(number: int) -> str:
    """Colour of a series; grey for a negative number."""
    return GREY_COLOUR if number < 0 else COLOURS[number % len(COLOURS)]


def paler(code: str, share: float = 0.65) -> str:
    """The colour mixed with that share of white: EPS has no transparency."""
    parts = (int(code[n : n + 2], 16) for n in (1, 3, 5))
    return "#" + "".join(f"{round(part + (255 - part) * share):02x}" for part in parts)


def settings(style: Style) -> Mapping[str, Any]:
    """matplotlib's settings; fonts as Type 42, which publishers take."""
    return {
        "font.family": "DejaVu Sans",
        "font.size": style.font,
        "axes.titlesize": style.font,
        "axes.labelsize": style.font,
        "xtick.labelsize": style.font * 0.9,
        "ytick.labelsize": style.font * 0.9,
        "legend.fontsize": style.font * 0.85,
        "axes.linewidth": 0.6,
        "xtick.major.width": 0.6,
        "ytick.major.width": 0.6,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "axes.unicode_minus": True,
        "lines.linewidth": 1.2,
        "lines.markersize": style.font * 0.5,
        "hatch.linewidth": 0.5,
        "legend.frameon": False,
        "legend.handlelength": 1.7,
        "legend.handletextpad": 0.5,
        "pdf.fonttype": 42,
        "ps.fonttype": 42,
        "svg.fonttype": "path",
        "svg.hashsalt": "etude",
        "savefig.dpi": style.dots,
        "figure.dpi": style.dots,
        "text.usetex": False,
    }
