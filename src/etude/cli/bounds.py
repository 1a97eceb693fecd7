"""`--fail-if` and `--undecided` of any verb: the bounds, and what is answered to them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from etude.report.across import Across
    from etude.report.failing import Bound
    from etude.report.verdict import Verdict


UNDECIDED = 8
"""Exit code of a bound that the interval holds, with --undecided fail."""


def add_undecided(parser: argparse._ActionsContainer) -> None:
    """Declare --undecided, which belongs to --fail-if."""
    parser.add_argument(
        "--undecided",
        choices=("pass", "fail"),
        default="pass",
        help=f"what a bound of --fail-if does that the interval holds, so that it is undecided: pass ends with 0, "
        f"fail with {UNDECIDED} (default pass)",
    )


def read_bounds(texts: Sequence[str]) -> list[Bound]:
    """The bounds that were given. Raises UsageError for what is none."""
    if not texts:
        return []
    from etude.report.failing import parse_bound

    return [parse_bound(text) for text in texts]


def answer(
    bounds: Sequence[Bound],
    verdicts: Sequence[Verdict],
    across: Sequence[Across],
    *,
    undecided: str = "pass",
    aside: bool,
) -> int:
    """Print of each bound whether it is broken, by the interval, and return the exit code: 1 where one is.

    undecided: `pass` or `fail`, what an interval that holds its bound does; aside: print on standard error.
    """
    if not bounds:
        return 0
    from etude.cli.terminal import Terminal
    from etude.report.failing import answers

    screen = Terminal(sys.stderr if aside else None)
    tests = [test for verdict in verdicts[-1:] for test in verdict.tests]
    comparisons = [c for verdict in verdicts for c in verdict.comparisons]
    without, broken = 0, False
    for bound in bounds:
        for found in answers(bound, tests, comparisons, across):
            said = {True: "yes", False: "no", None: "undecided"}[found.fails]
            screen.say(f"{bound.text}? {found.test}: {said}: {found.why}")
            broken |= found.fails is True
            without += found.fails is None
    if without and undecided == "pass":
        screen.say(f"--fail-if: {without} undecided, which passes; --undecided fail ends with {UNDECIDED}")
    elif without:
        screen.say(f"--fail-if: {without} undecided, which fails; more trials may decide it")
    return 1 if broken else UNDECIDED if without and undecided == "fail" else 0
