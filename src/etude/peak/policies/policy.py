"""Interface of a policy: a pure function of the task and of all trials so far.

The same measurements therefore give the same decisions: in a simulation, on a bench, and after a search was killed and
resumed from disk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Protocol

from etude.peak.task import Answer, Task, Trial, TrialRequest
from etude.peak.window import Window


class Policy(Protocol):
    """Picks loads, ends trials, and stops."""

    name: str

    def decide(self, task: Task, trials: Sequence[Trial]) -> TrialRequest | Answer:
        """The next trial, or the answer. Random draws use only `task.seed` and the number of trials."""
        ...

    def enough(
        self, task: Task, trials: Sequence[Trial], request: TrialRequest, windows: Sequence[Window]
    ) -> bool:
        """True if the running trial may end after these windows."""
        ...

    def best(self, task: Task, trials: Sequence[Trial], why: str) -> Answer:
        """The best answer so far, with its interval, when time is up; `why`: the reason."""
        ...


class DeadlinePolicy:
    """Follows its policy until a deadline; then the running trial ends and the best answer so far is given.

    No trial is begun if less time is left than the smallest fixed cost of a trial so far.
    """

    def __init__(self, policy: Policy, left_s: Callable[[], float]) -> None:
        """`left_s`: time until the deadline, s."""
        self.name = policy.name
        self.policy = policy
        self.left_s = left_s

    def decide(self, task: Task, trials: Sequence[Trial]) -> TrialRequest | Answer:
        """Same as the policy's decision; its best answer if no time is left for a trial."""
        decision = self.policy.decide(task, trials)
        besides = min((max(0.0, trial.cost_s - trial.ran_s) for trial in trials), default=0.0)
        if isinstance(decision, TrialRequest) and self.left_s() <= besides:
            return self.policy.best(task, trials, "the deadline has come")
        return decision

    def enough(
        self, task: Task, trials: Sequence[Trial], request: TrialRequest, windows: Sequence[Window]
    ) -> bool:
        """True if the policy has seen enough or the time is up."""
        return self.left_s() <= 0 or self.policy.enough(task, trials, request, windows)

    def best(self, task: Task, trials: Sequence[Trial], why: str) -> Answer:
        """Same as `Policy.best` of the inner policy."""
        return self.policy.best(task, trials, why)


def with_deadline(policy: Policy, deadline: datetime) -> Policy:
    """The policy with a deadline."""
    return DeadlinePolicy(policy, lambda: (deadline - datetime.now(UTC)).total_seconds())
