"""A verdict as plain text: what is known in the end, and how more would be."""

from __future__ import annotations

from etude.report.compared import compared_lines
from etude.report.extension import limit_line, reaching
from etude.report.status import status_line
from etude.report.text import FOLDED_ABOVE, precision_line, test_line
from etude.report.uncompared import not_compared_lines
from etude.report.verdict import Verdict


def verdict_lines(verdict: Verdict) -> list[str]:
    """The whole verdict as plain text: status, tests, comparisons, how to reach a target, and all notes."""
    return [
        *filter(None, [status_line(verdict)]),
        *(test_line(test, verdict.primary) for test in verdict.tests),
        *answer_lines(verdict),
        *map(str, verdict.warnings),
    ]


def answer_lines(verdict: Verdict) -> list[str]:
    """The end of a verdict: the comparisons, the means that missed their target, and the command that goes on."""
    extension = reaching(verdict)
    return [
        *compared_lines(verdict),
        *_precision_lines(verdict),
        *not_compared_lines(verdict),
        *([line] if (line := limit_line(verdict)) else []),
        *([f"{extension.label}: {extension.command}"] if extension else []),
    ]


def _precision_lines(verdict: Verdict) -> list[str]:
    """The means that missed their target; of many, the worst."""
    found = [
        (test, line) for test in verdict.tests if (line := precision_line(test, verdict.asked)) is not None
    ]
    if len(found) <= FOLDED_ABOVE:
        return [line for _, line in found]
    kind, _, worst = max(found, key=lambda each: each[0].more)[1].partition(": ")
    return [f"{kind}: {len(found)} of {len(verdict.tests)} means; the worst: {worst}"]
