"""A script's lines outside of measurements: run by the keeper of their test, here or on the named hosts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from etude.experiment.bench import EngineLike
from etude.experiment.hooks import run_line
from etude.experiment.session import SessionContext
from etude.machine.remote.hosts import LOCAL
from etude.script import environment
from etude.script.arguments import parse_on_hosts
from etude.script.remote import Remote
from etude.script.state import RunningTest, Scope

UNDOING = ("CLEANUP", "POSTCLEANUP")


class HookLines:
    """Runs these lines. Their processes live until their test ends; those of SYSTEM until the script does."""

    def __init__(self, context: SessionContext, remote: Remote) -> None:
        self._context = context
        self._remote = remote
        self._keepers: dict[str, EngineLike] = {}

    def run(
        self, point: str, text: str, test: RunningTest | None, scope: Scope, around: Mapping[str, str]
    ) -> str | None:
        """Run a line here or on its hosts, one after the other; returns the failure, if any. Undoing lines run on all.

        `around`: its variables on this machine.
        """
        name = test.name if test else ""
        placed = parse_on_hosts(text)
        why = None
        for host in placed.hosts or (LOCAL,):
            if why is not None and point not in UNDOING:
                break
            if host == LOCAL:
                failed = self.here(name, point, placed.line, around)
            else:
                variables = environment.remote_environment(scope, point, test)
                failed = self._there(host, name, point, placed.line, variables)
            why = why or failed
        return why

    def here(self, test: str, point: str, line: str, around: Mapping[str, str]) -> str | None:
        """Run a line on this machine; returns the failure, if any."""
        if test not in self._keepers:
            self._keepers[test] = self._context.make_engine()
        ended = run_line(
            self._keepers[test], line, self._log(test), environment=around, undoes=point in UNDOING
        )
        return None if ended.why is None else f"{_of(point, test)} failed ({ended.why}): {line}{ended.said}"

    def _there(self, host: str, test: str, point: str, line: str, variables: Mapping[str, str]) -> str | None:
        undoes = point in UNDOING
        failed = self._remote.line(host, test, line, variables, self._log(test), undoes=undoes)
        return None if failed is None else f"{_of(point, test)} failed: {line}: {failed}"

    def _log(self, test: str) -> Path:
        return (
            self._context.writer.path(test).parent / "hooks.log"
            if test
            else self._context.path.resolve() / "system.log"
        )

    def end_test(self, test: str) -> None:
        """End the local processes of a test's lines."""
        keeper = self._keepers.pop(test, None)
        if keeper is not None:
            keeper.close()

    def close(self) -> None:
        """End all local processes."""
        for keeper in self._keepers.values():
            keeper.close()
        self._keepers.clear()


def _of(point: str, test: str) -> str:
    return f"{point} of test {test!r}" if test else point
