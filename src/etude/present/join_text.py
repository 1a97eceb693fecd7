"""How the values of several workers or commands became one of a trial, in words."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from etude.present.sentences.result_notes import missing_reason

if TYPE_CHECKING:
    from etude.analysis.verdict import MetricSummary, TestVerdict

_JOINED = {"sum": "sum", "max": "largest", "min": "smallest", "mean": "mean"}


def joined_words(m: MetricSummary) -> str:
    """`sum of 4 workers`: how the values of one trial became one; empty where there was one."""
    return _joined_words(m.joined, (m.workers,)) if m.joined in _JOINED else ""


def _joined_words(how: str, workers: Collection[int]) -> str:
    """`sum of 2, 4 or 8 workers`; 1 stands for the commands of one."""
    several = [str(number) for number in sorted(workers) if number > 1]
    most = [f"{', '.join(several[:-1])} or {several[-1]}" if len(several) > 1 else "".join(several)]
    parts = [
        *(["a worker's commands"] if 1 in workers else []),
        *(f"{each} workers" for each in most if each),
    ]
    return f"{_JOINED[how]} of {' or '.join(parts)}"


def joined_lines(tests: Sequence[TestVerdict], metrics: Collection[str]) -> list[str]:
    """How the values of several workers or commands became one of a trial, of these metrics; which could not."""
    workers: dict[tuple[str, str], set[int]] = {}
    refused: dict[str, dict[str, None]] = {}
    for test in tests:
        for m in test.metrics:
            if m.metric in metrics and m.joined in _JOINED:
                workers.setdefault((m.joined, m.metric), set()).add(m.workers)
            elif m.metric in metrics and m.joined and (reason := missing_reason(m)):
                refused.setdefault(reason, {})[m.metric] = None
    found: dict[str, list[str]] = {}
    for (how, metric), numbers in workers.items():
        found.setdefault(_joined_words(how, numbers), []).append(metric)
    return [
        *(f"In each trial the {how}: {', '.join(names)}" for how, names in found.items()),
        *(f"{', '.join(names)}: {reason}" for reason, names in refused.items()),
    ]
