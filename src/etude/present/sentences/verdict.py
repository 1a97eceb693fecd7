"""A verdict as plain text: the final results, and the way to more precise ones."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from etude.analysis.cross_session import CrossSession
from etude.analysis.verdict import MetricSummary, TestVerdict, Verdict, not_compared
from etude.present.long_names import shortened
from etude.present.sentences.comparison import (
    FOLDED_ABOVE,
    missed_line,
    precision_line,
    quieter_line,
    ratio_lines,
    reached_by,
    test_line,
)
from etude.present.sentences.extension import limit_line, reaching_command
from etude.present.sentences.notes import listed_names
from etude.present.sentences.result_notes import missing_reason
from etude.present.sentences.status import status_of
from etude.present.sentences.warnings import group_text
from etude.units.formatting import percent

if TYPE_CHECKING:
    from etude.analysis.comparison import Comparison


def compared_lines(verdict: Verdict) -> Iterator[str]:
    """Lines on the comparisons of an experiment; what several of them share is one line for all."""
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
        f"{first.quieter.metric} is less noisy here, and excludes waiting: {len(comparisons)} of its ratios are "
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
        *note_lines(verdict),
    ]


def note_lines(verdict: Verdict) -> list[str]:
    """A line for each group of warnings."""
    return shortened(list(map(group_text, verdict.warnings)), [test.test for test in verdict.tests])


def answer_lines(verdict: Verdict) -> list[str]:
    """The end of a verdict: the comparisons, the means that missed their target, and the command that goes on."""
    extension = reaching_command(verdict)
    lines = [*compared_lines(verdict), *_precision_lines(verdict), *not_compared_lines(verdict)]
    return [
        *shortened(lines, [test.test for test in verdict.tests]),
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


def as_line(words: Iterable[str]) -> str:
    """`Not converged; resumed.`; empty where there are none."""
    joined = "; ".join(words)
    return joined and f"{joined.capitalize()}."


def status_line(verdict: Verdict, across: Sequence[CrossSession] = (), without: Sequence[str] = ()) -> str:
    """The words of `status_of` as a line; empty where all is as it should be."""
    return as_line(status_of(verdict, across, without))


NAMED = 3
"""Tests that a line names."""


def not_compared_lines(verdict: Verdict) -> Iterator[str]:
    """Lines on why tests were not compared, and how they can be."""
    found = not_compared(verdict)
    if found is None:
        return
    tests = listed_names(found.tests, NAMED, "test")
    if found.why == "too few pairs":
        yield f"Not compared: {tests}: fewer than two complete pairs; make more trials."
        return
    if found.why == "alone":
        yield f"Not compared: {tests}: no other test of the same blocks has a trial that counts."
        return
    apart = "they ran one after the other, so drift of the machine is in any difference"
    how = (
        "in a script INTERLEAVE … DONE around them pairs them"
        if found.script
        else "etude bench A B pairs them"
    )
    yield f"Not compared: {tests}: {apart}; {how}; --reference TEST of etude stats compares them unpaired."


def unanswered_lines(
    verdicts: Sequence[Verdict],
    across: Sequence[CrossSession],
    *,
    same_within: float | None,
    tests: Sequence[str] = (),
) -> list[str]:
    """Lines on options of comparisons that do not apply here; none if they do."""
    options = ["--same-within"] * (same_within is not None) + ["--test"] * bool(tests)
    named = " and ".join(options)
    if options and across:
        return [f"{named}: only for tests of one result, not of different sessions"]
    if options and not any(verdict.comparisons for verdict in verdicts):
        return [f"{named}: no tests are compared here; --reference TEST names what others are compared with"]
    return []


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
    """Lines on how values of several workers or commands became one of a trial, for these metrics; and on those that
    could not."""
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
