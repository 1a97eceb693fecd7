"""A search ends, and gives the reason for which it ended."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from etude.peak import search as searching
from etude.peak.search import search
from etude.peak.task import Answer, Task, Trial, TrialRequest
from etude.peak.window import Window
from support.policy_simulator import Server, mm1, task


class Endless:
    name = "endless"

    def decide(self, task: Task, trials: Sequence[Trial]) -> TrialRequest | Answer:
        return TrialRequest(100.0, 10.0, "again")

    def enough(
        self, task: Task, trials: Sequence[Trial], request: TrialRequest, windows: Sequence[Window]
    ) -> bool:
        return True

    def best(self, task: Task, trials: Sequence[Trial], why: str) -> Answer:
        return Answer(None, 0.0, 1.0, 0.0, False, why)


def test_without_a_budget_no_budget_is_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "MOST_TRIALS", 5)
    assert "budget" not in search(Endless(), task(), Server(mm1, 500.0, 1)).why
    assert "budget" in search(Endless(), task(budget_s=300.0), Server(mm1, 500.0, 1)).why
