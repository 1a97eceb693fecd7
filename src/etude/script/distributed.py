"""A script over a pool: each test, or the tests of one INTERLEAVE, is a job; lines outside of tests run in each.

A test that lost its node is started over on another: trials of two machines are never mixed in one test.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from etude.cluster.distributed.jobs import Jobs
from etude.cluster.distributed.part import Part
from etude.cluster.job_loop import EndedJob
from etude.errors import CommandFailed, EtudeError, InputError, UsageError
from etude.experiment import monitoring
from etude.experiment.monitoring import Monitoring
from etude.results.merge import merge_results
from etude.script.check import Outline
from etude.script.run import ScriptOptions, read_script, run_script

KIND = "tests"

Group = tuple[str, ...]


def groups_of(found: Outline, script: str) -> list[Group]:
    """The tests of each job, in the order of the script.

    Raises:
        UsageError: the script does what a job may not, or cannot be divided.
    """
    for directive, line in found.lines:
        if directive in ("CHECKPOINT", "REBOOT"):
            raise UsageError(f"{script}: {directive} {line}: a job of --pool cannot; leave out one of them")
    if found.entries:
        raise UsageError(f"{script}: restarts the machine: a job of --pool cannot; leave out --pool")
    if not found.whole:
        raise UsageError(f"{script}: its tests cannot be known beforehand: it does not seem to end")
    groups: dict[object, list[str]] = {}
    for test in found.tests:
        groups.setdefault(test.name if test.group is None else test.group, []).append(test.name)
    return [tuple(names) for names in groups.values()]


class Tests:
    """One script over a pool."""

    __test__ = False

    def __init__(
        self,
        asked: ScriptOptions,
        groups: Sequence[Group],
        jobs: Jobs,
        document: Mapping[str, Any],
        monitor: Monitoring | None = None,
        directories: Sequence[str] = (),
    ) -> None:
        """`document`: the experiment's experiment.json; its `pool` holds the settings of the pool."""
        self._asked, self._groups, self._jobs, self._document = asked, groups, jobs, document
        self._monitor, self._directories = monitor, directories
        self._failed: list[str] = []
        self._begun: set[Group] = set()

    def run(self) -> None:
        """Run each test.

        Raises:
            CommandFailed: some tests failed, without stopping the others; EtudeError: the pool failed, or a job
            reported an error; what was measured is merged, and no job is left running.
        """
        try:
            self._failed = [str(error) for part in self._done() if (error := part.error()) is not None]
            self._begun = {part.key for part in (*self._done(), *self._jobs.parts)}
            self._jobs.run(self._submit, self._judged)
        except (EtudeError, KeyboardInterrupt):
            self._merge()
            raise
        self._merge({} if self._failed else {"ended": "complete"})
        if self._failed:
            failed = CommandFailed("; ".join(self._failed))
            failed.results = self._jobs.directory
            raise failed

    def _submit(self) -> None:
        self._merge()
        for group in self._groups:
            if group not in self._begun:
                self._begin(group)

    def _begin(self, group: Group) -> None:
        self._begun.add(group)
        asked = self._asked
        task = {
            "kind": KIND,
            "script": os.path.abspath(asked.program.path),
            "digest": asked.program.digest,
            "directories": [os.path.abspath(each) for each in self._directories],
            "assignments": [f"{name}={value}" for name, value in asked.assignments.items()],
            "seed": asked.seed,
            "res": asked.res,
            "counters": asked.counters,
            "masks": list(asked.masks),
            "only": list(group),
            "monitor": monitoring.to_document(self._monitor),
            "command_line": list(self._document["command_line"]),
        }
        self._jobs.begin(task, group[0] if len(group) == 1 else f"{group[0]} and {len(group) - 1} more")

    def _judged(self, ended: EndedJob[Part], error: EtudeError | None) -> EtudeError | None:
        """The error, unless a test has failed: the others are still run."""
        if ended.again:
            self._begun.discard(ended.work.key)
        if not isinstance(error, CommandFailed):
            return error
        self._failed.append(str(error))
        return None

    def _done(self) -> list[Part]:
        """Parts that ended by themselves; parts that lost their node are excluded."""
        ended = {each.job.place.name: each.ended for each in self._jobs.journal.jobs}
        return [
            part
            for part in self._jobs.ended_parts
            if part.measured
            and (
                ((end := ended.get(part.name)) is not None and end.how == "done")
                or isinstance(part.error(), CommandFailed)
            )
        ]

    def _merge(self, members: Mapping[str, Any] | None = None) -> None:
        order = {group: place for place, group in enumerate(self._groups)}
        done = sorted(self._done(), key=lambda part: order.get(part.key, len(order)))
        pool = {**self._document["pool"], **(members or {})}
        parts = {part.name: part.results for part in done}
        merge_results(parts, self._jobs.directory, {**self._document, "pool": pool})


def measure(part: Part) -> None:
    """Run the tests of a part, on its node.

    Raises:
        EtudeError: same as `etude.script.run.run_script`; InputError: the script has changed.
    """
    task = part.task
    asked = read_script(
        task["script"],
        task["assignments"],
        seed=task["seed"],
        directories=task["directories"],
        res=task["res"],
        counters=task["counters"],
        masks=tuple(task.get("masks", ())),
        only=frozenset(task["only"]),
    )
    if asked.program.digest != task["digest"]:
        raise InputError(f"{task['script']}: has changed since the experiment was begun; begin it anew")
    run_script(
        asked,
        part.results,
        observe=lambda event, progress: None,
        command_line=task["command_line"],
        monitor=monitoring.from_document(task),
    )
