"""Claims checked and decided (`etude claims`)."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from etude.api.call import plain, public
from etude.api.capacity import peak, surface
from etude.api.result import PathText, Result, frame_of
from etude.claims.check import assignments
from etude.claims.claims_file import FULL, ClaimsFile, Experiment, read_claims
from etude.claims.run import Observer, run_claims
from etude.claims.run import Result as ClaimResult
from etude.experiment import run as experiments
from etude.experiment.plan import CHECK_EACH, CHECK_FIRST, NewLimits, make_plan
from etude.experiment.session import new_directory
from etude.present.section import Section
from etude.present.sections.claims import claims_section
from etude.script.run import read_script, resume_script, run_script

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True, repr=False)
class ClaimVerdicts(Result):
    """The verdict on each claim of a file."""

    file: ClaimsFile
    results: tuple[ClaimResult, ...]
    directory: Path
    """Directory of the results."""

    def section(self) -> Section:
        """A table of the claims, and what would decide those that are undecided."""
        return claims_section(self.file, self.results)

    def to_frame(self) -> polars.DataFrame:
        """One row per claim: `id`, `status` (supported, refuted, undecided), `p`, `trials`, `text`."""
        rows = [
            {
                "id": r.claim.id,
                "status": r.status,
                "p": r.decision.p,
                "trials": r.trials,
                "text": r.claim.text,
            }
            for r in self.results
        ]
        return frame_of(rows, {"id": str, "status": str, "p": float, "trials": int, "text": str})

    def __repr__(self) -> str:
        told = ", ".join(f"{r.claim.id} {r.status}" for r in self.results)
        return f"<ClaimVerdicts of {self.file.path.name}: {told}>"


class Runner:
    """Measures experiments of claims by the functions of this interface."""

    def __init__(self, observe: experiments.Observer = experiments.ignore_events) -> None:
        self._observe = observe

    def measure(self, experiment: Experiment, place: Path, trials: int) -> None:
        """Bring the results in `place` to so many trials of each test; experiments that cannot be extended are run
        once. Raises EtudeError."""
        _MEASURES[experiment.kind](self, experiment, place, trials)

    def _commands(self, experiment: Experiment, place: Path, trials: int) -> None:
        if (place / "experiment.json").exists():
            experiments.resume(place, NewLimits(trials=trials), observe=self._observe)
            return
        plan = make_plan(
            experiment.tests(),
            name=experiment.name,
            trials=trials,
            budget_s=math.inf,
            shell=experiment.shell,
            primary=experiment.primary,
            check_output=CHECK_EACH if experiment.guards_output else CHECK_FIRST,
        )
        experiments.run(plan, place, observe=self._observe, verb="bench")

    def _script(self, experiment: Experiment, place: Path, trials: int) -> None:
        if (place / "experiment.json").exists():
            resume_script(place, observe=self._observe)
        else:
            script = read_script(str(experiment.file), assignments(experiment))
            run_script(script, place, observe=self._observe)

    def _peak(self, experiment: Experiment, place: Path, trials: int) -> None:
        plain(peak)(
            None if experiment.simulate else experiment.file,
            simulate=experiment.simulate,
            directory=place,
            factors=experiment.variables,
            budget_s=experiment.budget_s,
        )

    def _surface(self, experiment: Experiment, place: Path, trials: int) -> None:
        plain(surface)(experiment.file, directory=place, budget_s=experiment.budget_s)


_MEASURES: dict[str, Callable[[Runner, Experiment, Path, int], None]] = {
    "commands": Runner._commands,
    "replay": Runner._commands,
    "script": Runner._script,
    "peak": Runner._peak,
    "surface": Runner._surface,
}


@public
def claims(
    file: PathText,
    ids: Sequence[str] = (),
    *,
    scale: str = FULL,
    directory: PathText | None = None,
    budget_s: float = math.inf,
    observe: Observer = lambda experiment, trials: None,
    observe_trials: experiments.Observer = experiments.ignore_events,
) -> ClaimVerdicts:
    """Decide the claims of a file by running their experiments (`etude claims run`).

    ids: claims to decide (default: all). directory: results directory; one of the same claims is resumed.
    budget_s: wall-clock time. observe: called before each look with the experiment and its number of trials;
    observe_trials: called with each event of commands and scripts.

    Raises:
        InputError: the file is invalid, or the directory is of other claims; UsageError: no such claim or scale.
    """
    read = read_claims(Path(os.fspath(file)), scale)
    chosen = read.chosen(tuple(ids))
    place = new_directory(None, f"claims-{read.path.stem}") if directory is None else Path(directory)
    found = run_claims(read, chosen, place, Runner(observe_trials), budget_s=budget_s, observe=observe)
    return ClaimVerdicts(read, found, place)
