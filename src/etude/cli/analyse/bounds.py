"""`--fail-if` and `--undecided` of any verb: the bounds, and what is answered to them."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from etude.cli.parser import closest
from etude.cli.shared_options import UNDECIDED
from etude.errors import UsageError
from etude.results.model import METRICS

if TYPE_CHECKING:
    from etude.analysis.cross_session import CrossSession
    from etude.analysis.gate import Bound
    from etude.analysis.verdict import Verdict

_TIMES = frozenset(("mean", "time", "median", "ratio", "real", "wall", "wallclock", "duration", "runtime"))
"""Names that other tools give to `elapsed`."""


def read_bounds(texts: Sequence[str]) -> list[Bound]:
    """The bounds that were given. Raises UsageError for what is none."""
    if not texts:
        return []
    from etude.analysis.gate import parse_bound

    return [parse_bound(text) for text in texts]


def check_bounds(
    bounds: Sequence[Bound],
    primary: str,
    tests: int,
    schedule: str,
    own: Collection[str],
    *,
    stored: bool,
) -> None:
    """Check, before anything is measured, that such an experiment can answer the bounds.

    primary: the metric that is compared. tests: their number. schedule: their order. own: metrics that the
    programs print. stored: whether there are stored results to compare with.

    Raises:
        UsageError: it cannot; it names what to type.
    """
    known = {*METRICS, *own}
    for bound in bounds:
        wrong = f"--fail-if {bound.text!r}: "
        if bound.metric not in known:
            close = "elapsed" if bound.metric in _TIMES else closest(bound.metric, known)
            raise UsageError(
                f"{wrong}no metric {bound.metric!r}"
                + (f" (did you mean {close}?)" if close else "; there are " + ", ".join(sorted(known)))
            )
        if bound.of == "value":
            continue
        if bound.metric != primary:
            raise UsageError(
                f"{wrong}{primary} is compared; to compare {bound.metric}: --primary {bound.metric}"
            )
        if tests < 2 and not stored:
            raise UsageError(
                f"{wrong}there is no baseline; give the command of the baseline before the other, or --baseline DIR"
            )
        if schedule == "in-turn" and not stored:
            raise UsageError(
                f"{wrong}--schedule in-turn compares nothing: leave it out, or give --baseline DIR"
            )


def answer(
    bounds: Sequence[Bound],
    verdicts: Sequence[Verdict],
    across: Sequence[CrossSession],
    *,
    undecided: str = "pass",
    few: int | None = None,
    beside: Sequence[tuple[str, str]] = (),
    aside: bool,
) -> int:
    """Print of each bound whether it is broken, by the interval, and return the exit code: 1 where one is.

    undecided: `pass` or `fail`, what a bound that is undecided does; few: fewer trials than this decide nothing
    (default: as by the warnings' own threshold); beside: options that the bounds need, of the command that decides
    them; aside: print on standard error.
    """
    if not bounds:
        return 0
    from etude.analysis.gate import answers
    from etude.analysis.warnings import Thresholds
    from etude.present.sentences.bounds import answer_reason
    from etude.present.sentences.extension import deciding_command
    from etude.present.sentences.result_notes import uncompared_text
    from etude.present.terminal import Terminal

    screen = Terminal(sys.stderr if aside else None)
    comparisons = [c for verdict in verdicts[1:] or verdicts for c in verdict.comparisons]
    few = Thresholds.few if few is None else few
    without = [uncompared_text(each) for verdict in verdicts[1:] or verdicts for each in verdict.without]
    given = []
    for bound in bounds:
        tests, together = verdicts[-1].together(bound.metric) if bound.of == "value" else ((), 1)
        found = answers(
            bound,
            tests,
            comparisons,
            across,
            few=few,
            without=without,
            confidence=verdicts[-1].verdict_options.confidence,
            together=together,
        )
        given += [(bound, each) for each in found]
    for bound, each in given:
        said = {True: "yes", False: "no", None: "undecided"}[each.fails]
        screen.say(f"{bound.text}? {each.test}: {said}: {answer_reason(each)}")
    broken = any(each.fails for _, each in given)
    open_ones = sum(each.fails is None for _, each in given)
    if open_ones and undecided == "pass":
        screen.say(f"--fail-if: {open_ones} undecided, which passes; --undecided fail exits with {UNDECIDED}")
    elif open_ones:
        screen.say(f"--fail-if: {open_ones} undecided, which fails")
    judged = [*(("--fail-if", bound.text) for bound in bounds), *beside]
    judged += [("--undecided", undecided)] if undecided != "pass" else []
    if len(verdicts) == 1 and (way := deciding_command(verdicts[0], [found for _, found in given], judged)):
        purpose, extension = way
        screen.say_command(purpose, extension.command)
    return 1 if broken else UNDECIDED if open_ones and undecided == "fail" else 0
