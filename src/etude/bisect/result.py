"""A bisection as far as it has come, and the same from its results on disk."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from etude import codec
from etude.bisect.bisection import FIRST_BLOCKS, FIRST_TRIALS, Bisection, Run, Setting
from etude.bisect.request import NAME_LENGTH, KnownCommit, Request, StoredRequest, request_of
from etude.bisect.simulated import Outlook
from etude.bisect.verdict import Answer
from etude.commits.build import State
from etude.errors import InputError
from etude.experiment.progress import Progress, Trial
from etude.experiment.session import progress_of
from etude.results.model import FIRST_RUN
from etude.results.reader import read_experiment

MEMBER = "bisect"
"""Member of experiment.json with the builds and the notes of all sessions."""


@dataclass(frozen=True)
class Notice:
    """Progress for an observer: `what` happens to a commit."""

    what: str
    """start, outlook, build, skip, trial or judged."""
    commit: int = 0
    detail: str = ""
    outlook: Outlook | None = None


@dataclass(frozen=True)
class KnownBuild:
    """A build of a commit, as it is stored with the results."""

    state: State
    elapsed_s: codec.From0
    """Duration of the last build of this commit …"""
    spent_s: codec.From0
    """… and of all that were made here: builds are kept, and may have been made by another bisection."""
    last_line: str = ""
    """Last line of its output."""


@dataclass(frozen=True)
class Builds:
    """Builds of a bisection by the SHA of their commit, and notes on them."""

    builds: dict[str, KnownBuild] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass
class BisectResult:
    """A bisection as far as it has come."""

    request: Request
    commits: tuple[KnownCommit, ...]
    state: Bisection
    skipped: dict[int, str] = field(default_factory=dict)
    """Reasons why commits were skipped, by index."""
    builds: dict[int, KnownBuild] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    """Doubts: builds that write elsewhere, programs that change their tree, uncommitted changes."""
    measuring_s: float = 0.0

    @property
    def answer(self) -> Answer:
        """The answer so far; *undecided* before there is a posterior."""
        return self.state.answer or Answer("undecided", 1, len(self.commits) - 1, 1.0)

    @property
    def building_s(self) -> float:
        """Time of builds that were made for this bisection."""
        return sum(build.spent_s for build in self.builds.values())

    @property
    def last(self) -> int:
        """Index of BAD."""
        return len(self.commits) - 1

    def end_name(self, place: int) -> str:
        """`GOOD` or `BAD` with its SHA; empty for a commit between them."""
        name = {0: "GOOD", self.last: "BAD"}.get(place)
        return f"{name} {self.commits[place].sha[:NAME_LENGTH]}" if name else ""

    def note(self, text: str) -> None:
        """Add a note, once."""
        if text not in self.notes:
            self.notes.append(text)

    def add_build(self, place: int, build: KnownBuild) -> None:
        """A commit was built, or failed to build, which does not skip it yet."""
        self.builds[place] = build
        if build.state == "built":
            self.state.add_build(place, build.elapsed_s)

    def skip(self, place: int, why: str) -> None:
        """A commit between GOOD and BAD cannot be built or measured."""
        self.state.add_failure(place)
        self.skipped[place] = why

    def add_trial(self, place: int, trial: Trial, block: int) -> bool:
        """Add a finished trial; True unless its commit is skipped for it.

        Raises:
            InputError: it is of GOOD or BAD, and has no positive value.
        """
        why, value = self._missing(trial), trial.value(self.request.metric)
        if why:
            if end := self.end_name(place):
                raise InputError(f"{end}: {why}: expected a number above 0")
            self.skip(place, why)
            return False
        assert value is not None
        seconds = trial.value("elapsed") or 0.0
        self.measuring_s += seconds
        self.state.add_trial(Run(place, block), math.log(value), seconds)
        return True

    def _missing(self, trial: Trial) -> str:
        """Reason why a trial has no usable value; empty if it has one."""
        metric = self.request.metric
        found = trial.first.metrics.get(metric)
        if found is None or found[0] is None:
            reason = found[2] if found is not None and len(found) > 2 else "not measured"
            return f"metric {metric}: {reason}"
        value = trial.value(metric)
        return "" if value is not None and 0.0 < value < math.inf else f"metric {metric} is {value}"


def new_result(request: Request, commits: tuple[KnownCommit, ...]) -> BisectResult:
    """A bisection before its first build."""
    setting = Setting(len(commits), math.log1p(request.at_least), request.confidence, request.seed)
    return BisectResult(request, commits, Bisection(setting))


def restore(result: BisectResult, document: Mapping[str, Any], progress: Progress, source: str) -> None:
    """Take up builds and trials of earlier sessions. GOOD and BAD are never skipped: they are tried again.

    Raises:
        InputError: as `BisectResult.add_trial`; or the builds cannot be read.
    """
    found = codec.decoded(Builds, document.get(MEMBER) or {}, source, MEMBER, only=True)
    for note in found.notes:
        result.note(note)
    places = {commit.sha: place for place, commit in enumerate(result.commits)}
    by_name = {sha[:NAME_LENGTH]: place for sha, place in places.items()}
    ends = (0, result.last)
    for sha, build in found.builds.items():
        if sha in places:
            result.add_build(places[sha], build)
            if build.state != "built" and places[sha] not in ends:
                result.skip(places[sha], build.last_line or build.state)
    trials = [
        (by_name[name], trial)
        for name in progress.measurements()
        for trial in progress.trials(name)
        if name in by_name
    ]
    for place, trial in sorted(trials, key=lambda each: (each[1].first.block, each[1].first.order or 0)):
        if place in result.skipped:
            continue
        if trial.kept:
            result.state.session = trial.first.sitting
            result.add_trial(place, trial, trial.first.block - 1)
        elif place not in ends and (why := failure_of(result, trial)):
            result.skip(place, why)


def failure_of(result: BisectResult, trial: Trial) -> str:
    """Reason to skip a commit after an excluded trial; empty if there is none, as after an interruption."""
    if trial.first.why == "failed":
        said = ((trial.first.stderr or {}).get("tail") or "").strip().splitlines()
        return trial.first.ending_here() + (f": {said[-1]}" if said else "")
    return result._missing(trial) if trial.first.why == FIRST_RUN and result.request.pattern else ""


def to_document(result: BisectResult) -> dict[str, Any]:
    """Builds and notes as they are stored."""
    builds = {result.commits[place].sha: build for place, build in sorted(result.builds.items())}
    return asdict(Builds(builds, result.notes))


def stored_bisection(directory: Path) -> BisectResult:
    """A bisection as it lies on disk, also an unfinished one; its repository is not needed.

    Raises:
        InputError: the directory holds no bisection, or it was edited.
    """
    return result_of(directory, read_experiment(directory))


def result_of(directory: Path, document: Mapping[str, Any]) -> BisectResult:
    """The same from an experiment.json that was read. Raises: as `stored_bisection`."""
    stored: StoredRequest = request_of(document, directory)
    result = new_result(stored.request, stored.commits)
    restore(result, document, progress_of(directory, document), str(directory / "experiment.json"))
    judge(result)
    return result


def judge(result: BisectResult) -> None:
    """Posterior and answer of all trials so far, unless GOOD and BAD have too few."""
    measured = result.state.evidence.commits.tolist()
    if min(measured.count(0), measured.count(result.last)) >= FIRST_BLOCKS * FIRST_TRIALS:
        result.state.judge()
