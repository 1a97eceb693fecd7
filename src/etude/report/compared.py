"""Several comparisons of one experiment in sentences: what is alike of them is said once."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from etude.report.text import missed_line, quieter_line, ratio_lines, reached_by
from etude.units.formatting import percent

if TYPE_CHECKING:
    from etude.report.comparison import Comparison
    from etude.report.verdict import Verdict


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
