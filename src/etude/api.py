"""The Python interface: the experiments of the command line as functions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from etude.analysis.verdict import Verdict, verdict
from etude.experiment.plan import Plan, make_plan
from etude.experiment.run import Outcome, run
from etude.experiment.test import Test
from etude.figures.plot import Plot
from etude.figures.style import Style
from etude.present.export import notebook_table
from etude.results.results import Results

__all__ = ["Outcome", "Plan", "Plot", "Test", "bench", "make_plan", "plot", "run"]


def bench(
    commands: Sequence[str | Test], *, directory: str | os.PathLike[str] | None = None, **options: Any
) -> Verdict:
    """Measure commands, interleaved if there are several, until their means or ratios are known.

    `options`: see `etude.experiment.plan.make_plan`.

    Raises:
        etude.errors.EtudeError: see its classes; what was measured is on disk.
    """
    return notebook_table(verdict(run(make_plan(commands, **options), directory, verb="bench").results))


def plot(
    source: Results | str | os.PathLike[str],
    kind: str | None = None,
    *,
    size: tuple[float, float | None] | None = None,
    font: float | None = None,
    **wish: Any,
) -> Plot:
    """A figure of results, or of any file that `etude stats` reads, which shows itself in a notebook and can be saved.

    `kind` is one of `etude.figures.KINDS` (default: lines if a number varies over the tests, else bars); `size` is
    width and height in inches; `wish` holds members of `etude.figures.plot_options.PlotOptions`, such as
    `metrics=("user",)`, `bars="quartiles"` and `log="x"`.

    Raises:
        InputError: there is nothing to plot; UsageError: the options do not fit.
    """
    from etude.analysis.subject import subject_of
    from etude.figures.plot import make, usual_kind
    from etude.figures.plot_options import PlotOptions
    from etude.figures.sources import read_samples, samples_of

    asked = PlotOptions(**wish)
    if isinstance(source, Results):
        samples = samples_of(subject_of(source), str(source.directory))
    else:
        samples = read_samples([os.fspath(source)], asked)
    return Plot(make(kind or usual_kind(samples, asked), samples, asked), _style(size, font))


def _style(size: tuple[float, float | None] | None, font: float | None) -> Style:
    width, height = size or (None, None)
    usual = Style()
    return replace(usual, width=width or usual.width, height=height, font=font or usual.font)
