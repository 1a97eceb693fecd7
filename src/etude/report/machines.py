"""What differs between the machines, and the programs of Étude, that two experiments were run on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from etude.report.differences import Difference, compare, compare_states, state_of

__all__ = ["Difference", "compare", "machine_differences"]


def machine_differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[Difference, ...]:
    """What is recorded of machine, programs and versions in both experiment.json, and is not the same."""
    return compare_states(_state(then), _state(now)).differs


def _state(document: Mapping[str, Any]) -> dict[str, Any]:
    state = state_of(document)
    for test in document.get("tests") or ():  # what a command was made of, where that is recorded
        made_of = {member: test.get(member) or {} for member in ("programs", "digests", "executables")}
        if any(made_of.values()):
            state[str(test.get("name"))] = made_of
    return state
