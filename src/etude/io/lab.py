"""The whole lab: both sweeps, their reading, and the three figures."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from etude.errors import MachineRefuses
from etude.figures.save import save
from etude.figures.style import Style
from etude.io.pictures import figures_of
from etude.io.points import Swept, swept_of
from etude.io.readings import Reading, reading_of
from etude.io.sweeps import TOTALS
from etude.report.subject import Subject, subject_of
from etude.results.reader import Results


@dataclass(frozen=True, eq=False)
class Studied:
    """A sweep's results with their reading, and the files of its figures by name."""

    results: Results
    swept: Swept
    reading: Reading
    figures: Mapping[str, Path]
    undrawn: MachineRefuses | None = None
    """Why there are no figures."""


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


def lab(run: Callable[..., Results], directory: Path, suffix: str = "pdf") -> tuple[Studied, Studied]:
    """Both sweeps into `buffers` and `linking` below a directory, with the figures beside them.

    `run`: as `etude.io.sweep`, with what is common to both given already.
    """
    buffers = run(directory=directory / "buffers")
    first = study(buffers, directory, suffix)
    linking = run(totals=TOTALS, directory=directory / "linking")
    return first, study(linking, directory, suffix)
