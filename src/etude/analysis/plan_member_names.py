"""Members of the plan of `etude bench`, as a user writes them: `plan.rule.parameters.count` is --trials."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

_PLAN = {
    "schedule": "--schedule",
    "ignore_failure": "--ignore-failure",
    "check_output": "--check-output",
    "cgroup": "--no-cgroup",
    "counters": "--counters",
    "shell": "--shell",
    "primary": "--primary",
    "warmup": "--warmup",
    "rule.kind": "stop rule",
    "rule.parameters.count": "--trials",
    "rule.parameters.minimum": "--min-trials",
    "rule.parameters.maximum": "--max-trials",
    "rule.parameters.precision": "--precision",
    "rule.parameters.budget_s": "--time",
}
_TEST = {
    "name": "name",
    "command": "command line",
    "cpus": "--cpu",
    "timeout_s": "--timeout",
    "stdin": "--input",
    "directory": "working directory",
}
_MEMBER = re.compile(r"plan\.tests\.(\d+)\.([^.]+)(?:\.(.+))?")


def as_typed(what: str, plans: Sequence[Mapping[str, Any]]) -> str:
    """What stands for a member of one of these plans on the command line; empty where nothing does."""
    found = _MEMBER.fullmatch(what)
    if not found:
        return _PLAN.get(what.removeprefix("plan."), "")
    tests = [test for plan in plans if (test := test_at(plan, int(found[1])))]
    if not tests:
        return ""
    member, rest = found[2], found[3]
    if member == "metrics":
        return _metric(rest or "", tests)
    if member == "role":
        return ""
    if member in ("environment", "parameters") and rest:
        word = f"variable {rest}" if member == "environment" else f"-P {rest}"
    else:
        word = _TEST.get(member, f"--{member}")
    return f"{word} of {tests[0].get('name')}"


def test_at(plan: Mapping[str, Any], number: int) -> Mapping[str, Any] | None:
    """The test with that number, if the plan has so many."""
    tests = plan.get("tests")
    if not isinstance(tests, Sequence) or number >= len(tests) or not isinstance(tests[number], Mapping):
        return None
    found: Mapping[str, Any] = tests[number]
    return found


def command_line(command: object) -> str:
    """A command as it is typed."""
    return shlex.join(map(str, command)) if isinstance(command, Sequence) else str(command)


def _metric(rest: str, tests: Sequence[Mapping[str, Any]]) -> str:
    number, _, member = rest.partition(".")
    for test in tests:
        metrics = test.get("metrics") or ()
        if number.isdecimal() and int(number) < len(metrics):
            return f"--metric {metrics[int(number)].get('name')}{'' if member == 'regex' else f' ({member})'}"
    return "--metric"
