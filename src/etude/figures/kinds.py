"""All kinds of figures by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from etude.errors import UsageError
from etude.figures.axis_positions import place
from etude.figures.bars import bars, before_after
from etude.figures.data import Figure
from etude.figures.distributions import distribution
from etude.figures.lines import lines
from etude.figures.plot_options import PlotOptions
from etude.figures.pvalues import pvalues
from etude.figures.ratio import ratio
from etude.figures.sources import Sample
from etude.figures.timeline import timeline

_DIRECT: dict[str, Callable[[Sequence[Sample], PlotOptions], Figure]] = {
    "bars": bars,
    "lines": lines,
    "ratio": ratio,
    "pvalues": pvalues,
    "timeline": timeline,
}


def make(kind: str, samples: Sequence[Sample], wish: PlotOptions) -> Figure:
    """The figure of that kind.

    Raises:
        InputError: there is nothing to plot; UsageError: what is asked does not fit.
    """
    if not samples:
        raise UsageError("nothing to plot: no test was chosen")
    if kind == "before-after":
        from etude.figures.sources import by_file

        return before_after(by_file(samples), wish)
    if kind in _DIRECT:
        return _DIRECT[kind](samples, wish)
    return distribution(samples, wish, kind)


def usual_kind(samples: Sequence[Sample], wish: PlotOptions) -> str:
    """Lines where a number varies over the tests, else bars."""
    if wish.parameter is not None or "x" in wish.log:
        return "lines"
    places = place(samples)
    curves = places.curves().values()
    return "lines" if places.ticks is None and all(len(curve) > 1 for curve in curves) else "bars"
