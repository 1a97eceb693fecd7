"""What an experiment records of the machine that it runs on: snapshots, with the programs that it starts."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from etude.testbed import snapshot
from etude.testbed.snapshot import Command


def planned_commands(plan: Mapping[str, Any]) -> list[Command]:
    """The commands that a plan of `etude bench` will run. Those of a script are known when they are run."""
    found = []
    for test in plan.get("tests") or ():
        search = (test.get("environment") or {}).get("PATH")
        found.append(Command(tuple(test["command"]), search, test.get("directory")))
    return found


class MachineRecord:
    """The snapshots of one sitting in experiment.json, and the commands whose programs they describe."""

    def __init__(
        self, document: dict[str, Any], take: Callable[[], dict[str, Any] | None] | None = None
    ) -> None:
        """`take`: a snapshot of the machine, where it is another than this one."""
        self._document, self._take = document, take
        self._commands: dict[Command, None] = dict.fromkeys(planned_commands(document["plan"]))

    def note(self, words: Sequence[str], environment: Mapping[str, str]) -> None:
        """A command is about to be run: describe its programs in this sitting's snapshot, unless they are."""
        command = Command(tuple(words), environment.get("PATH"))
        programs = (self._current() or {}).get("programs")
        if command in self._commands or not isinstance(programs, dict):
            return
        self._commands[command] = None
        around = {**os.environ, **environment}
        for name, found in snapshot.programs(Path("/"), [command], around).items():
            programs.setdefault(name, found)
            self._commands[Command((name,), command.search)] = None

    def end(self) -> None:
        """The sitting is over."""
        take = self._take or (lambda: snapshot.take(commands=tuple(self._commands)))
        self._document["machine"]["after"] = take()

    def _current(self) -> dict[str, Any] | None:
        sittings = self._document["sittings"]
        found = sittings[-1]["machine"] if len(sittings) > 1 else self._document["machine"]["before"]
        return found if isinstance(found, dict) else None
