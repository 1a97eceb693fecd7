"""A figure as an object: it shows itself in a notebook, and is saved in any format."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from etude.errors import EtudeError, UsageError
from etude.figures.axes import AxisPosition, place, spans_decades
from etude.figures.bars import bars, before_after
from etude.figures.data import Figure
from etude.figures.distributions import distribution
from etude.figures.lines import lines
from etude.figures.plot_options import PlotOptions
from etude.figures.ratio import pvalues, ratio
from etude.figures.sources import Sample
from etude.figures.style import Style
from etude.figures.timeline import timeline
from etude.osutil.files import path_text

if TYPE_CHECKING:
    import matplotlib.figure


_DIRECT: dict[str, Callable[[Sequence[Sample], PlotOptions], Figure]] = {
    "bars": bars,
    "lines": lines,
    "ratio": ratio,
    "pvalues": pvalues,
    "timeline": timeline,
}


FEW = 4
"""Fewer numbers are neither a count of tests nor in need of a logarithmic axis."""
MOSTLY = 0.8
"""Share of the tests that lie on curves of several points: a reference of a single one may stand beside them."""
MARKED = ("lines", "ratio", "pvalues")
"""Kinds with an x axis of what varies over the tests."""


def make(kind: str, samples: Sequence[Sample], wish: PlotOptions) -> Figure:
    """The figure of that kind.

    Raises:
        InputError: there is nothing to plot; UsageError: what is asked does not fit.
    """
    if not samples:
        raise UsageError("nothing to plot: no test was chosen")
    if wish.marks and kind not in MARKED:
        mark = wish.marks[0].label
        raise UsageError(
            f"--mark {mark}: --kind {kind} has no values of x to mark, as {', '.join(MARKED)} have; see --threshold"
        )
    for option, (given, kinds) in _limited(wish).items():
        if given and kind not in kinds:
            raise UsageError(f"{option}: is for --kind {', '.join(kinds)}, not {kind}")
    wish = _scaled(kind, samples, wish)
    if kind == "before-after":
        from etude.figures.sources import by_file

        return before_after(by_file(samples), wish)
    if kind in _DIRECT:
        return _DIRECT[kind](samples, wish)
    return distribution(samples, wish, kind)


def _limited(wish: PlotOptions) -> dict[str, tuple[bool, tuple[str, ...]]]:
    """Options that some kinds have no use for: whether each is given, and the kinds that have."""
    return {
        "--first": (bool(wish.first), ("pvalues",)),
        "--welch": (not wish.pooled, ("pvalues",)),
        "--reference": (wish.reference is not None, ("ratio", "pvalues")),
        "--bars": (wish.bars is not None, ("bars", "before-after", *MARKED)),
        "--x": (wish.parameter is not None, MARKED),
    }


def usual_kind(samples: Sequence[Sample], wish: PlotOptions) -> str:
    """Lines where a number varies over the tests, else bars: also where it only counts them."""
    if wish.parameter is not None or "x" in wish.log:
        return "lines"
    places = place(samples)
    curves = list(places.curves().values())
    on_lines = sum(len(curve) for curve in curves if len(curve) > 1)
    if places.ticks is not None or on_lines < MOSTLY * len(samples) or (places.named and _counting(curves)):
        return "bars"
    return "lines"


def _counting(curves: Sequence[Sequence[AxisPosition]]) -> bool:
    """True if x is 0, 1, 2 … or 1, 2, 3 … of a single curve of several tests: their number, and no amount."""
    x = [each.x for each in curves[0]]
    return (
        len(curves) == 1 and len(x) >= FEW and x[0] in (0.0, 1.0) and x == [x[0] + n for n in range(len(x))]
    )


def _scaled(kind: str, samples: Sequence[Sample], wish: PlotOptions) -> PlotOptions:
    """The options with a logarithmic x axis where the numbers along it suggest one."""
    if kind not in MARKED or wish.log:
        return wish
    places = place(samples, wish.parameter)
    x = sorted({each.x for each in places.placed})
    alike = places.ticks is None and len(x) >= FEW and spans_decades(x)
    return replace(wish, log="x") if alike else wish


@dataclass(frozen=True, repr=False)
class Plot:
    """A figure's data and style."""

    data: Figure
    style: Style = field(default_factory=Style)

    def __repr__(self) -> str:
        return f"<Plot of {', '.join(panel.y.label for panel in self.data.panels)}: save(file), figure()>"

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the meaning of error bars, and on what was left out."""
        return self.data.notes

    def figure(self) -> matplotlib.figure.Figure:
        """It on a canvas of matplotlib's, to be changed further."""
        from etude.figures.draw import draw

        return draw(self.data, self.style)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as PDF, EPS, SVG or PNG, as the name of the file asks.

        Raises:
            MachineRefuses: the file cannot be written; UsageError: it is no path, or ends with no known format.
        """
        from etude.figures.save import save

        try:
            save(self.data, path_text(path, "path"), self.style)
        except EtudeError as error:
            error.args = (f"etude.Plot.save: {error}",)
            raise

    def _repr_png_(self) -> bytes:
        from etude.figures.save import render

        return render(self.data, "png", self.style)[0]
