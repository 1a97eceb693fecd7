"""Stop programs: `getstats --predicate` is evaluated here, on the data in memory; others run on the results file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from pathlib import PurePath
from typing import TYPE_CHECKING

from etude.analysis.getstats.options import GetstatsOptions, parse_getstats
from etude.errors import InputError

if TYPE_CHECKING:
    from etude.stats.predicate import Predicate


LIMITED = "stopped by"
"""Start of the reason why a test ended by a limit of trials or time, not by its stop rule's target."""


def evaluate_stop_program(
    program: Sequence[str],
    sample: Callable[[str], Sequence[float]],
    run: Callable[[Sequence[str]], str | None],
) -> tuple[bool, str]:
    """True if a test has enough trials, and a clause with the reason.

    `sample` returns a metric over the included trials; `run` runs a program with the results file's name appended, and
    returns why it did not exit with 0.

    Raises:
        InputError: the predicate cannot be evaluated.
    """
    options = own_predicate(tuple(program))
    if options is None:
        why = run(program)
        name = PurePath(program[0]).name
        return why is None, f"{name} has seen enough" if why is None else f"{name}: not yet"
    predicate = _compiled(options.predicate or "", options.confidence)
    samples = {column: sample(column) for column in options.judged}
    return _judged(predicate, samples)


@lru_cache(maxsize=256)
def own_predicate(program: tuple[str, ...]) -> GetstatsOptions | None:
    """The options of a `getstats --predicate …` that can be evaluated here; None for any other program.

    Raises:
        UsageError: it is getstats, with invalid options.
    """
    if PurePath(program[0]).name != "getstats":
        return None
    options = parse_getstats(program[1:])
    here = options.predicate is not None and not options.files and not options.relational
    return options if here else None


def check(program: Sequence[str]) -> None:
    """Check a stop program before anything is measured.

    Raises:
        InputError, UsageError: invalid options or an invalid predicate.
    """
    options = own_predicate(tuple(program))
    if options is not None:
        _compiled(options.predicate or "", options.confidence)


def check_metrics(
    test: str, program: Sequence[str], metrics: Mapping[str, int], all_need_values: bool
) -> None:
    """Check that a test has the metrics of its stop rule; `metrics`: the number of values of each.

    Raises:
        InputError: a metric, or a required value, is missing, so that the rule would never be met.
    """
    options = own_predicate(tuple(program)) if program else None
    for column in options.judged if options is not None else ():
        if metrics.get(column) == 0 and all_need_values:
            raise InputError(
                f"the stop rule of test {test!r}: {column} has no value in any trial (see its rows)"
            )
        if column not in metrics:
            alike = get_close_matches(column, metrics, 1)
            hint = f"did you mean {alike[0]}?" if alike else f"there are {', '.join(metrics)}"
            raise InputError(f"the stop rule of test {test!r}: no metric {column}; {hint}")


@lru_cache(maxsize=256)
def _compiled(text: str, confidence: float) -> Predicate:
    from etude.stats.expression import ExpressionError
    from etude.stats.predicate import Predicate

    try:
        return Predicate(text, confidence)
    except ExpressionError as error:
        raise InputError(f"predicate {text!r}: {error}") from None


def _judged(predicate: Predicate, samples: Mapping[str, Sequence[float]]) -> tuple[bool, str]:
    from etude.stats.expression import ExpressionError

    try:
        judgement = predicate.judge(samples)
    except ExpressionError as error:
        raise InputError(f"predicate: {error}") from None
    if judgement.limit:
        return True, f"{LIMITED} {judgement.limit}"
    return judgement.holds, f"the predicate {judgement.why}" if judgement.holds else judgement.why
