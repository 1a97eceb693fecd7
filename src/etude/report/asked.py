"""What was asked of an experiment, by a command line or a script, as far as its verdict needs to know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from etude.errors import InputError
from etude.experiment.plan import from_document
from etude.experiment.schedule import DUET
from etude.results.reader import Results
from etude.stats.factors import MEAN_FACTORS, RATIO_FACTORS, factor_for


@dataclass(frozen=True)
class Asked:
    """`factors`: by test, what its stop rule widens intervals by; `precision`: the relative half width that was to be
    reached; `groups`: tests that were run in common blocks and are compared, each group's first being the reference."""

    primary: str
    duet: bool
    factors: Mapping[str, float]
    ratio_factors: Mapping[str, float]
    precision: float | None
    groups: tuple[tuple[str, ...], ...]

    @property
    def compares(self) -> bool:
        """Whether ratios are what matters."""
        return bool(self.groups)


def asked_of(results: Results) -> Asked:
    """What an experiment was asked for.

    Raises:
        InputError: its plan cannot be read.
    """
    plan, names = results.experiment["plan"], results.names()
    kind = plan.get("kind")
    if kind is None:
        return _of_commands(results, names)
    if kind not in ("script", "res", "peak", "surface"):
        raise InputError(f"{results.directory}: a plan of kind {kind!r}; use a newer Étude")
    tests = [test for test in results.experiment["tests"] if test["name"] in names]
    return Asked(
        str(plan.get("primary", "elapsed")),
        False,
        {test["name"]: _factor(test, False) for test in tests},
        {test["name"]: _factor(test, True) for test in tests},
        None,
        _groups(tests),
    )


def _of_commands(results: Results, names: Sequence[str]) -> Asked:
    plan = from_document(results.experiment["plan"], str(results.directory / "experiment.json"))
    factors = dict.fromkeys(names, plan.rule.make().factor)
    return Asked(
        plan.primary,
        plan.schedule == DUET,
        factors,
        factors,
        plan.rule.parameters.get("precision"),
        (tuple(names),) if plan.compares else (),
    )


def _factor(test: Mapping[str, Any], ratio: bool) -> float:
    """What a script's test pays for having been looked at until its predicate held; nothing for a fixed number."""
    minimum = test.get("minimum")
    if not test.get("stop_program") or not isinstance(minimum, int):
        return 1.0
    return factor_for(max(2, minimum), RATIO_FACTORS if ratio else MEAN_FACTORS)


def _groups(tests: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, ...], ...]:
    groups: dict[int, list[str]] = {}
    for test in tests:
        if test.get("group") is not None:
            groups.setdefault(test["group"], []).append(test["name"])
    return tuple(tuple(names) for names in groups.values() if len(names) > 1)
