"""The first line of a verdict: what a reader must know before any number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from etude.analysis.cross_session import CrossSession
from etude.analysis.verdict import Verdict
from etude.present.sentences.status import status_of


def as_line(words: Iterable[str]) -> str:
    """`Not converged; resumed.`; empty where there are none."""
    joined = "; ".join(words)
    return joined and f"{joined.capitalize()}."


def status_line(verdict: Verdict, across: Sequence[CrossSession] = (), without: Sequence[str] = ()) -> str:
    """The words of `status_of` as a line; empty where all is as it should be."""
    return as_line(status_of(verdict, across, without))
