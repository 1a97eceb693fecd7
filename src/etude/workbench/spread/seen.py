"""What a stop rule is shown of results from several machines: each machine a block, never one sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from etude.experiment.ledger import Ledger
from etude.experiment.loop import judged, shell_test
from etude.experiment.plan import Plan
from etude.results.results import Results
from etude.results.stretches import stretches
from etude.stats.means import Kind
from etude.stats.stopping import Decision, Seen

Floats = NDArray[np.float64]


def decide(plan: Plan, results: Results, tests: Sequence[str]) -> Decision:
    """The stop rule's word on tests that share blocks.

    Raises:
        UsageError: it cannot judge the primary metric.
    """
    return judged(plan, lambda: seen(plan, results, tests))


def kept(results: Results, tests: Sequence[str]) -> int:
    """Kept trials of the test that has the fewest."""
    counts = [len({m.trial for m in results.measurements.get(test, ()) if m.kept}) for test in tests]
    return min(counts, default=0)


def seen(plan: Plan, results: Results, tests: Sequence[str]) -> Seen:
    """All kept trials so far, a machine after the other.

    Raises:
        ValueError: a value is missing.
    """
    machines = _by_machine(results, tests)
    measured_s = sum(ledger.spent_s(tests) for ledger in machines.values())
    values: list[list[Floats]] = [[np.empty(0)] for _ in tests]
    names: list[list[str]] = [[] for _ in tests]
    for machine, ledger in machines.items():
        for at, own in enumerate(_less_shell(plan, ledger, _samples(plan, ledger, tests))):
            values[at].append(own)
            names[at] += [machine] * own.size
    kind = next((ledger.kind(plan.primary) for ledger in machines.values()), "cost")
    return Seen(
        tuple(map(np.concatenate, values)), measured_s, tuple(map(tuple, names)), kind=cast(Kind, kind)
    )


def _samples(plan: Plan, ledger: Ledger, tests: Sequence[str]) -> Sequence[Sequence[float]]:
    if plan.rule.kind == "ratio-precision":
        return ledger.paired(tests, plan.primary)
    return [ledger.sample(test, plan.primary) for test in tests]


def _by_machine(results: Results, tests: Sequence[str]) -> dict[str, Ledger]:
    """What was measured on each, in the order in which they came."""
    sittings = results.experiment["sittings"]
    host = {sitting["sitting"]: str(sitting.get("host")) for sitting in sittings}
    shell = [name for name in results.names("shell") if name not in tests]
    return {
        machine: Ledger(
            {
                name: [m for m in results.measurements.get(name, ()) if host.get(m.sitting) == machine]
                for name in (*tests, *shell)
            },
            stretches(sittings),
        )
        for machine in dict.fromkeys(host.values())
    }


def _less_shell(plan: Plan, ledger: Ledger, samples: Sequence[Sequence[float]]) -> list[Floats]:
    """Without the mean start of that machine's shell, where one is used and the metric is a time."""
    starts: Sequence[float] = ()
    if plan.shell and plan.primary == "elapsed":
        starts = ledger.sample(shell_test(plan.shell).name, "elapsed")
    cost = sum(starts) / len(starts) if starts else 0.0
    return [np.asarray(sample, dtype=np.float64) - cost for sample in samples]
