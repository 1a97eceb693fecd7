"""Runs a bisection: builds and trials of commits into a results directory, until the answer is known.

Builds and trials on disk are the whole state: a bisection that was killed continues from them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from etude.bisect.bisection import Bisection, Build, Run, Setting
from etude.bisect.request import NAME_LENGTH, KnownCommit, Request, known_commits, read_request, to_plan
from etude.bisect.simulated import Outlook, outlook_of
from etude.bisect.verdict import Answer
from etude.commits.build import Build as BuiltTree
from etude.commits.build import Recipe
from etude.commits.builds import BuildCache
from etude.commits.commit_range import CommitRange, commit_range
from etude.errors import CommandFailed, InputError, Interrupted, UsageError
from etude.experiment.bench import Bench
from etude.experiment.plan import Plan, RuleSpec
from etude.experiment.progress import Progress, Trial
from etude.experiment.remote_engine import engine_maker, require_local_engine
from etude.experiment.session import SessionContext, new_directory, new_document, run_session
from etude.experiment.test import Test
from etude.experiment.trial import TrialPosition, run_trial
from etude.results.model import FIRST_RUN, METRICS, signal_name
from etude.results.reader import read_trusted_experiment
from etude.results.trial_join import kind_of, stored_unit
from etude.results.writer import directory_name, sole_writer

BUILDS = "builds"
"""Subdirectory of the builds."""


@dataclass(frozen=True)
class Notice:
    """Progress for an observer: `what` happens to a commit."""

    what: str
    """start, outlook, build, skip, trial or judged."""
    commit: int = 0
    detail: str = ""
    outlook: Outlook | None = None


@dataclass
class BisectResult:
    """A bisection as far as it has come."""

    request: Request
    commits: tuple[KnownCommit, ...]
    state: Bisection
    skipped: dict[int, str] = field(default_factory=dict)
    """Reasons why commits were skipped, by index."""
    notes: list[str] = field(default_factory=list)
    """Doubts: builds that write elsewhere, programs that change their tree, uncommitted changes."""
    building_s: float = 0.0
    measuring_s: float = 0.0

    @property
    def answer(self) -> Answer:
        """The answer so far; *undecided* before there is a posterior."""
        return self.state.answer or Answer("undecided", 1, len(self.commits) - 1, 1.0)


Observer = Callable[[Notice, BisectResult], None]


def ignore(notice: Notice, result: BisectResult) -> None:
    """An observer that does nothing."""


def bisect(
    request: Request,
    directory: Path | None = None,
    *,
    observe: Observer = ignore,
    command_line: Sequence[str] = (),
) -> tuple[Path, BisectResult]:
    """A new bisection; its results go to `directory` (default etude-results/bisect-UTCTIME).

    Raises:
        EtudeError: see the classes of etude.errors; InputError also for a repository, range or metric that does not
            fit; CommandFailed: GOOD or BAD does not build, or cannot be measured. What was measured is on disk.
    """
    require_local_engine("a bisection")
    if not request.pattern and request.metric not in METRICS:
        raise UsageError(
            f"--metric {request.metric}: Étude measures {', '.join(sorted(METRICS))}; a number that the command prints needs "
            "NAME=REGEX"
        )
    found = commit_range(request.repository, request.good, request.bad, ancestry=request.ancestry)
    path = new_directory(directory, "bisect")
    own = {}
    if request.pattern:
        unit = stored_unit(request.unit).base
        own = {request.metric: {"unit": unit, "kind": kind_of(unit)}}
    plan = to_plan(request, known_commits(found))
    document = new_document("bisect", "bisect", command_line, plan, "", [], own)
    with sole_writer(path):
        return path, _Runner(request, found, path, document, observe).run()


def resume(directory: Path, *, budget_s: float | None = None, observe: Observer = ignore) -> BisectResult:
    """Continue a bisection, or read a finished one. budget_s: in place of its limit.

    Raises:
        EtudeError: as `bisect`; InputError: the repository has other commits now.
    """
    stored = read_request(directory)
    with sole_writer(directory):
        document = read_trusted_experiment(directory)
        found = commit_range(
            stored.request.repository,
            stored.request.good,
            stored.request.bad,
            ancestry=stored.request.ancestry,
        )
        if known_commits(found) != stored.commits:
            raise InputError(
                f"{directory}: {stored.request.good}..{stored.request.bad} were other commits when it began: "
                "begin a new bisection"
            )
        request = stored.request
        if budget_s is not None:
            request = replace(request, budget_s=budget_s)
            document["plan"] = to_plan(request, stored.commits)
        return _Runner(request, found, directory, document, observe).run()


class _Runner:
    """One session of a bisection."""

    def __init__(
        self, request: Request, found: CommitRange, path: Path, document: dict[str, Any], observe: Observer
    ) -> None:
        self.path, self.document, self.observe = path, document, observe
        self.found = found
        setting = Setting(len(found.commits), math.log1p(request.at_least), request.confidence, request.seed)
        self.result = BisectResult(request, known_commits(found), Bisection(setting))
        if found.dirty:
            self.result.notes.append("dirty")
        if found.submodules:
            self.result.notes.append("submodules")
        place = Path(request.builds) if request.builds else path / BUILDS
        recipe = Recipe(request.build, request.build_limit_s)
        self.cache = BuildCache(found.repository, place, recipe, limit_bytes=request.cache_bytes)
        self.trees: dict[int, BuiltTree] = {}
        self.held = ExitStack()

    def run(self) -> BisectResult:
        """Run the session."""
        with self.held:
            run_session(self.path, self.document, engine_maker(), self._work)
        return self.result

    def _work(self, context: SessionContext) -> list[str]:
        request, state = self.result.request, self.result.state
        tests = (Test("bisect", request.command),)
        plan = Plan(
            "bisect", tests, RuleSpec("fixed-count", {"count": 1}), seed=request.seed, primary=request.metric
        )
        bench = Bench(
            plan,
            context.writer,
            context.progress,
            context.session,
            context.watch,
            context.engine,
            context.make_engine,
            lambda event, progress: None,
            context.kernel,
            entries={test["name"]: test for test in context.document["tests"]},
        )
        self._restore(context.progress)
        state.session = context.session.number
        self._notify("start")
        foreseen = False
        while not isinstance(action := state.action(), Answer):
            if request.budget_s is not None and self._spent_s() >= request.budget_s:
                break
            if isinstance(action, Build):
                self._build(action.commit)
            else:
                if state.posterior is not None and not foreseen:
                    foreseen = True
                    self._notify("outlook", outlook=outlook_of(state))
                self._measure(bench, context, action)
            _raise_if_interrupted(bench)
        if state.posterior is None and state.trials:
            state.judge()
        self._check_trees()
        self._notify("judged")
        return [self.result.answer.kind]

    def _notify(self, what: str, commit: int = 0, detail: str = "", outlook: Outlook | None = None) -> None:
        self.observe(Notice(what, commit, detail, outlook), self.result)

    def _spent_s(self) -> float:
        return self.result.building_s + self.result.measuring_s

    def _restore(self, progress: Progress) -> None:
        """Take up the trials and builds of earlier sessions."""
        places = {commit.sha[:NAME_LENGTH]: i for i, commit in enumerate(self.result.commits)}
        trials = [
            (places[name], trial) for name in progress.measurements() for trial in progress.trials(name)
        ]
        state = self.result.state
        for place in sorted({place for place, _ in trials}):
            if (build := self.cache.lookup(self.found.commits[place])) is not None:
                state.add_build(place, build.elapsed_s)
                self.result.building_s += build.elapsed_s
        for place, trial in sorted(trials, key=lambda each: (each[1].first.block, each[1].first.order or 0)):
            if trial.kept:
                state.session = trial.first.sitting
                self._add(place, trial, trial.first.block - 1)
            elif trial.first.failed or trial.first.unfinished:
                self._skip(place, "failed")
        for place, commit in enumerate(self.found.commits):
            build = self.cache.lookup(commit)
            if build is not None and build.state != "built":
                self._skip(place, build.last_line or build.state)

    def _build(self, place: int) -> None:
        commit = self.found.commits[place]
        self._notify("build", place)
        build = self._tree(place)
        self.result.building_s += build.elapsed_s
        for file in build.outside:
            self.result.notes.append(f"outside {commit.sha[:NAME_LENGTH]}: {file}")
        if build.state == "built":
            self.result.state.add_build(place, build.elapsed_s)
            return
        if place in (0, len(self.result.commits) - 1):
            what = "takes too long" if build.state == "timed out" else f"ends with {build.status}"
            raise CommandFailed(
                f"{self._end_name(place)}: its build {what}: {build.last_line or 'it printed nothing'} ({build.log})"
            )
        self._skip(place, build.last_line or build.state)

    def _tree(self, place: int) -> BuiltTree:
        if place not in self.trees:
            (self.trees[place],) = self.held.enter_context(self.cache.using(self.found.commits[place]))
        return self.trees[place]

    def _end_name(self, place: int) -> str:
        return f"{'GOOD' if place == 0 else 'BAD'} {self.result.commits[place].sha[:NAME_LENGTH]}"

    def _skip(self, place: int, why: str) -> None:
        self.result.state.add_failure(place)
        self.result.skipped[place] = why
        self._notify("skip", place, why)

    def _measure(self, bench: Bench, context: SessionContext, run: Run) -> None:
        tree = self._tree(run.commit)
        test = self.result.request.test_of(tree.commit, tree.directory)
        try:
            if test.name not in bench.inner:
                self._begin(bench, context, test)
                run_trial(bench, [test], TrialPosition(0, 0, FIRST_RUN))
                bench.inner[test.name] = 1
                if bench.watch.signal is not None:
                    return
            run_trial(bench, [test], TrialPosition(run.block + 1, self._order(bench.progress, run.block + 1)))
        except CommandFailed as error:
            if run.commit in (0, len(self.result.commits) - 1):
                raise CommandFailed(f"{self._end_name(run.commit)}: {error}") from None
            self._skip(run.commit, str(error))
            return
        trial = bench.progress.trials(test.name)[-1]
        if trial.kept:
            self._add(run.commit, trial, run.block)
            self._notify("trial", run.commit)

    @staticmethod
    def _order(progress: Progress, block: int) -> int:
        """Number of trials that a block has so far."""
        return sum(t.first.block == block for name in progress.measurements() for t in progress.trials(name))

    def _begin(self, bench: Bench, context: SessionContext, test: Test) -> None:
        """Add the test to the results, if it is new."""
        tests: list[dict[str, Any]] = context.document["tests"]
        if all(entry["name"] != test.name for entry in tests):
            directory = directory_name(test.name, [each["directory"] for each in tests])
            entry = {
                "name": test.name,
                "directory": directory,
                "role": "test",
                "parameters": dict(test.parameters),
                "workers": 1,
            }
            tests.append(entry)
            bench.entries = {each["name"]: each for each in tests}
            context.writer.add(test.name, directory)
            bench.progress.begin(test.name)
        context.machine.note(test.command, {})
        context.save()

    def _add(self, place: int, trial: Trial, block: int) -> None:
        metric = self.result.request.metric
        value = trial.value(metric)
        seconds = trial.value("elapsed") or 0.0
        if value is None or value <= 0.0:
            why = f"metric {metric} is {'missing' if value is None else value}"
            if place in (0, len(self.result.commits) - 1):
                raise InputError(f"{self._end_name(place)}: {why}: expected a number above 0")
            self._skip(place, why)
            return
        self.result.measuring_s += seconds
        self.result.state.add_trial(Run(place, block), math.log(value), seconds)

    def _check_trees(self) -> None:
        """Note programs that have changed their source tree."""
        for build in self.trees.values():
            if changed := build.changed():
                self.result.notes.append(f"changed {build.commit[:NAME_LENGTH]}: {changed[0]}")


def _raise_if_interrupted(bench: Bench) -> None:
    if bench.watch.signal is not None:
        raise Interrupted(bench.watch.signal, f"ended by {signal_name(bench.watch.signal)}")
