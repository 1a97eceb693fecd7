"""The whole lab: both sweeps, their reading, the three figures, and the trials as CSV; resumed where it was ended."""

from __future__ import annotations

import csv
import io
import json
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from etude.analysis.subject import Subject, subject_of
from etude.codec import decoded, parsed
from etude.errors import InputError, Interrupted, MachineRefuses
from etude.experiment.session import existing_results, holds_results
from etude.figures.data import Figure, Line
from etude.figures.plot import make
from etude.figures.plot_options import PlotOptions, Threshold
from etude.figures.save import save
from etude.figures.sources import Sample
from etude.figures.style import Style
from etude.iolab.comparisons import Comparison, comparisons_of
from etude.iolab.costs import Costs, costs_of
from etude.iolab.landmarks import landmarks
from etude.iolab.points import Over, Swept, swept_of, values_of
from etude.iolab.shapes import Parting, Shape, partings_of, shape_of
from etude.iolab.sweeps import BANDWIDTH, STORAGE, TOTALS
from etude.osutil.trust import open_for_root, write_user_file
from etude.results.results import Results
from etude.results.writer import write_error
from etude.units.formatting import quantity

FORMAT, VERSION, RECORD = "etude-io-lab", 1, "lab.json"
SWEEPS: Mapping[str, Mapping[str, Any]] = {"buffers": {}, "linking": {"totals": TOTALS}}
"""Options of each sweep, by its directory."""

Run = Callable[..., Results]
Resume = Callable[[Path], Results]


@dataclass(frozen=True, eq=False)
class Studied:
    """A sweep's results with their reading, and the files of its figures by name."""

    results: Results
    swept: Swept
    reading: Reading
    figures: Mapping[str, Path]
    undrawn: MachineRefuses | None = None
    """Reason why there are no figures."""


def study(results: Results, where: str | os.PathLike[str] | None = None, suffix: str = "pdf") -> Studied:
    """Read a sweep and draw its figures into a directory (its own, unless another is given).

    Raises:
        InputError: it is none.
    """
    subject = subject_of(results)
    swept = swept_of(subject)
    reading = reading_of(swept)
    try:
        return Studied(results, swept, reading, draw(subject, Path(where or results.directory), suffix))
    except MachineRefuses as error:
        return Studied(results, swept, reading, {}, error)


def read_only(results: Results) -> Studied:
    """Read a sweep, without figures. Raises InputError: it is none."""
    swept = swept_of(subject_of(results))
    return Studied(results, swept, reading_of(swept), {})


def draw(subject: Subject, where: Path, suffix: str = "pdf", style: Style | None = None) -> dict[str, Path]:
    """The figures of a sweep as files below `where`, by name.

    Raises:
        InputError: it is none; MachineRefuses: they cannot be written.
    """
    found = {}
    for name, figure in figures_of(subject).items():
        found[name] = where / f"{name}.{suffix}"
        save(figure, str(found[name]), style or Style())
    return found


def write_text(path: Path, text: str) -> None:
    """Write a file. Raises MachineRefuses where that cannot be."""
    try:
        write_user_file(path, text.encode("utf-8", "replace"))
    except OSError as error:
        raise write_error(path, error) from error


@dataclass(frozen=True)
class Lab:
    """The options that both sweeps have in common, as in lab.json of the lab's directory."""

    where: str
    """Absolute."""
    trials: int | None = None
    cpu: int | None = None
    seed: int | None = None


def begin(directory: Path, lab: Lab) -> None:
    """Record what a lab is, so that it can be resumed.

    Raises:
        InputError: the directory holds a lab already; MachineRefuses: it cannot be written.
    """
    if (directory / RECORD).exists() or any(holds_results(directory / name) for name in SWEEPS):
        raise existing_results(directory)
    document = {"format": FORMAT, "version": VERSION, **asdict(lab)}
    write_text(directory / RECORD, json.dumps(document, indent=1) + "\n")


