"""Interface of a policy: a pure function of the task and of all trials so far.

The same measurements therefore give the same decisions: in a simulation, on a bench, and after a search was killed and
resumed from disk.
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
