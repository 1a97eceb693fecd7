"""Words of the first line of a result of any verb: all that a reader must know before the numbers."""

from __future__ import annotations

from collections.abc import Sequence

from etude.analysis.cross_session import CrossSession
from etude.analysis.subject import SIMULATED as SIMULATED
from etude.analysis.subject import was_resumed, was_simulated
from etude.analysis.verdict import TestVerdict, Verdict
from etude.stats.cross_session import NotSupported

NOT_CONVERGED = "not converged"
FAILED_CELLS = "failed configurations"
REFUSED = "refused"
UNFINISHED = "unfinished"
RESUMED = "resumed"

OF_KINDS = {
    "different-work": "outputs differ",
    "mixed-failures": "failed trials",
    "failed": "failed trials",
    "caches": "caches not as declared",
    "not-converged": NOT_CONVERGED,
}
"""The word for a kind of warning, the most important first."""


def status_of(
    verdict: Verdict, across: Sequence[CrossSession] = (), without: Sequence[str] = ()
) -> tuple[str, ...]:
    """The words for one result, the most important first; none where all is as it should be."""
    kinds = {each.kind for each in verdict.every}
    words = [SIMULATED] if was_simulated(verdict.subject.experiment or {}) else []
    words += [word for kind, word in OF_KINDS.items() if kind in kinds]
    if any(c.missed for c in verdict.comparisons) or any(test.missed for test in verdict.tests):
        words.append(NOT_CONVERGED)
    if (
        without
        or any(_is_refused(test, verdict.primary) for test in verdict.tests)
        or any(isinstance(each.found, NotSupported) for each in across)
    ):
        words.append(REFUSED)
    return tuple(dict.fromkeys([*words, *_of_sessions(verdict)]))


def _is_refused(test: TestVerdict, metric: str) -> bool:
    found = test.metric(metric)
    return found is not None and found.within_shell


def _of_sessions(verdict: Verdict) -> list[str]:
    experiment = verdict.subject.experiment or {}
    sessions = experiment.get("sittings") or []
    words = []
    if sessions and sessions[-1].get("how_ended", "complete") != "complete":
        words.append(UNFINISHED)
    if was_resumed(experiment):
        words.append(RESUMED)
    return words