def read_lab(directory: Path) -> Lab:
    """The lab that was begun in a directory.

    Raises:
        InputError: there is none, none that this version can resume as a whole, or this is root, and others could have
            written it.
    """
    path = directory / RECORD
    try:
        with open(open_for_root(path), encoding="utf-8") as file:
            found = decoded(dict[str, Any], parsed(file.read(), str(path)), str(path))
        if (found.pop("format", None), found.pop("version", None)) != (FORMAT, VERSION):
            raise InputError(f"{path}: expected {FORMAT}, version {VERSION}; begin the lab anew")
        return decoded(Lab, found, str(path), only=True)
    except FileNotFoundError:
        alone = " and ".join(str(directory / name) for name in SWEEPS if holds_results(directory / name))
        hint = f"; resume a sweep of it by etude io sweep --resume: {alone}" if alone else ""
        raise InputError(f"{directory}: holds no {RECORD}, so no lab that can be resumed{hint}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: is no record of a lab: {error}; begin the lab anew") from None


def run_lab(
    lab: Lab, directory: Path, run: Run, resume: Resume, suffix: str = "pdf"
) -> tuple[Studied, Studied]:
    """Both sweeps into `buffers` and `linking` below a directory, with the figures and their trials as CSV beside.

    A sweep that was begun there goes on; one that is complete is only read. `run`: as `etude.io.sweep`; `resume`: as
    `run_sweep.resume_sweep`.
    """
    found = []
    for name, options in SWEEPS.items():
        path = directory / name
        try:
            if holds_results(path):
                results = resume(path)
            else:
                results = run(
                    lab.where, trials=lab.trials, cpu=lab.cpu, seed=lab.seed, directory=path, **options
                )
        except Interrupted as error:
            error.args = (
                f"{error}; or with the whole lab: etude io lab --resume {shlex.quote(str(directory))}",
            )
            raise
        studied = study(results, directory, suffix)
        write_text(directory / f"{name}.csv", csv_text([studied.swept]))
        found.append(studied)
    first, second = found
    return first, second


COLUMNS = ("over", "curve", "size_bytes", "trial", "metric", "value", "unit")

Row = dict[str, str | int | float]


def rows_of(swept: Swept) -> Iterator[Row]:
    """A row a kept trial: curve by curve, sizes rising, trials from 1 in the order in which they ran."""
    unit = "B/s" if swept.over == "buffer" else "s"
    for curve in swept.curves:
        for size, values in zip(curve.sizes, curve.samples, strict=True):
            for trial, value in enumerate(values, 1):
                row = (swept.over, curve.name, int(size), trial, swept.metric, float(value), unit)
                yield dict(zip(COLUMNS, row, strict=True))


def csv_text(sweeps: Iterable[Swept]) -> str:
    """The rows of all of them under one head."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for swept in sweeps:
        writer.writerows(rows_of(swept))
    return text.getvalue()


@dataclass(frozen=True)
class Reading:
    """Costs, shapes and comparisons of the curves; `present.sentences.io_lab` has the sentences on them."""

    swept: Swept
    costs: tuple[Costs, ...] = ()
    """Costs of each curve of a sweep over buffers."""
    shapes: tuple[Shape, ...] = ()
    """Peak, plateau, steps and scatter of each curve of a sweep over buffers."""
    partings: tuple[Parting, ...] = ()
    """Sizes of a sweep over buffers from which on touched or huge pages are quicker."""
    comparisons: tuple[Comparison, ...] = ()
    """Each program of a sweep over totals against the first."""

    @property
    def over(self) -> Over:
        """The quantity that the sweep is over."""
        return self.swept.over


def reading_of(swept: Swept) -> Reading:
    """The reading of a sweep."""
    if swept.over == "total":
        return Reading(swept, comparisons=comparisons_of(swept))
    costs = tuple(found for curve in swept.curves if (found := costs_of(curve, swept)) is not None)
    shapes = tuple(shape_of(curve) for curve in swept.curves if curve.sizes.size > 1)
    return Reading(swept, costs, shapes, partings_of(swept))


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
