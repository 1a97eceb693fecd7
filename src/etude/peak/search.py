"""A search: runs a policy's decisions on a bench; and the interfaces of both, with their wrappers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Protocol

from etude import trail
from etude.peak.task import Answer, Task, Trial, TrialRequest
from etude.peak.window import Window

MOST_TRIALS = 1000
"""Maximum trials of a search whose policy does not end it."""


BUDGET_SPENT = "the budget of benchmarking time is spent"
"""Reason in `Answer.why` for the end of a search or a map."""


@dataclass(frozen=True)
class Watcher:
    """Callbacks of a search: a trial begins; its windows so far, before the policy sees them; a trial is stored."""

    begins: Callable[[TrialRequest], None] = lambda request: None
    window: Callable[[TrialRequest, Sequence[Window]], None] = lambda request, windows: None
    made: Callable[[TrialRequest, Trial], None] = lambda request, trial: None


NOBODY = Watcher()


def search(
    policy: Policy,
    task: Task,
    bench: Bench,
    before: Sequence[Trial] = (),
    made: Callable[[TrialRequest, Trial], None] = lambda request, trial: None,
    watcher: Watcher = NOBODY,
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
        watcher.begins(decision)
        trial = bench.run(decision, partial(_enough, policy, task, tuple(trials), decision, watcher))
        limited = f", limited by the {trial.limited}" if trial.limited else ""
        took = f"{len(trial.windows)} windows in {trial.cost_s:.1f} s of benchmarking time"
        trail.note("search", f"trial {len(trials) + 1} {trial.ended}: {took}{limited}")
        made(decision, trial)
        watcher.made(decision, trial)
        trials.append(trial)


def _enough(
    policy: Policy,
    task: Task,
    trials: Sequence[Trial],
    request: TrialRequest,
    watcher: Watcher,
    windows: Sequence[Window],
) -> bool:
    watcher.window(request, windows)
    return policy.enough(task, trials, request, windows)


def benchmarking_time_s(trials: Sequence[Trial]) -> float:
    """Benchmarking time of the trials, s."""
    return sum(trial.cost_s for trial in trials)


EarlyStop = Callable[[Sequence[Window]], bool]
"""Called after each window with all windows of the trial so far; True ends the trial early."""


class Bench(Protocol):
    """Makes trials. A failure of the system under test is part of the trial; a failure of the bench itself raises
    `InputError` or `MachineRefuses` of etude.errors."""

    def run(self, request: TrialRequest, enough: EarlyStop) -> Trial:
        """Offer a load until the run length is over or `enough` returns True."""
        ...


@dataclass(frozen=True)
class PacedBench:
    """A simulated bench in scaled real time: each window takes its duration divided by `speed`."""

    bench: Bench
    speed: float
    pause: Callable[[float], None]

    def run(self, request: TrialRequest, enough: EarlyStop) -> Trial:
        def asked(windows: Sequence[Window]) -> bool:
            self.pause(windows[-1].duration_s / self.speed)
            return enough(windows)

        trial = self.bench.run(request, asked)
        self.pause(max(0.0, trial.cost_s - trial.ran_s) / self.speed)
        return trial


class Policy(Protocol):
    """Picks loads, ends trials, and stops: a pure function of the task and of all trials so far.

    The same measurements therefore give the same decisions: in a simulation, on a bench, and after a search was killed
    and resumed from disk.
    """

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
        return self.policy.best(task, trials, why)


def with_deadline(policy: Policy, deadline: datetime) -> Policy:
    """The policy with a deadline."""
    return DeadlinePolicy(policy, lambda: (deadline - datetime.now(UTC)).total_seconds())
