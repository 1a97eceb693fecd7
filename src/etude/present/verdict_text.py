"""A verdict as plain text: what is known in the end, and how more would be."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from etude.analysis.verdict import Verdict
from etude.present.extension import limit_line, reaching_command
from etude.present.not_compared_text import not_compared_lines
from etude.present.sentences.warnings import group_text
from etude.present.status_line import status_line
from etude.present.text import (
    FOLDED_ABOVE,
    missed_line,
    precision_line,
    quieter_line,
    ratio_lines,
    reached_by,
    test_line,
)
from etude.units.formatting import percent

if TYPE_CHECKING:
    from etude.analysis.comparison import Comparison
    from etude.analysis.verdict import Verdict


def compared_lines(verdict: Verdict) -> Iterator[str]:
    """The comparisons of an experiment; what is alike of several of them is said in one line for all."""
    comparisons = verdict.comparisons
    for c in comparisons:
        yield from ratio_lines(c)
    quieter = [c for c in comparisons if c.quieter]
    if len({(c.metric, c.quieter.metric) for c in quieter if c.quieter}) == 1 < len(quieter):
        yield _quieter_line_of_all(quieter, verdict.subject.label)
    else:
        yield from filter(None, map(quieter_line, quieter))
    missed = [c for c in comparisons if c.missed]
    if len(missed) > 1:
        yield _missed_line_of_all(missed, len(comparisons))
    else:
        yield from filter(None, (missed_line(c, len(comparisons) > 1) for c in missed))


def _quieter_line_of_all(comparisons: Sequence[Comparison], label: str) -> str:
    first = comparisons[0]
    assert first.quieter is not None
    known = _from_to([c.quieter.ratio.half_width for c in comparisons if c.quieter])
    coarser = _from_to([c.ratio.half_width for c in comparisons])
    return (
        f"{first.quieter.metric} is less noisy here, and leaves out waiting: {len(comparisons)} of its ratios are "
        f"known to ± {known}, those of {first.metric} to ± {coarser} (etude stats {shlex.quote(label)})."
    )


def _from_to(widths: Sequence[float]) -> str:
    """`0.52 % to 2.1 %`: the narrowest and the widest."""
    return " to ".join(dict.fromkeys(map(percent, (min(widths), max(widths)))))


def _missed_line_of_all(missed: Sequence[Comparison], count: int) -> str:
    widest, longest = max(missed, key=lambda c: c.ratio.half_width), max(missed, key=lambda c: c.more_s)
    return (
        f"Not converged: {len(missed)} of {count} ratios miss the target of ± {percent(widest.finer)}, the widest is "
        f"known to ± {percent(widest.ratio.half_width)}{reached_by(longest, ' of each')}."
    )


def verdict_lines(verdict: Verdict) -> list[str]:
    """The whole verdict as plain text: status, tests, comparisons, how to reach a target, and all notes."""
    return [
        *filter(None, [status_line(verdict)]),
        *(test_line(test, verdict.primary) for test in verdict.tests),
        *answer_lines(verdict),
        *map(group_text, verdict.warnings),
    ]


def answer_lines(verdict: Verdict) -> list[str]:
    """The end of a verdict: the comparisons, the means that missed their target, and the command that goes on."""
    extension = reaching_command(verdict)
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
