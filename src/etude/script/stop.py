"""The end of a test: by its stop program (`getstats --predicate` is evaluated here), or without enough trials."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from etude.analysis.getstats.options import GetstatsOptions, parse_getstats
from etude.errors import CommandFailed, InputError
from etude.results.model import from_line
from etude.script.rows import Output, tail

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


GIVEN_UP = "given up"
"""Start of the reason why a test ended whose trials kept failing."""
MAX_LINES = 10


def raise_failures(directory: Path, tests: Sequence[Mapping[str, Any]], kept: Callable[[str], int]) -> None:
    """Raise an error if a test has ended with fewer trials than its minimum.

    `tests`: the entries of experiment.json; `kept`: the number of included trials of a test.

    Raises:
        CommandFailed: names these tests, the cause of the first one's last failure, and its log, whose end is `detail`.
    """
    short = [test for test in tests if test.get("ended") and kept(test["name"]) < test["minimum"]]
    if not short:
        return
    given_up = [test["name"] for test in short if test["ended"].startswith(GIVEN_UP)]
    others = [
        f"{test['name']} ({kept(test['name'])} of at least {test['minimum']})"
        for test in short
        if test["name"] not in given_up
    ]
    parts = [f"{GIVEN_UP}, their trials kept failing: {', '.join(given_up)}"] if given_up else []
    parts += [f"too few trials: {', '.join(others)}"] if others else []
    parts += [
        f"{test['name']}: {test['ended']}"
        for test in short
        if not kept(test["name"]) and not test.get("failure")
    ]
    failure = next((test["failure"] for test in short if test.get("failure")), None)
    detail = ""
    if failure is not None:
        parts.append(failure["why"])
        log = directory / failure["log"] if failure["log"] else None
        if log is not None and log.is_file():
            parts.append(f"log: {log}")
            lines = tail(Output(str(log), 0)).strip().splitlines()[-MAX_LINES:]
            detail = "\n".join(f"  | {line}" for line in lines) if len(lines) > 1 else ""
    error = CommandFailed("; ".join(parts))
    error.detail = detail
    raise error


def failure_of(
    test_directory: str, trial: int, point: str, why: str, rows: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """A test's `failure` in experiment.json: the directive at which a trial failed, the reason, and its log."""
    failed = next((row["worker"] for row in rows if from_line(row).failed), 0)
    logs = {"EXEC": f"{test_directory}/logs/{trial:04d}-{failed}.log", "SYSTEM": "system.log"}
    log = logs.get(point, f"{test_directory}/hooks.log")
    return {"trial": trial, "at": point, "why": why, "log": log}
