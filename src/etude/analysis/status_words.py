"""The words of a first line, as data: what a reader must know of a result before any number, of whatever verb it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from etude.results.session_groups import session_groups

SIMULATED = "simulated"
NOT_CONVERGED = "not converged"
FAILED_CELLS = "failed cells"
REFUSED = "refused"
UNFINISHED = "unfinished"
RESUMED = "resumed"


def was_simulated(experiment: Mapping[str, Any]) -> bool:
    """Whether no machine served what experiment.json tells of: a search of a simulated server, or a map of some."""
    plan = experiment.get("plan")
    plan = plan if isinstance(plan, Mapping) else {}
    if plan.get("kind") == "peak":
        return str(plan.get("harness")).split()[:1] == ["simulate"]
    return plan.get("kind") == "surface" and plan.get("spec") == ""


def was_resumed(experiment: Mapping[str, Any]) -> bool:
    """Whether experiment.json has several sessions. Those between which it restarted the machine are one; those of the
    nodes of a pool run beside each other."""
    return (
        not experiment.get("pool") and len(set(session_groups(experiment.get("sittings") or ()).values())) > 1
    )
