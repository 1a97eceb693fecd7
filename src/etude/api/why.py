"""Causes of the difference between two tests, and of the slow trials of one (`etude why`)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from etude.api.call import public
from etude.api.result import PathText, Result, frame_of
from etude.errors import InputError, UsageError
from etude.experiment import run as experiments
from etude.present.page.content import write
from etude.present.section import Section
from etude.present.sections.why import outliers_document, outliers_section, why_document, why_section
from etude.present.sections.why_page import why_page
from etude.why import outlier_trials
from etude.why.contributions import (
    FEW,
    Contribution,
    CountDifference,
    Split,
    count_differences,
    difference,
    split,
)
from etude.why.explained import place_for
from etude.why.instructions import PLACE as INSTRUCTIONS
from etude.why.instructions import (
    STATE,
    InstructionDifferences,
    check_simulator,
    count_instructions,
    read_instructions,
)
from etude.why.instrumented_pairs import BUDGET_S, Instrumented, instrument_pairs
from etude.why.outliers import Outliers
from etude.why.stack_export import exporter_of
from etude.why.stacks import mean_stacks

if TYPE_CHECKING:
    import polars

PLACE = "why"
"""Directory of the instrumented pairs in the results, unless another one is named."""
FEWEST_TRIALS = 10
"""Smallest number of trials whose slow ones are explained."""


@dataclass(frozen=True, repr=False)
class Why(Result):
    """Causes of a difference."""

    measured: Instrumented
    plain: Contribution
    """The difference of plain trials, s."""
    split: Split | None
    """Its causes in time; None without a timeline."""
    counts: tuple[CountDifference, ...]
    directory: Path
    """Directory of the instrumented pairs."""
    instructions: InstructionDifferences | None = None
    """None unless they were counted."""

    def section(self) -> Section:
        """The difference, its causes, the calls and instructions whose numbers differ."""
        return why_section(self.measured, self.plain, self.split, self.counts, self.instructions)

    def page(self) -> str:
        """A page in HTML: a waterfall of the causes, a flame graph, calls, files and processes."""
        return why_page(self.measured, self.plain, self.split, self.counts, self.instructions)

    def export(self, file: PathText) -> None:
        """Write the stacks of both tests for another program, which the ending of the file's name chooses:
        `.speedscope.json`, or `.perf.txt` (as `perf script` prints samples).

        Raises:
            UsageError: another ending; InputError: no stacks were kept; MachineRefuses: it cannot be written.
        """
        path = Path(os.fspath(file))
        exporter = exporter_of(path.name)
        stacks = mean_stacks(*([run.stacks for run in side if run.stacks] for side in self.measured.runs))
        if not stacks:
            raise InputError(
                f"{self.directory}: has no stacks: {path.name} needs pairs with a timeline; measure them with -o"
            )
        write(path, exporter(stacks, (self.measured.a, self.measured.b)))

    def document(self) -> dict[str, Any]:
        """The same for programs, as `etude why --json` prints it."""
        return why_document(self.measured, self.plain, self.split, self.counts, self.instructions)

    def to_frame(self) -> polars.DataFrame:
        """One row per listed cause: `process`, `kind`, `name`, `caller`, `seconds`, `low`, `high`, `share`."""
        rows = [
            {
                **asdict(c.cause),
                "seconds": c.mean_s,
                "low": c.low_s,
                "high": c.high_s,
                "share": c.mean_s / self.split.whole.mean_s if self.split.whole.mean_s else None,
            }
            for c in (self.split.listed if self.split else ())
            if c.cause and self.split
        ]
        texts = dict.fromkeys(("process", "kind", "name", "caller"), str)
        return frame_of(rows, {**texts, **dict.fromkeys(("seconds", "low", "high", "share"), float)})

    def __repr__(self) -> str:
        count = len(self.split.listed) if self.split else 0
        return f"<Why {self.measured.b} differs from {self.measured.a}: {count} causes>"


@public
def why(
    directory: PathText,
    tests: Sequence[str] = (),
    *,
    output: PathText | None = None,
    pairs: int | None = None,
    budget_s: float = BUDGET_S,
    instructions: bool = False,
    observe: experiments.Observer = experiments.ignore_events,
) -> Why:
    """Explain the difference of two tests of stored results by further pairs of instrumented trials (`etude why`).

    tests: two names (default: the first two). output: directory of the pairs (default: `why` in the results); what is
    there already is shown. pairs: number of pairs (default: as many as budget_s of wall-clock time allows).
    instructions: also count them by function, in further runs under valgrind, which take far longer.

    Raises:
        InputError: the results cannot be run again; UsageError: no such tests; CommandFailed: a command failed;
        MachineRefuses: there is no valgrind.
    """
    place = Path(os.fspath(directory))
    if instructions:
        check_simulator()
    if len(tests) not in (0, 2):
        raise UsageError(f"{len(tests)} tests: expected two, or none for the first two")
    if pairs is not None and pairs < FEW:
        raise UsageError(f"pairs {pairs}: expected {FEW} or more")
    names = (tests[0], tests[1]) if tests else None
    into, line = place_for(place, place / PLACE if output is None else Path(os.fspath(output)))
    found = instrument_pairs(place, names, into, pairs=pairs, budget_s=budget_s, observe=observe)
    found = replace(found, lacking=(*found.lacking, *([line] if line else [])))
    made = split(*found.runs) if all(len(side) >= FEW for side in found.runs) else None
    counted = count_instructions(into, observe) if instructions else None
    if counted is None and (into / INSTRUCTIONS / STATE).exists():
        counted = read_instructions(into)
    return Why(found, difference(*found.plain_s), made, tuple(count_differences(*found.calls)), into, counted)


@dataclass(frozen=True, repr=False)
class WhyOutliers(Result):
    """Slow trials of a test, and what differs in them."""

    measured: outlier_trials.OutlierTrials
    found: Outliers
    directory: Path
    """Directory of the trials."""
    earlier: str = ""
    """A line about trials that belong to earlier results; empty without any."""

    def section(self) -> Section:
        """The slow trials, what differs in them, and how it was compared."""
        return outliers_section(self.measured, self.found, self.earlier)

    def document(self) -> dict[str, Any]:
        """The same for programs, as `etude why --outliers --json` prints it."""
        return outliers_document(self.measured, self.found)

    def to_frame(self) -> polars.DataFrame:
        """One row per listed quantity: `source`, `name`, `file`, `unit`, `typical`, `slow`, `share`, `p`."""
        texts = dict.fromkeys(("source", "name", "file", "unit"), str)
        numbers = dict.fromkeys(("typical", "slow", "share", "p"), float)
        return frame_of(self.document()["causes"], {**texts, **numbers})

    def __repr__(self) -> str:
        return f"<WhyOutliers {self.measured.test}: {len(self.found.slow)} of {self.found.trials} trials are slow>"


@public
def why_outliers(
    directory: PathText,
    test: str | None = None,
    *,
    output: PathText | None = None,
    trials: int | None = None,
    budget_s: float = BUDGET_S,
    observe: experiments.Observer = experiments.ignore_events,
) -> WhyOutliers:
    """Explain the slow trials of one test of stored results by further trials under the recorder and the monitor
    (`etude why --outliers`).

    test: its name (default: the only one). output: directory of the trials (default: `why-outliers` in the results);
    what is there already is shown. trials: their number (default: as many as budget_s of wall-clock time allows).

    Raises:
        InputError: the results cannot be run again; UsageError: no such test; CommandFailed: a command failed.
    """
    if trials is not None and trials < FEWEST_TRIALS:
        raise UsageError(f"trials {trials}: expected {FEWEST_TRIALS} or more")
    place = Path(os.fspath(directory))
    into, line = place_for(place, place / outlier_trials.NAME if output is None else Path(os.fspath(output)))
    measured = outlier_trials.outlier_trials(
        place, test, into, trials=trials, budget_s=budget_s, observe=observe
    )
    return WhyOutliers(measured, measured.outliers(), into, line)
