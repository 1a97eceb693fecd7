"""The words of the first line of a search and of a map (`present.sentences.status`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from etude.analysis.subject import was_resumed, was_simulated
from etude.cluster.pool.journal import FILE
from etude.present.sentences.status import (
    FAILED_CELLS,
    NOT_CONVERGED,
    RESUMED,
    SIMULATED,
    UNFINISHED,
)

if TYPE_CHECKING:
    from etude.peak.search_store import SearchStore
    from etude.peak.task import Answer
    from etude.surface.map_store import MapStore
    from etude.surface.surface_result import SurfaceResult


def of_search(kept: SearchStore, answer: Answer) -> tuple[str, ...]:
    """The words for a search, the most important first; none where all is as it should be."""
    words = {
        SIMULATED: was_simulated(kept.document),
        NOT_CONVERGED: not answer.kept,
        UNFINISHED: kept.answer is None,
        RESUMED: was_resumed(kept.document),
    }
    return tuple(word for word, holds in words.items() if holds)


def of_map(kept: MapStore, mapped: SurfaceResult) -> tuple[str, ...]:
    """The words for a map, the most important first; none where all is as it should be."""
    samples = mapped.last.values()
    over_a_pool = (kept.directory / FILE).exists()
    words = {
        SIMULATED: was_simulated(kept.document),
        FAILED_CELLS: any(sample.state == "failed" for sample in samples),
        NOT_CONVERGED: any(sample.state != "failed" and not sample.kept for sample in samples),
        UNFINISHED: kept.document.get("surface") is None,
        RESUMED: not over_a_pool and was_resumed(kept.document),
    }
    return tuple(word for word, holds in words.items() if holds)
