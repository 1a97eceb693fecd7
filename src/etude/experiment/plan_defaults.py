"""Makes a plan from a few commands and options: the defaults of `etude bench` and of the Python API."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import Any

from etude.errors import UsageError
from etude.experiment.plan import BLOCKS, DUET, IN_TURN, Plan, RuleSpec
from etude.experiment.test import Test, make_test
from etude.masking import Mask

MEAN_PRECISION, RATIO_PRECISION = 0.05, 0.02
MINIMUM, MAXIMUM, BUDGET_S = 10, 50, 30.0
MIN_TIME_S = 3.0
"""Minimum benchmarking time of a test, s, before precision or the default maximum ends it: a disturbance of one second
would otherwise affect all trials or none."""


def make_plan(
    commands: Sequence[str | Test],
    *,
    name: str | None = None,
    trials: int | None = None,
    min_trials: int | None = None,
    max_trials: int | None = None,
    precision: float | None = None,
    budget_s: float = BUDGET_S,
    least_s: float | None = None,
    schedule: str | None = None,
    seed: int | None = None,
    shell: str | None = None,
    **options: Any,
) -> Plan:
    """A plan for `commands` with the default stop rule for one or for several.

    `trials` fixes their number; `min_trials`, `max_trials`, `precision` (relative margin of error: of the mean for one
    command, of the ratio for several) and `budget_s` (wall-clock seconds, from the first run on, once the minimum is
    done) shape the rule. `least_s` (default 3): wall-clock seconds before which neither precision nor the maximum,
    unless that is given, ends a test.

    Raises:
        UsageError: invalid values.
    """
    mask = Mask(options.get("masks", ()))
    tests = tuple(
        c if isinstance(c, Test) else make_test(c, name=mask.text(c), shell=shell) for c in commands
    )
    schedule = schedule or BLOCKS
    if schedule not in (IN_TURN, BLOCKS, DUET):
        raise UsageError(f"schedule {schedule!r}; expected {IN_TURN}, {BLOCKS} or {DUET}")
    ratio = len(tests) > 1 and schedule != IN_TURN
    return Plan(
        name=name or (_word(tests[0]) if tests else "bench"),
        tests=tests,
        rule=_rule(ratio, trials, min_trials, max_trials, precision, budget_s, least_s),
        schedule=schedule,
        seed=random.SystemRandom().randrange(2**32) if seed is None else seed,
        shell=shell,
        **options,
    )


def _rule(
    ratio: bool,
    trials: int | None,
    min_trials: int | None,
    max_trials: int | None,
    precision: float | None,
    budget_s: float,
    least_s: float | None,
) -> RuleSpec:
    if trials is not None:
        if trials < 1:
            raise UsageError(f"--trials {trials}: at least 1 is needed")
        if (min_trials, max_trials, precision) != (None, None, None) or least_s:
            raise UsageError(
                "--trials fixes their number; leave out --min-trials, --max-trials, --min-time and --precision"
            )
        return RuleSpec("fixed-count", {"count": trials})
    minimum = MINIMUM if min_trials is None else min_trials
    if min_trials is None and max_trials is not None:
        minimum = min(MINIMUM, max_trials)
    maximum = max(MAXIMUM, minimum) if max_trials is None else max_trials
    wanted = precision if precision is not None else RATIO_PRECISION if ratio else MEAN_PRECISION
    if minimum < 2:
        option = "--max-trials" if min_trials is None else "--min-trials"
        raise UsageError(
            f"{option} {minimum}: an interval needs at least 2; for a single look use --trials 1"
        )
    if maximum < minimum:
        raise UsageError(f"--max-trials {maximum}: is below --min-trials {minimum}")
    if not 0 < wanted < 1:
        raise UsageError(
            f"--precision {wanted:g}: expected a relative margin of error between 0 and 1, such as 0.02 or 2%"
        )
    if not budget_s > 0:
        raise UsageError(f"--time {budget_s:g}: expected seconds above 0")
    if least_s is not None and not 0.0 <= least_s <= budget_s:
        raise UsageError(f"--min-time {least_s:g}: expected seconds from 0 to those of --time, {budget_s:g}")
    parameters = {"precision": wanted, "minimum": minimum, "maximum": maximum, "budget_s": budget_s}
    if least := MIN_TIME_S if least_s is None else least_s:
        parameters |= {"least_s": least} | ({} if max_trials is None else {"exact": True})
    return RuleSpec("ratio-precision" if ratio else "mean-precision", parameters)


def _word(test: Test) -> str:
    return os.path.basename(test.command[0]) or "bench"
