"""`--fail-if` of any verb: its bounds, and what is answered to them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from etude.report.across import Across
    from etude.report.failing import Bound
    from etude.report.verdict import Verdict


def read_bounds(texts: Sequence[str]) -> list[Bound]:
    """The bounds that were given. Raises UsageError for what is none."""
    if not texts:
        return []
    from etude.report.failing import parse_bound

    return [parse_bound(text) for text in texts]


def answer(
    bounds: Sequence[Bound], verdicts: Sequence[Verdict], across: Sequence[Across], *, aside: bool
) -> int:
    """Say of each bound whether it is broken, by the interval; 1 where one is, else 0. aside: on standard error."""
    if not bounds:
        return 0
    from etude.cli.terminal import Terminal
    from etude.report.failing import answers

    screen = Terminal(sys.stderr if aside else None)
    tests = [test for verdict in verdicts[-1:] for test in verdict.tests]
    comparisons = [c for verdict in verdicts for c in verdict.comparisons]
    code = 0
    for bound in bounds:
        for found in answers(bound, tests, comparisons, across):
            said = {True: "yes", False: "no", None: "cannot be told"}[found.fails]
            screen.say(f"{bound.text}? {found.test}: {said}: {found.why}")
            code = max(code, int(found.fails is True))
    return code
