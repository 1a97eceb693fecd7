"""A result of the Python interface: data that shows itself in a terminal and in a notebook."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

from etude.analysis.subject import subject_of
from etude.analysis.verdict import Verdict
from etude.errors import UsageError
from etude.figures import KINDS
from etude.figures.data import Figure
from etude.figures.plot import Plot, make, usual_kind
from etude.figures.plot_options import PlotOptions
from etude.figures.sources import Sample, samples_of
from etude.figures.style import Style
from etude.present.export import as_html
from etude.present.section import Block, Section
from etude.present.sentences.comparison import ratio_text
from etude.present.sentences.verdict import verdict_lines
from etude.present.terminal import Terminal, show
from etude.present.to_html import notebook_html
from etude.present.to_json import summary_figures
from etude.results.reader import load_results
from etude.results.results import Results
from etude.units.formatting import counted

if TYPE_CHECKING:
    import polars

PathText = str | os.PathLike[str]
METRICS = {
    **dict.fromkeys(("test", "metric", "unit"), str),
    "count": int,
    **dict.fromkeys(("mean", "low", "high", "median", "median_low", "median_high"), float),
    **dict.fromkeys(("minimum", "maximum", "deviation"), float),
}
RATIOS = {
    "base": str,
    "other": str,
    **dict.fromkeys(("ratio", "low", "high", "p"), float),
    "pairs": int,
}
"""Columns of tables that exist without rows, too."""


def frame_of(rows: Sequence[Mapping[str, Any]], schema: Mapping[str, type]) -> polars.DataFrame:
    """A table of rows, with every column of the schema. One without any value has its type there, else numbers."""
    import polars

    if not rows:
        return polars.DataFrame(schema=schema)
    found = polars.DataFrame(rows, infer_schema_length=None)
    missing = [polars.lit(None).alias(name) for name in schema if name not in found.columns]
    found = found.with_columns(missing)
    empty = [name for name, kind in found.schema.items() if kind == polars.Null]
    return found.cast({name: schema.get(name, float) for name in empty})


class Result:
    """Base of results: `print` shows the text of the command line, a notebook its sentences and tables."""

    def section(self) -> Section:
        """The result as sentences, figures and tables."""
        raise NotImplementedError

    def to_frame(self) -> polars.DataFrame:
        """The result as a table."""
        raise NotImplementedError

    def figures(self) -> dict[str, Figure]:
        """Its figures by name; the first is the usual one."""
        return {picture.caption: picture.figure for picture in self.section().pictures}

    def blocks(self) -> Iterable[Block]:
        """The blocks of a terminal."""
        return self.section().blocks

    def plot(self, name: str | None = None) -> Plot:
        """One of its figures; None: the usual one. Raises UsageError for a name that there is not."""
        figures = self.figures()
        if not figures or name not in (None, *figures):
            wanted = "plot" if name is None else f"plot {name!r}"
            raise UsageError(f"{wanted}: {self!r} has {' and '.join(figures) or 'no figure'}")
        return Plot(figures[name or next(iter(figures))])

    def __str__(self) -> str:
        text = io.StringIO()
        plain = {name: value for name, value in os.environ.items() if name != "FORCE_COLOR"}  # set by Jupyter
        show(self.blocks(), Terminal(text, plain))
        return text.getvalue().rstrip("\n")

    def _repr_html_(self) -> str:
        return notebook_html(self.section())


class ShownResults(Results):
    """Measurements of an experiment, with their table and figures."""

    def to_frame(self) -> polars.DataFrame:
        """One row per measurement, same as `frame()`."""
        return self.frame()

    def plot(self, kind: str | None = None) -> Plot:
        """A figure of one of `etude.figures.KINDS`; None: the usual one. Raises UsageError for another kind."""
        return plotted(samples_of(subject_of(self), str(self.directory)), kind, PlotOptions())


def shown_results(directory: PathText) -> ShownResults:
    """The measurements of a results directory. Raises InputError: there are none."""
    found = load_results(directory)
    return ShownResults(**{each.name: getattr(found, each.name) for each in fields(found)})


class ShownVerdict(Verdict):
    """A verdict that shows itself: `print` has it as text, a notebook as a table."""

    def __str__(self) -> str:
        return "\n".join(verdict_lines(self))

    def __repr__(self) -> str:
        tests = counted(len(self.tests), "test")
        ratios = [f"{c.other} / {c.base} = {ratio_text(c.ratio)}" for c in self.comparisons[:1]]
        return f"<Verdict of {self.directory}: {', '.join([tests, *ratios])}>"

    def _repr_html_(self) -> str:
        return as_html(self)

    @cached_property
    def results(self) -> ShownResults:
        """The measurements that it is about. Raises InputError: it is about a file of another program."""
        return shown_results(self.directory)

    def to_frame(self) -> polars.DataFrame:
        """One row per test and metric: `test`, its parameters, `metric`, `unit`, `count`, `mean`, `low`, `high`,
        `median`, `median_low`, `median_high`, `minimum`, `maximum`, `deviation`; all in `unit`, except `count`."""
        rows = [
            {"test": test.test, **test.parameters, "metric": m.metric, "unit": m.unit}
            | (summary_figures(m.summary) if m.summary else {})
            for test in self.tests
            for m in test.metrics
        ]
        return frame_of(rows, METRICS)

    def ratios_frame(self) -> polars.DataFrame:
        """One row per comparison: `base`, `other`, `ratio` (other/base), `low`, `high`, `p`, `pairs`."""
        rows = [
            {
                "base": c.base,
                "other": c.other,
                "ratio": c.ratio.ratio,
                "low": c.ratio.low,
                "high": c.ratio.high,
                "p": c.ratio.p,
                "pairs": c.ratio.count,
            }
            for c in self.comparisons
        ]
        return frame_of(rows, RATIOS)

    def plot(self, kind: str | None = None) -> Plot:
        """A figure of one of `etude.figures.KINDS`; None: the usual one. Raises UsageError for another kind."""
        samples, options = samples_of(self.subject, self.subject.label), PlotOptions()
        return plotted(samples, kind, options)


def plotted(
    samples: Sequence[Sample], kind: str | None, options: PlotOptions, style: Style | None = None
) -> Plot:
    """A figure of samples; None: of the usual kind. Raises UsageError for a kind that there is not."""
    check_kind(kind)
    return Plot(make(kind or usual_kind(samples, options), samples, options), style or Style())


def shown_verdict(verdict: Verdict) -> ShownVerdict:
    """The same verdict, which shows itself."""
    return ShownVerdict(**{each.name: getattr(verdict, each.name) for each in fields(verdict)})


def check_kind(kind: str | None) -> None:
    """Raises UsageError for a kind of figure that there is not."""
    if kind is not None and kind not in KINDS:
        raise UsageError(f"kind {kind!r}: expected one of {', '.join(KINDS)}")
