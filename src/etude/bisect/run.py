"""Runs a bisection: builds and trials of commits into a results directory, until the answer is known.

Builds and trials on disk are the whole state: a bisection that was killed continues from them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from etude.bisect.bisection import Build, Run
from etude.bisect.request import NAME_LENGTH, Request, known_commits, to_plan
from etude.bisect.result import (
    MEMBER,
    BisectResult,
    KnownBuild,
    Notice,
    failure_of,
    judge,
    new_result,
    restore,
    result_of,
    to_document,
)
from etude.bisect.simulated import Outlook, outlook_of
from etude.bisect.verdict import Answer
from etude.commits.build import Build as BuiltTree
from etude.commits.build import Recipe
from etude.commits.builds import BuildCache
from etude.commits.commit_range import CommitRange, commit_range
from etude.errors import CommandFailed, InputError, Interrupted, UsageError
from etude.experiment.bench import Bench, SignalWatch
from etude.experiment.plan import Plan, RuleSpec
from etude.experiment.progress import Progress
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
    _check(request)
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
    """Continue a bisection; one that has ended is only read, without its repository. budget_s: in place of its limit.

    Raises:
        EtudeError: as `bisect`; InputError: the repository has other commits now.
    """
    require_local_engine("a bisection")
    read_trusted_experiment(directory)
    with sole_writer(directory):
        document = read_trusted_experiment(directory)
        result = result_of(directory, document)
        if result.answer.decided:
            return result
        request = result.request
        found = commit_range(request.repository, request.good, request.bad, ancestry=request.ancestry)
        if known_commits(found) != result.commits:
            raise InputError(
                f"{directory}: {request.good}..{request.bad} were other commits when it began: begin a new bisection"
            )
        if budget_s is not None:
            request = replace(request, budget_s=budget_s)
            document["plan"] = to_plan(request, result.commits)
        return _Runner(request, found, directory, document, observe).run()


def _check(request: Request) -> None:
    """Refuse what no results could hold, or no commit be measured by. Raises UsageError."""
    recipe_of(request)
    request.test_of("0" * NAME_LENGTH, Path())
    if not request.pattern and request.metric not in METRICS:
        raise UsageError(
            f"--metric {request.metric}: Étude measures {', '.join(sorted(METRICS))}; a number that the command "
            "prints needs NAME=REGEX"
        )
    for text in (request.good, request.bad, request.build, request.repository, request.builds):
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise UsageError(f"{text!r} is not UTF-8: give it another name")


def recipe_of(request: Request) -> Recipe:
    """How the commits are built. Raises UsageError: the line is empty."""
    return Recipe(request.build, request.build_limit_s)


class _Runner:
    """One session of a bisection."""

    def __init__(
        self, request: Request, found: CommitRange, path: Path, document: dict[str, Any], observe: Observer
    ) -> None:
        self.path, self.document, self.observe = path, document, observe
        self.found = found
        self.result = new_result(request, known_commits(found))
        if found.dirty:
            self.result.note("dirty")
        if found.submodules:
            self.result.note("submodules")
        place = Path(request.builds) if request.builds else path / BUILDS
        self.watch: SignalWatch | None = None
        self.cache = BuildCache(
            found.repository,
            place,
            recipe_of(request),
            limit_bytes=request.cache_bytes,
            check=self._check_signals,
        )
        self.trees: dict[int, BuiltTree] = {}
        """Builds in use …"""
        self.held: dict[int, ExitStack] = {}
        """… and what keeps them from being removed."""

    def run(self) -> BisectResult:
        """Run the session."""
        try:
            run_session(self.path, self.document, engine_maker(), self._work)
        finally:
            for held in self.held.values():
                held.close()
        return self.result

    def _work(self, context: SessionContext) -> list[str]:
        request, state = self.result.request, self.result.state
        self.watch = context.watch
        tests = (Test("bisect", request.command),)
        plan = Plan(
            "bisect", tests, RuleSpec("fixed-count", {"count": 1}), seed=request.seed, primary=request.metric
        )
        bench = context.bench(plan, lambda event, progress: None)
        restore(self.result, self.document, context.progress, str(self.path / "experiment.json"))
        self._skip_broken()
        state.session = context.session.number
        self._notify("start")
        foreseen = False
        while not isinstance(action := state.action(), Answer):
            if request.budget_s is not None and self._spent_s() >= request.budget_s:
                break
            if isinstance(action, Build):
                self._build(context, action.commit)
            else:
                if state.posterior is not None and not foreseen:
                    foreseen = True
                    self._notify("outlook", outlook=outlook_of(state))
                self._measure(bench, context, action)
            self._check_signals()
        if not self.result.answer.decided:
            judge(self.result)
        for place in list(self.trees):
            self._note_changes(place)
        self._notify("judged")
        self._save(context)
        return [self.result.answer.kind]

    def _check_signals(self) -> None:
        """Raise Interrupted after a signal."""
        if self.watch is not None and self.watch.signal is not None:
            raise Interrupted(self.watch.signal, f"ended by {signal_name(self.watch.signal)}")

    def _notify(self, what: str, commit: int = 0, detail: str = "", outlook: Outlook | None = None) -> None:
        self.observe(Notice(what, commit, detail, outlook), self.result)

    def _spent_s(self) -> float:
        return self.result.building_s + self.result.measuring_s

    def _save(self, context: SessionContext) -> None:
        context.document[MEMBER] = to_document(self.result)
        context.save()

    def _skip_broken(self) -> None:
        """Skip commits of which other bisections know that they do not build."""
        for place, commit in enumerate(self.found.commits):
            if place in (0, self.result.last) or place in self.result.skipped:
                continue
            build = self.cache.lookup(commit)
            if build is not None and build.state != "built":
                self.result.add_build(place, KnownBuild(build.state, build.elapsed_s, 0.0, build.last_line))
                self.result.skip(place, build.last_line or build.state)

    def _build(self, context: SessionContext, place: int) -> None:
        self._notify("build", place)
        build = self._tree(context, place)
        if build.state == "built":
            return
        if end := self.result.end_name(place):
            what = "takes too long" if build.state == "timed out" else f"ends with {build.status}"
            said = build.last_line or "it printed nothing"
            raise CommandFailed(f"{end}: its build {what}: {said} ({build.log})")
        self._skip(place, build.last_line or build.state)

    def _tree(self, context: SessionContext, place: int) -> BuiltTree:
        """The build of a commit, made now where there is none. Of others only GOOD and BAD are kept from being
        removed."""
        if place in self.trees:
            return self.trees[place]
        for other in [each for each in self.trees if each not in (0, self.result.last)]:
            self._note_changes(other)
            self.held.pop(other).close()
            del self.trees[other]
        commit, held = self.found.commits[place], ExitStack()
        known = self.cache.lookup(commit) is not None
        (build,) = held.enter_context(self.cache.using(commit))
        self.trees[place], self.held[place] = build, held
        before = self.result.builds.get(place)
        spent = (before.spent_s if before else 0.0) + (0.0 if known else build.elapsed_s)
        self.result.add_build(place, KnownBuild(build.state, build.elapsed_s, spent, build.last_line))
        for file in build.outside:
            self.result.note(f"outside {commit.sha[:NAME_LENGTH]}: {file}")
        self._save(context)
        return build

    def _note_changes(self, place: int) -> None:
        """Note a program that has changed its source tree."""
        build = self.trees[place]
        if changed := build.changed():
            self.result.note(f"changed {build.commit[:NAME_LENGTH]}: {changed[0]}")

    def _skip(self, place: int, why: str) -> None:
        self.result.skip(place, why)
        self._notify("skip", place, why)

    def _measure(self, bench: Bench, context: SessionContext, run: Run) -> None:
        tree = self._tree(context, run.commit)
        test = self.result.request.test_of(tree.commit, tree.directory)
        try:
            if test.name not in bench.inner:
                self._begin(bench, context, test)
                run_trial(bench, [test], TrialPosition(0, 0, FIRST_RUN))
                bench.inner[test.name] = 1
                if bench.watch.signal is not None:
                    return
            run_trial(bench, [test], TrialPosition(run.block + 1, self._order(bench.progress, run.block + 1)))
        except (CommandFailed, UsageError) as error:
            trials = bench.progress.trials(test.name)
            why = (failure_of(self.result, trials[-1]) if trials else "") or str(error)
            if end := self.result.end_name(run.commit):
                kind = CommandFailed if isinstance(error, CommandFailed) else InputError
                raise kind(f"{end}: {why}") from None
            self._skip(run.commit, why)
            return
        trial = bench.progress.trials(test.name)[-1]
        if trial.kept and self.result.add_trial(run.commit, trial, run.block):
            self._notify("trial", run.commit)
        elif trial.kept:
            self._notify("skip", run.commit, self.result.skipped[run.commit])

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
