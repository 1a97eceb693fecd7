"""Probes around a script's EXEC: those of the variable PROBES, and the executables of probes.d."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from etude.engine import Launch
from etude.experiment.bench import EngineLike

if TYPE_CHECKING:
    from etude.probes.run_probes import RunProbes


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


def words_of(names: str) -> list[str]:
    """The names in the variable PROBES or WATCH, separated by commas or blanks."""
    return names.replace(",", " ").split()


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
