"""A search: runs a policy's decisions on a bench."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from etude import trail
from etude.peak.bench import Bench
from etude.peak.policies.policy import Policy
from etude.peak.task import Answer, Task, Trial, TrialRequest

MOST_TRIALS = 1000
"""Maximum trials of a search whose policy does not end it."""


BUDGET_SPENT = "the budget of benchmarking time is spent"
"""Reason in `Answer.why` for the end of a search or a map."""


def search(
    policy: Policy,
    task: Task,
    bench: Bench,
    before: Sequence[Trial] = (),
    made: Callable[[TrialRequest, Trial], None] = lambda request, trial: None,
) -> Answer:
    """Search until the policy answers. `before`: trials made by an earlier session; `made` is called with each new one
    and stores it before it returns."""
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
    """Benchmarking time of the trials, s."""
    return sum(trial.cost_s for trial in trials)
