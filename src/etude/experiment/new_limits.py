"""New limits for the stop rule of an experiment, so that it can be resumed after its end."""

from __future__ import annotations

from dataclasses import dataclass

from etude.errors import UsageError
from etude.experiment.plan import RuleSpec


@dataclass(frozen=True)
class NewLimits:
    """Limits of a stop rule that replace those of the plan; None leaves one unchanged."""

    trials: int | None = None
    """Number of trials, if it is fixed."""
    max_trials: int | None = None
    budget_s: float | None = None
    precision: float | None = None

    def __bool__(self) -> bool:
        return self != NewLimits()


def extended_rule(rule: RuleSpec, limits: NewLimits) -> RuleSpec:
    """The rule with the new limits.

    Raises:
        UsageError: they do not fit the rule.
    """
    if rule.kind == "fixed-count":
        return _more_trials(rule, limits)
    if rule.kind not in ("mean-precision", "ratio-precision"):
        raise UsageError(f"an experiment with the stop rule {rule.kind} cannot be extended; begin a new one")
    if limits.trials is not None:
        raise UsageError(
            "--trials: this experiment has a precision to reach; give --max-trials, --time or --precision"
        )
    changed = {"maximum": limits.max_trials, "budget_s": limits.budget_s, "precision": limits.precision}
    parameters = {**rule.parameters, **{name: value for name, value in changed.items() if value is not None}}
    if limits.max_trials is not None and "least_s" in parameters:
        parameters["exact"] = True
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


def _more_trials(rule: RuleSpec, limits: NewLimits) -> RuleSpec:
    """The rule with a larger fixed number of trials; fewer are refused."""
    count = rule.parameters["count"]
    if limits != NewLimits(trials=limits.trials):
        raise UsageError(f"this experiment has a fixed number of trials ({count}); extend it with --trials N")
    if limits.trials is None or limits.trials < count:
        raise UsageError(f"--trials {limits.trials}: this experiment has {count}; give more")
    return RuleSpec(rule.kind, {**rule.parameters, "count": limits.trials})
