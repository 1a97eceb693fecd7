"""A task and an answer as members of `experiment.json`, and back; what cannot be meant is told by its name.

Who edits that file by hand, or copies it in part, gets one line instead of a search that fails later.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, cast

from etude.workbench.goal import Criterion, Goal
from etude.workbench.record import finite_all
from etude.workbench.task import Answer, Finding, Kind, Task

_SHARES = ("within", "confidence", "width", "accuracy")
_ABOVE_0 = ("lowest", "highest", "runlength_s", *_SHARES)
_MAY_LACK = ("seed_load", "seed_spread", "step", "budget_s")


def members(data: Task | Answer) -> dict[str, Any]:
    """As JSON has it."""
    return dict(finite_all(asdict(data)))


def task_of(told: Any) -> Task:
    """The task that was written; members that an older version did not know are as they are unless asked for.

    Raises:
        ValueError: one is missing, unknown, or cannot be meant.
    """
    known = dict(_mapping("task", told))
    unknown = known.keys() - {each.name for each in fields(Task)}
    if unknown:
        raise ValueError(f"{min(unknown)} is unknown to this Étude")
    known["goal"] = _goal(known.get("goal"))
    for name in {"lowest", "highest"} | known.keys() & {*_ABOVE_0}:
        known[name] = _number(name, known.get(name), most=1.0 if name in _SHARES else math.inf)
    for name in known.keys() & {*_MAY_LACK}:
        known[name] = None if known[name] is None else _number(name, known[name], zero=name == "budget_s")
    known["seed_shapes"] = _shapes(known.get("seed_shapes", ()))
    if known.get("promise", "rate") not in ("rate", "region"):
        raise ValueError(f"promise is {known['promise']!r}")
    known.setdefault("closed", known.get("whole", False))  # older versions knew no whole rates
    for name in ("whole", "closed"):
        if not isinstance(known.get(name, False), bool):
            raise ValueError(f"{name} is {known[name]!r}")
    for name in ("seed", "seed_trials"):
        if isinstance(known.get(name, 0), bool) or not isinstance(known.get(name, 0), int):
            raise ValueError(f"{name} is {known[name]!r}")
    return Task(**known)


def answer_of(told: Any) -> Answer:
    """The answer that was written. Raises ValueError: it is none."""
    known = _mapping("answer", told)
    rate = known.get("rate")
    if not isinstance(known.get("kept"), bool) or not isinstance(known.get("why"), str):
        raise ValueError("the answer lacks kept or why")
    return Answer(
        None if rate is None else _number("rate", rate, zero=True),
        _number("low", known.get("low"), zero=True),
        _number("high", known.get("high"), zero=True),
        _number("confidence", known.get("confidence"), zero=True),
        known["kept"],
        known["why"],
        tuple(_finding(each) for each in _list("findings", known.get("findings", []))),
    )


def _goal(told: Any) -> Goal:
    listed = _list("criteria", _mapping("goal", told).get("criteria"))
    if not listed:
        raise ValueError("the goal has no criterion")
    return Goal(tuple(_criterion(_mapping("criterion", each)) for each in listed))


def _criterion(told: Mapping[str, Any]) -> Criterion:
    of, percent = told.get("of"), told.get("percent")
    if of not in ("mean", "percentile", "errors"):
        raise ValueError(f"a criterion is of {of!r}")
    if (of == "percentile") != (percent is not None):
        raise ValueError(f"a criterion of {of} has percent {percent!r}")
    limit = _number("limit", told.get("limit"))
    return Criterion(of, limit, None if percent is None else _number("percent", percent, most=100.0))


def _shapes(told: Any) -> tuple[tuple[str, float], ...]:
    found = []
    for each in _list("seed_shapes", told):
        if not isinstance(each, list | tuple) or len(each) != 2 or not isinstance(each[0], str):
            raise ValueError(f"seed_shapes has {str(each)[:40]!r}")
        found.append((each[0], _number("seed_shapes", each[1], zero=True, most=1.0)))
    return tuple(found)


def _finding(told: Any) -> Finding:
    known = _mapping("finding", told)
    if not isinstance(known.get("kind"), str) or not isinstance(known.get("what"), str):
        raise ValueError(f"a finding is {str(told)[:40]!r}")
    return Finding(cast(Kind, known["kind"]), known["what"])


def _mapping(name: str, told: Any) -> Mapping[str, Any]:
    if not isinstance(told, Mapping):
        raise ValueError(f"{name} is {str(told)[:40]!r}")
    return told


def _list(name: str, told: Any) -> list[Any] | tuple[Any, ...]:
    if not isinstance(told, list | tuple):
        raise ValueError(f"{name} is {str(told)[:40]!r}")
    return told


def _number(name: str, told: Any, *, zero: bool = False, most: float = math.inf) -> float:
    """Above 0 (or 0, if that may be) and at most `most`; infinity is text (`trial_lines.finite`)."""
    value = math.nan
    if told == "inf":
        value = math.inf
    elif isinstance(told, int | float) and not isinstance(told, bool):
        value = float(told)
    if not (0 < value <= most or (zero and value == 0)):
        raise ValueError(f"{name} is {str(told)[:40]!r}")
    return value
