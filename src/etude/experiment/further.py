"""More of an experiment than was planned: new limits for its stop rule, so that it can go on after its end."""

from __future__ import annotations

from dataclasses import dataclass

from etude.errors import UsageError
from etude.experiment.plan import RuleSpec


@dataclass(frozen=True)
class Further:
    """New limits; None: as it was."""

    trials: int | None = None
    """Of a fixed number of trials."""
    max_trials: int | None = None
    budget_s: float | None = None
    precision: float | None = None

    def __bool__(self) -> bool:
        return self != Further()


def extended(rule: RuleSpec, further: Further) -> RuleSpec:
    """The rule with the new limits.

    Raises:
        UsageError: they do not fit the rule.
    """
    if rule.kind == "fixed-count":
        return _more_trials(rule, further)
    if rule.kind not in ("mean-precision", "ratio-precision"):
        raise UsageError(f"an experiment with the stop rule {rule.kind} cannot be extended; begin a new one")
    if further.trials is not None:
        raise UsageError(
            "--trials: this experiment has a precision to reach; give --max-trials, --time or --precision"
        )
    changed = {"maximum": further.max_trials, "budget_s": further.budget_s, "precision": further.precision}
    parameters = {**rule.parameters, **{name: value for name, value in changed.items() if value is not None}}
    if parameters["maximum"] < parameters["minimum"]:
        raise UsageError(
            f"--max-trials {parameters['maximum']}: is below the minimum of {parameters['minimum']} trials"
        )
    if not parameters["budget_s"] > 0:
        raise UsageError(f"--time {parameters['budget_s']:g}: expected seconds above 0")
    if not 0 < parameters["precision"] < 1:
        raise UsageError(
            f"--precision {parameters['precision']:g}: expected a share between 0 and 1, such as 0.02 or 2%"
        )
    return RuleSpec(rule.kind, parameters)


def _more_trials(rule: RuleSpec, further: Further) -> RuleSpec:
    """Of a fixed number, which only can grow."""
    count = rule.parameters["count"]
    if further != Further(trials=further.trials):
        raise UsageError(f"this experiment has a fixed number of trials ({count}); extend it with --trials N")
    if further.trials is None or further.trials < count:
        raise UsageError(f"--trials {further.trials}: this experiment has {count}; give more")
    return RuleSpec(rule.kind, {**rule.parameters, "count": further.trials})
