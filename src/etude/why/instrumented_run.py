"""A run under instruments: each trial's file gets the trial's number at once, so that an interrupted run is continued
and no file is taken for that of another trial.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from etude.errors import InputError, MachineRefuses, UsageError
from etude.experiment import run as experiments
from etude.experiment.bench import Event
from etude.experiment.monitoring import DEFAULT_MONITORING, Monitoring
from etude.experiment.plan import Plan, from_document
from etude.experiment.progress import Progress, Trial, trials_of
from etude.osutil.files import try_lock
from etude.results.model import Measurement
from etude.results.reader import load_results, read_experiment

RAW = "raw"
"""Directory of the files of the instruments; removed when they are read."""
VERB = "why"
_TRIAL = "trial-"
Item = TypeVar("Item")


@contextmanager
def alone_in(place: Path) -> Iterator[None]:
    """Keeps others out of the files of the instruments. Raises MachineRefuses: another process uses them."""
    raw = place / RAW
    raw.mkdir(parents=True, exist_ok=True)
    file = os.open(raw, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if not try_lock(file):
            raise MachineRefuses(f"{place}: another Étude is writing here; wait for it, or end it")
        yield
    finally:
        os.close(file)


def raw_place(place: Path, side: int, instrument: int) -> Path:
    """Directory of the files that one instrument leaves of one test."""
    return place / RAW / f"{side}{instrument}"


def command_line(directory: Path, place: Path, names: Sequence[str], *options: str) -> list[str]:
    """The command that continues these measurements."""
    ends = ["--"] if any(name.startswith("-") for name in names) else []
    return ["etude", VERB, *options, "-o", str(place), *ends, str(directory), *names]


def unfinished_plan(place: Path, kind: str) -> Plan:
    """The plan of measurements in `place` that were not finished. kind: name of such plans.

    Raises:
        InputError: there are other results.
    """
    source = place / "experiment.json"
    document = read_experiment(place)
    if document.get("verb") != VERB or document["name"] != kind:
        raise InputError(f"{place}: holds other results; name another directory with -o")
    return from_document(document["plan"], str(source))


def check_same_tests(place: Path, names: Sequence[str], stored: Sequence[str]) -> None:
    """Raise UsageError if `place` is of other tests than these; no names are those that are stored."""
    if names and tuple(names) != tuple(stored[: len(names)]):
        raise UsageError(
            f"{place}: is of {' and '.join(map(repr, stored))}, not of {' and '.join(map(repr, names))}; "
            "name another directory with -o"
        )


def run_instrumented(
    plan: Plan,
    place: Path,
    sides: Mapping[str, Path],
    command: Sequence[str],
    observe: experiments.Observer,
    monitor: Monitoring | None = DEFAULT_MONITORING,
) -> None:
    """Run a plan into `place`, or what is missing of it there. sides: the directory of each instrumented test's files.

    command: the command that continues it, of a new one.

    Raises:
        EtudeError: same as `etude.experiment.run.run`.
    """
    begun = (place / "experiment.json").exists()
    stored = load_results(place).measurements if begun else {}
    for name, raw in sides.items():
        raw.mkdir(parents=True, exist_ok=True)
        for last in trials_of(stored.get(name, ()))[-1:]:
            # It was stored, and what followed was interrupted.
            if not (raw / f"{_TRIAL}{last.first.trial}").exists():
                _claim(raw, last)
        for file in raw.iterdir():  # of a trial that was interrupted
            if not file.name.startswith(_TRIAL):
                _remove(file)

    def claim(event: Event, progress: Progress) -> None:
        for test in event.tests if event.what == "trial" else ():
            if (raw := sides.get(test.name)) is not None:
                _claim(raw, progress.trials(test.name)[-1])
        observe(event, progress)

    if begun:
        experiments.resume(place, observe=claim)
    else:
        experiments.run(plan, place, observe=claim, command_line=command, verb=VERB, monitor=monitor)


def _claim(raw: Path, trial: Trial) -> None:
    for file in raw.iterdir():
        if not file.name.startswith(_TRIAL):
            file.rename(raw / f"{_TRIAL}{trial.first.trial}") if trial.kept else _remove(file)


def _remove(file: Path) -> None:
    shutil.rmtree(file) if file.is_dir() else file.unlink()


def kept_trials(measurements: Iterable[Measurement]) -> dict[int, Trial]:
    """The included trials of a test by block."""
    return {trial.first.block: trial for trial in trials_of(measurements) if trial.kept}


def claimed(trials: Mapping[int, Trial], raw: Path) -> dict[int, Path]:
    """The files that these trials left, by block."""
    files = {block: raw / f"{_TRIAL}{trial.first.trial}" for block, trial in trials.items()}
    return {block: file for block, file in files.items() if file.exists()}


def paired(sides: Sequence[Mapping[int, Item]]) -> list[list[Item]]:
    """Items of each side of the blocks that all sides have, in order."""
    shared = sorted(set(sides[0]).intersection(*sides[1:]))
    return [[side[block] for block in shared] for side in sides]
