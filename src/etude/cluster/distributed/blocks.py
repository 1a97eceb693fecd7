"""An experiment of `etude bench` over a pool: a job measures some blocks; the stop rule judges all results together.

A block stays on one machine, so ratios are formed within machines. Complete blocks of a lost job are included; only
the missing ones are measured again on another node.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from etude.cluster.distributed.jobs import Jobs, Say
from etude.cluster.distributed.part import Part
from etude.errors import EtudeError
from etude.experiment import monitoring
from etude.experiment.loop import GIVE_UP_FACTOR, decide_on_samples, shell_test
from etude.experiment.monitoring import Monitoring
from etude.experiment.plan import Plan, RuleSpec, from_document, groups, to_document
from etude.experiment.progress import Progress
from etude.experiment.run import resume, run
from etude.experiment.test import Test
from etude.results.merge import merge_results
from etude.results.reader import load_results
from etude.results.results import Results, session_groups
from etude.stats.means import Kind
from etude.stats.stopping import Decision, SamplesSoFar

if TYPE_CHECKING:
    from etude.stats.stopping import Decision

Floats = NDArray[np.float64]


def decide(plan: Plan, results: Results, tests: Sequence[str]) -> Decision:
    """The stop rule's decision on tests that share blocks.

    Raises:
        UsageError: it cannot judge the primary metric.
    """
    return decide_on_samples(plan, lambda: collect_samples(plan, results, tests))


def included_blocks(results: Results, tests: Sequence[str]) -> int:
    """Number of included trials of the test that has the fewest."""
    counts = [len({m.trial for m in results.measurements.get(test, ()) if m.kept}) for test in tests]
    return min(counts, default=0)


def collect_samples(plan: Plan, results: Results, tests: Sequence[str]) -> SamplesSoFar:
    """Samples of all included trials so far, machine by machine.

    Raises:
        ValueError: a value is missing.
    """
    machines = _by_machine(results, tests)
    measured_s = sum(progress.spent_s(tests) for progress in machines.values())
    values: list[list[Floats]] = [[np.empty(0)] for _ in tests]
    names: list[list[str]] = [[] for _ in tests]
    for machine, progress in machines.items():
        for at, own in enumerate(_less_shell(plan, progress, _samples(plan, progress, tests))):
            values[at].append(own)
            names[at] += [machine] * own.size
    kind = next((progress.kind(plan.primary) for progress in machines.values()), "cost")
    return SamplesSoFar(
        tuple(map(np.concatenate, values)), measured_s, tuple(map(tuple, names)), kind=cast(Kind, kind)
    )


def _samples(plan: Plan, progress: Progress, tests: Sequence[str]) -> Sequence[Sequence[float]]:
    if plan.rule.kind == "ratio-precision":
        return progress.paired(tests, plan.primary)
    return [progress.sample(test, plan.primary) for test in tests]


def _by_machine(results: Results, tests: Sequence[str]) -> dict[str, Progress]:
    """Measurements by machine, in the order in which the machines first reported."""
    sittings = results.experiment["sittings"]
    host = {sitting["sitting"]: str(sitting.get("host")) for sitting in sittings}
    shell = [name for name in results.names("shell") if name not in tests]
    return {
        machine: Progress(
            {
                name: [m for m in results.measurements.get(name, ()) if host.get(m.sitting) == machine]
                for name in (*tests, *shell)
            },
            session_groups(sittings),
        )
        for machine in dict.fromkeys(host.values())
    }


def _less_shell(plan: Plan, progress: Progress, samples: Sequence[Sequence[float]]) -> list[Floats]:
    """Samples less the mean start time of that machine's shell, if a shell is used and the metric is a time."""
    starts: Sequence[float] = ()
    if plan.shell and plan.primary == "elapsed":
        starts = progress.sample(shell_test(plan.shell).name, "elapsed")
    cost = sum(starts) / len(starts) if starts else 0.0
    return [np.asarray(sample, dtype=np.float64) - cost for sample in samples]


KIND = "blocks"
MIN_BLOCKS = 2
"""Minimum blocks per job where enough are left: a single block does not show the spread within its machine."""


