"""Request of an experiment, by command line or script, as far as its verdict needs it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from etude.analysis.getstats.options import parse_getstats
from etude.errors import InputError, UsageError
from etude.experiment.plan import DUET, from_document
from etude.results.results import names_of
from etude.stats.factors import MEAN_FACTORS, RATIO_FACTORS, Factors, factor_for


@dataclass(frozen=True)
class StopRuleInfo:
    """Stop rule and groups of an experiment. `factors`: widening of intervals by the stop rule, by test; `precision`:
    requested relative margin of error; `groups`: compared tests in common blocks, the baseline first."""

    primary: str
    duet: bool
    factors: Mapping[str, float]
    ratio_factors: Mapping[str, float]
    precision: float | None
    groups: tuple[tuple[str, ...], ...]
    judged: tuple[str, ...] = ()
    """All metrics that stop rules of a script name, `primary` the first; empty where none names one."""

    @property
    def compares(self) -> bool:
        """True if the experiment compares its tests by ratios."""
        return bool(self.groups)


def asked_of(experiment: Mapping[str, Any], directory: Path) -> StopRuleInfo:
    """The request of an experiment, from its experiment.json.

    Raises:
        InputError: its plan cannot be read.
    """
    plan, names = experiment["plan"], names_of(experiment)
    kind = plan.get("kind")
    if kind is None:
        return _of_commands(plan, names, directory / "experiment.json")
    if kind not in ("script", "res", "peak", "surface"):
        raise InputError(f"{directory}: a plan of kind {kind!r}; use a newer Étude")
    tests = [test for test in experiment["tests"] if test["name"] in names]
    primary, judged = _judged(str(plan.get("primary", "elapsed")), tests)
    return StopRuleInfo(
        primary,
        False,
        {test["name"]: mean_factor(test.get("stop_program"), test.get("minimum")) for test in tests},
        {
            test["name"]: mean_factor(test.get("stop_program"), test.get("minimum"), RATIO_FACTORS)
            for test in tests
        },
        None,
        _groups(tests),
        judged,
    )


def _of_commands(document: Mapping[str, Any], names: Sequence[str], file: Path) -> StopRuleInfo:
    plan = from_document(document, str(file))
    factors = dict.fromkeys(names, plan.rule.make().factor)
    return StopRuleInfo(
        plan.primary,
        plan.schedule == DUET,
        factors,
        factors,
        plan.rule.parameters.get("precision"),
        (tuple(names),) if plan.compares else (),
    )


def _judged(primary: str, tests: Sequence[Mapping[str, Any]]) -> tuple[str, tuple[str, ...]]:
    """The metric that all stop rules name, and all metrics that any of them names; `primary` if none does."""
    rules = [
        names for test in tests if (names := judged_columns(shlex.split(test.get("stop_program") or "")))
    ]
    named = dict.fromkeys(name for names in rules for name in names)
    common = [name for name in named if all(name in names for names in rules)]
    first = primary if primary != "elapsed" or not named else (common or [primary])[0]
    return first, tuple(dict.fromkeys((first, *named))) if named else ()


def judged_columns(program: Sequence[str]) -> tuple[str, ...]:
    """The columns that a stop program judges: those that a predicate of getstats names, else the elapsed time; none
    where it is another program, or there is none."""
    if not program or PurePath(program[0]).name != "getstats":
        return ()
    try:
        options = parse_getstats(program[1:])
    except UsageError:
        return ()
    return () if options.predicate is None else options.columns or ("elapsed",)


def mean_factor(program: object, minimum: object, factors: Factors = MEAN_FACTORS) -> float:
    """Widening factor for a script's test with a stop program; 1 for a fixed number of trials."""
    return factor_for(max(2, minimum), factors) if program and isinstance(minimum, int) else 1.0


def _groups(tests: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, ...], ...]:
    groups: dict[int, list[str]] = {}
    for test in tests:
        if test.get("group") is not None:
            groups.setdefault(test["group"], []).append(test["name"])
    return tuple(tuple(names) for names in groups.values() if len(names) > 1)
