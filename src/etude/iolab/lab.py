"""The whole lab: both sweeps, their reading, the three figures, and the trials as CSV; resumed where it was ended."""

from __future__ import annotations

import csv
import io
import json
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from etude.analysis.subject import Subject, subject_of
from etude.codec import decoded, parsed
from etude.errors import InputError, Interrupted, MachineRefuses
from etude.experiment.session import existing_results, holds_results
from etude.figures.save import save
from etude.figures.style import Style
from etude.iolab.pictures import figures_of
from etude.iolab.points import Swept, swept_of
from etude.iolab.readings import Reading, reading_of
from etude.iolab.sweeps import TOTALS
from etude.osutil.trust import open_for_root
from etude.osutil.user_files import write_user_file
from etude.results.results import Results
from etude.results.writer import write_error

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
