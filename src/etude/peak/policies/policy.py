"""What a policy is: a function of the task and of all trials so far, and of nothing else.

So the same measurements give the same decisions: in a simulation, on a bench, and after a search was killed and begun
again from what is on disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from etude.peak.task import Answer, Task, Trial, TrialRequest
from etude.peak.window import Window


class Policy(Protocol):
    """Picks loads, ends trials, and stops."""

    name: str

    def decide(self, task: Task, trials: Sequence[Trial]) -> TrialRequest | Answer:
        """The next trial, or the end. Draws, if any, come from `task.seed` and the number of trials."""
        ...

    def enough(
        self, task: Task, trials: Sequence[Trial], request: TrialRequest, windows: Sequence[Window]
    ) -> bool:
        """Whether the trial that runs may end after these windows of it."""
        ...

    def best(self, task: Task, trials: Sequence[Trial], why: str) -> Answer:
        """What is known so far, with its honest interval, when there is no more time; `why` there is none."""
        ...
