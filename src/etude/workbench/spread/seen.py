"""What a stop rule is shown of results from several machines: each machine a block, never one sample."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from etude.experiment.ledger import Ledger
from etude.experiment.loop import judged, shell_test
from etude.experiment.plan import Plan
from etude.results.reader import Results
from etude.results.stretches import stretches
from etude.stats.levelled import levelled
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
    """All kept trials so far, with the machines' own levels taken out (`etude.stats.levelled`).

    Raises:
        ValueError: a value has no ratio.
    """
    machines = _by_machine(results, tests)
    measured_s = sum(ledger.measured_s(tests) for ledger in machines)
    if plan.rule.kind == "ratio-precision":
        return Seen(
            _ratios([_less_shell(plan, each, each.paired(tests, plan.primary)) for each in machines]),
            measured_s,
        )
    samples = [
        _less_shell(plan, each, [each.sample(test, plan.primary) for test in tests]) for each in machines
    ]
    return Seen(tuple(_level([own[at] for own in samples]) for at in range(len(tests))), measured_s)


def _by_machine(results: Results, tests: Sequence[str]) -> list[Ledger]:
    """What was measured on each, in the order in which they came."""
    sittings = results.experiment["sittings"]
    host = {sitting["sitting"]: sitting.get("host") for sitting in sittings}
    shell = [name for name in results.names("shell") if name not in tests]
    return [
        Ledger(
            {
                name: [m for m in results.measurements.get(name, ()) if host.get(m.sitting) == machine]
                for name in (*tests, *shell)
            },
            stretches(sittings),
        )
        for machine in dict.fromkeys(host.values())
    ]


def _less_shell(plan: Plan, ledger: Ledger, samples: Sequence[Sequence[float]]) -> list[Floats]:
    """Without the mean start of that machine's shell, where one is used and the metric is a time."""
    starts: Sequence[float] = ()
    if plan.shell and plan.primary == "elapsed":
        starts = ledger.sample(shell_test(plan.shell).name, "elapsed")
    cost = sum(starts) / len(starts) if starts else 0.0
    return [np.asarray(sample, dtype=np.float64) - cost for sample in samples]


def _level(machines: Sequence[Floats]) -> Floats:
    there = [values for values in machines if values.size]
    return levelled(there) if there else np.empty(0)


def _ratios(machines: Sequence[Sequence[Floats]]) -> tuple[Floats, ...]:
    """Samples whose ratios to the first have one level on all machines."""
    there = [own for own in machines if own[0].size]
    if not there:
        return tuple(np.empty(0) for _ in machines[0])
    base = np.concatenate([own[0] for own in there])
    others = range(1, len(there[0]))
    if len(there) == 1 or any(float(values.min()) <= 0.0 for own in there for values in own):
        return (base, *(np.concatenate([own[at] for own in there]) for at in others))
    return (base, *(base * np.exp(_level([np.log(own[at] / own[0]) for own in there])) for at in others))