class Blocks:
    """One experiment over a pool."""

    def __init__(
        self,
        plan: Plan,
        jobs: Jobs,
        document: Mapping[str, Any],
        monitor: Monitoring | None = None,
        say: Say = lambda line: None,
    ) -> None:
        """`document`: the experiment's experiment.json; its `pool` holds the settings of the pool."""
        self._plan, self._jobs, self._document = plan, jobs, document
        self._monitor, self._say = monitor, say
        self._groups = groups(plan.schedule, plan.tests)
        self._step = max(MIN_BLOCKS, math.ceil(plan.rule.minimum / jobs.pool.width()))
        self._why = ""

    def run(self) -> tuple[Decision, ...]:
        """Submit jobs until the stop rule is met for each group of tests; returns its final decisions.

        Raises:
            EtudeError: a job reported it, or the pool failed; what was measured is merged, and no job is left running.
        """
        try:
            self._jobs.run(self._submit)
        except (EtudeError, KeyboardInterrupt):
            self._merge()
            raise
        results = self._results()
        decisions = tuple(decide(self._plan, results, names_of(group)) for group in self._groups)
        self._merge({"ended": "complete", "decisions": [each.why for each in decisions]})
        return decisions

    def _submit(self) -> None:
        self._merge()
        for tests, blocks in self._next():
            self._begin(tests, blocks)

    def _next(self) -> list[tuple[tuple[Test, ...], int]]:
        """Jobs to submit now: tests and a number of blocks each. Tests that lack equally many blocks share a job."""
        results, begun = self._results(), self._jobs.ended_parts + list(self._jobs.parts)
        alike: dict[tuple[int, ...], list[Test]] = {}
        enough = True
        for group in self._groups:
            split_blocks = self._lacking(group, results, begun)
            enough = enough and split_blocks is None
            if split_blocks:
                alike.setdefault(split_blocks, []).extend(group)
        if enough:
            self._jobs.cancel(
                "ended from here", waiting_only=True
            )  # running jobs are awaited: their results count
        return [(tuple(tests), blocks) for split_blocks, tests in alike.items() for blocks in split_blocks]

    def _lacking(
        self, group: Sequence[Test], results: Results, begun: Sequence[Part]
    ) -> tuple[int, ...] | None:
        """Blocks of each job to submit for tests that share blocks; None if enough have been measured."""
        names, rule = names_of(group), self._plan.rule
        have = included_blocks(results, names)
        coming = sum(_blocks_of(part, names) for part in self._jobs.parts)
        given_up = sum(_blocks_of(part, names) for part in begun) >= (GIVE_UP_FACTOR + 1) * rule.maximum
        if have >= rule.minimum:
            decision = decide(self._plan, results, names)
            if decision.why != self._why:
                self._why = decision.why
                self._say(f"{have} {'block' if self._plan.compares else 'trial'}s: {decision.why}")
            if decision.enough:
                return None
        if given_up:
            return None
        free = self._jobs.free()
        if have + coming < rule.minimum:
            return split_blocks(rule.minimum - have - coming, max(free, 1))
        if have < rule.minimum:
            return ()
        room = min(free * self._step, max(rule.maximum - have - coming, 0))
        return split_blocks(int(room), free) if room > 0 else ()

    def _begin(self, tests: Sequence[Test], blocks: int) -> None:
        """Submit a job for these tests."""
        plan = self._plan
        number = random.Random(f"{plan.seed}:{len(self._jobs.ended_parts) + len(self._jobs.parts)}")
        part = replace(
            plan,
            tests=tuple(tests),
            rule=RuleSpec("fixed-count", {"count": blocks}),
            seed=number.getrandbits(32),
            again_every=min(plan.again_every, blocks),
        )
        task = {
            "kind": KIND,
            "plan": to_document(part),
            "tests": list(names_of(tests)),
            "blocks": blocks,
            "monitor": monitoring.to_document(self._monitor),
            "command_line": list(self._document["command_line"]),
        }
        word = "block" if plan.compares else "trial"
        self._jobs.begin(task, f"{plan.name}, {blocks} {word}{'' if blocks == 1 else 's'}")

    def _merge(self, members: Mapping[str, Any] | None = None) -> None:
        parts = {part.name: part.results for part in self._jobs.ended_parts if part.measured}
        pool = {**self._document["pool"], **(members or {})}
        merge_results(parts, self._jobs.directory, {**self._document, "pool": pool})

    def _results(self) -> Results:
        return load_results(self._jobs.directory)


def names_of(tests: Sequence[Test]) -> tuple[str, ...]:
    """Names of the tests."""
    return tuple(test.name for test in tests)


def split_blocks(blocks: int, jobs: int) -> tuple[int, ...]:
    """Blocks divided among at most `jobs` jobs, as evenly as possible, at least `MIN_BLOCKS` each if enough."""
    count = max(min(jobs, blocks // MIN_BLOCKS), 1)
    return tuple(blocks // count + (place < blocks % count) for place in range(count))


def _blocks_of(part: Part, names: tuple[str, ...]) -> int:
    return int(part.task["blocks"]) if set(names) <= set(part.task["tests"]) else 0


def measure(part: Part) -> None:
    """Measure the blocks of a part, on its node; resumes a part whose controller died (etude=copied).

    Raises:
        EtudeError: same as `etude.experiment.run.run`.
    """
    task = part.task
    if part.measured:
        resume(part.results)
        return
    run(
        from_document(task["plan"], str(part.place)),
        part.results,
        command_line=task["command_line"],
        verb="bench",
        monitor=monitoring.from_document(task),
    )
