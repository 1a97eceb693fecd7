"""Tests of a script that lack trials, with the reasons: the error after the table of the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from etude.errors import CommandFailed
from etude.results.model import from_line
from etude.script.outputs import Output, tail

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
