"""Runs some tests of a script, and all lines outside of tests: the others have no effect, as in --check."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from etude.script.arguments import CopyCommand
from etude.script.state import RunningTest, Scope, State
from etude.script.world import TrialOnDisk, World


class SelectedTests:
    """A world in which only tests of these names have effects; `state` is the machine's."""

    def __init__(self, world: World, only: Collection[str], state: State) -> None:
        self._world, self._only, self._state = world, only, state

    def _is_selected(self, test: RunningTest | None) -> bool:
        return test is None or test.name in self._only

    @property
    def stopped(self) -> bool:
        return self._world.stopped

    @property
    def environment(self) -> Mapping[str, str]:
        return self._world.environment

    def echo(self, text: str) -> None:
        if self._is_selected(self._state.running):
            self._world.echo(text)

    def warn(self, text: str) -> None:
        self._world.warn(text)

    def system(self, line: str, scope: Scope) -> str | None:
        return self._world.system(line, scope) if self._is_selected(self._state.running) else None

    def quiet(self, words: Sequence[str]) -> str | None:
        return self._world.quiet(words) if self._is_selected(self._state.running) else None

    def hosts(self, path: str) -> None:
        self._world.hosts(path)

    def copy(self, copied: CopyCommand, test: RunningTest | None) -> str | None:
        return self._world.copy(copied, test) if self._is_selected(test) else None

    def begin_test(self, test: RunningTest) -> None:
        if self._is_selected(test):
            self._world.begin_test(test)

    def trials(self, test: RunningTest) -> Sequence[TrialOnDisk]:
        return self._world.trials(test) if self._is_selected(test) else ()

    def end_reason(self, test: RunningTest) -> str:
        return self._world.end_reason(test) if self._is_selected(test) else ""

    def hook(self, point: str, line: str, test: RunningTest, scope: Scope) -> str | None:
        return self._world.hook(point, line, test, scope) if self._is_selected(test) else None

    def execute(self, line: str, test: RunningTest, scope: Scope) -> str | None:
        return self._world.execute(line, test, scope) if self._is_selected(test) else None

    def end_trial(self, test: RunningTest) -> None:
        if self._is_selected(test):
            self._world.end_trial(test)
            return
        test.set_aside = False
        test.kept = test.minimum  # one trial represents all
        test.budget_s, test.program = None, []

    def spent_s(self, test: RunningTest) -> float:
        return self._world.spent_s(test) if self._is_selected(test) else 0.0

    def check_rule(self, test: RunningTest) -> None:
        if self._is_selected(test):
            self._world.check_rule(test)

    def stop_decision(self, test: RunningTest, scope: Scope) -> tuple[bool, str]:
        return self._world.stop_decision(test, scope) if self._is_selected(test) else (True, "not chosen")

    def end_test(self, test: RunningTest) -> None:
        if self._is_selected(test):
            self._world.end_test(test)

    def failed(self, reason: str, script: str, test: RunningTest | None, scope: Scope) -> None:
        self._world.failed(reason, script, test, scope)

    def checkpoint(self, path: str, state: State) -> None:
        if self._is_selected(state.running):
            self._world.checkpoint(path, state)

    def needs_restart(self, test: RunningTest) -> bool:
        return self._is_selected(test) and self._world.needs_restart(test)

    def restart(self, entry: str, state: State) -> None:
        if self._is_selected(state.running):
            self._world.restart(entry, state)

    def safe_point(self, state: State) -> None:
        self._world.safe_point(state)

    def save(self, state: State) -> None:
        self._world.save(state)
