"""The three figures of the lab notes, of a sweep's own results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from etude.analysis.subject import Subject
from etude.errors import InputError
from etude.figures.data import Figure, Line
from etude.figures.plot import make
from etude.figures.plot_options import PlotOptions, Threshold
from etude.figures.sources import Sample
from etude.iolab.landmarks import landmarks
from etude.iolab.points import Swept, swept_of, values_of
from etude.iolab.sweeps import BANDWIDTH, STORAGE
from etude.units.formatting import quantity

BESIDE, EDGE = 2.0, 1.3
"""A size of this machine that is up to so many times the largest buffer is drawn, too, so far from the edge."""
THROUGHPUT, LINKING, SIGNIFICANCE = "throughput", "linking", "significance"


def figures_of(subject: Subject, *, title: str = "") -> Mapping[str, Figure]:
    """Figures by name: for a sweep over buffers `throughput` (Figure 1 of the notes), for one over totals `linking`
    (Figure 2)
    and `significance` (Figure 3); these compare with the first curve.

    Raises:
        InputError: the results are not those of a sweep.
    """
    swept = swept_of(subject)
    samples = [
        Sample(series.test, subject.label, series.parameters, subject, series)
        for series in subject.tests
        if series.parameters["curve"] != STORAGE and values_of(series, swept.metric).size
    ]
    if swept.over == "buffer":
        return {THROUGHPUT: _throughput(samples, swept, title)}
    base, *others = swept.curves
    if not others or not all(np.intersect1d(base.sizes, other.sizes).size for other in others):
        wish = PlotOptions(("elapsed",), bars="quartiles", log="xy", parameter="total", title=title)
        return {LINKING: make("lines", samples, wish)}
    found = {LINKING: make("ratio", samples, _over_totals(swept, title))}
    with suppress(InputError):  # of a sweep that was interrupted: no size has two trials of both
        found[SIGNIFICANCE] = make("pvalues", samples, _over_totals(swept, title, first=(10,)))
    return found


def _throughput(samples: Sequence[Sample], swept: Swept, title: str) -> Figure:
    last = max(float(curve.sizes[-1]) for curve in swept.curves)
    known = landmarks(swept.experiment)
    beside = [mark for mark in known if last < mark.bytes <= BESIDE * last]
    marks = tuple(Threshold(mark.bytes, "B", str(mark)) for mark in known if mark not in beside)
    wish = PlotOptions(
        (BANDWIDTH.name,),
        bars="quartiles",
        log="x",
        parameter="buffer",
        thresholds=_storage(swept),
        marks=marks,
        title=title,
        x_label="buffer size",
    )
    return _widened(make("lines", samples, wish), [Line(mark.bytes, str(mark), "x") for mark in beside])


def _widened(figure: Figure, lines: Sequence[Line]) -> Figure:
    """The figure with lines beyond the last point, and room for them."""
    if not lines:
        return figure
    (panel,) = figure.panels
    panel = replace(panel, layers=(*panel.layers, *lines))
    return replace(figure, x=replace(figure.x, high=EDGE * max(line.at for line in lines)), panels=(panel,))


def _storage(swept: Swept) -> tuple[Threshold, ...]:
    if swept.storage is None:
        return ()
    rate = float(np.median(swept.storage))
    return (Threshold(rate, "B/s", f"storage (O_DIRECT), {quantity(rate, 'B/s')}"),)


def _over_totals(swept: Swept, title: str, first: tuple[int, ...] = ()) -> PlotOptions:
    fewest = min(values.size for curve in swept.curves for values in curve.samples)
    return PlotOptions(
        ("elapsed",),
        log="xy",
        parameter="total",
        reference=swept.curves[0].name,
        first=tuple(count for count in first if count < fewest),
        ranks=bool(first),
        title=title,
        x_label="file size",
    )
