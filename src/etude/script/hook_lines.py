"""A script's lines outside of measurements, run here or on named hosts; and probes around each EXEC."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from etude.engine import Launch
from etude.experiment.bench import EngineLike
from etude.experiment.hooks import run_line
from etude.experiment.session import SessionContext
from etude.machine.remote.hosts import LOCAL
from etude.script import environment
from etude.script.arguments import parse_on_hosts
from etude.script.directive_words import words_of
from etude.script.remote import Remote
from etude.script.state import RunningTest, Scope

if TYPE_CHECKING:
    from etude.probes.run_probes import RunProbes


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


class ExecProbes:
    """Launches with probes around them. Each set of probes is looked up once."""

    def __init__(self, engine: EngineLike) -> None:
        self._engine = engine
        self._known: dict[tuple[str, str], RunProbes | None] = {}

    def launch(
        self,
        launch: Launch,
        probes: str,
        test: str,
        trial: int,
        run: Callable[[Launch], list[dict[str, Any]]] | None = None,
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[str]]:
        """Rows, blocks and notes of one launch. `probes`: names, separated by commas or blanks. `run` launches
        (default: the engine).

        Raises:
            UsageError: no probe has such a name; MachineRefuses: same as the engine.
        """
        run = run or self._engine.launch
        environment = {name: text or "" for name, text in launch.workers[0].env.items()}
        probing = self._probing(probes, environment.get("APLIB", ""))
        if probing is None:
            return run(launch), [], []

        from etude.probes.probe import Context

        context = Context(
            engine_pid=self._engine.hello.get("pid", 0),
            cgroup=launch.cgroup,
            directory=environment.get("TESTDIR") or os.environ.get("TESTDIR"),
            test=test,
            trial=trial,
            environment=environment,
        )
        probing.start(context)
        rows = run(launch)
        metrics, blocks, notes = probing.end(replace(context, elapsed_s=_longest(rows)))
        rows[0]["metrics"] = dict(rows[0]["metrics"]) | metrics
        return rows, [{"worker": None, "name": b.name, "lines": list(b.lines)} for b in blocks], list(notes)

    def _probing(self, probes: str, library: str) -> RunProbes | None:
        key = (probes, library)
        if key not in self._known:
            self._known[key] = _find(words_of(probes), library.split(":"))
        return self._known[key]


def _find(names: Sequence[str], directories: Sequence[str]) -> RunProbes | None:
    own = [directory for directory in directories if os.path.isdir(os.path.join(directory, "probes.d"))]
    if not names and not own:
        return None

    from etude.probes.executables import find_executables
    from etude.probes.run_probes import RunProbes, find_probe

    return RunProbes([*find_executables(own), *find_probe(names)])  # the first are outermost


def _longest(rows: Sequence[dict[str, Any]]) -> float:
    times = [row["metrics"]["elapsed"][0] for row in rows if "elapsed" in row["metrics"]]
    return max((time for time in times if time is not None), default=0.0)
