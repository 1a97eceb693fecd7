"""A search: a policy's decisions, carried out on a bench."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from etude import trail
from etude.peak.bench import Bench
from etude.peak.policies.policy import Policy
from etude.peak.task import Answer, Task, Trial, TrialRequest

MOST_TRIALS = 1000
"""A policy that does not end by itself is stopped here."""


BUDGET_SPENT = "the budget of benchmarking time is spent"
"""Why a search ends, or a map, in `Answer.why`."""


def search(
    policy: Policy,
    task: Task,
    bench: Bench,
    before: Sequence[Trial] = (),
    made: Callable[[TrialRequest, Trial], None] = lambda request, trial: None,
) -> Answer:
    """Until the policy answers. `before`: trials that were made when it was begun; `made` is told of each new one, and
    has kept it when it returns."""
    trials = list(before)
    while True:
        decision = policy.decide(task, trials)
        if isinstance(decision, Answer):
            return decision
        if task.budget_s is not None and benchmarking_time_s(trials) >= task.budget_s:
            return policy.best(task, trials, BUDGET_SPENT)
        if len(trials) >= MOST_TRIALS:
            return policy.best(task, trials, f"{MOST_TRIALS} trials did not end the search")
        trail.note("search", f"trial {len(trials) + 1}: {task.load_text(decision.load)}: {decision.why}")
        trial = bench.run(decision, partial(policy.enough, task, tuple(trials), decision))
        limited = f", limited by the {trial.limited}" if trial.limited else ""
        took = f"{len(trial.windows)} windows in {trial.cost_s:.1f} s of benchmarking time"
        trail.note("search", f"trial {len(trials) + 1} {trial.ended}: {took}{limited}")
        made(decision, trial)
        trials.append(trial)


def benchmarking_time_s(trials: Sequence[Trial]) -> float:
    """Benchmarking time, s."""
    return sum(trial.cost_s for trial in trials)
