"""The plan of an experiment: plain data, all that is needed to run, resume or repeat it, with its defaults."""

from __future__ import annotations

import hashlib
import json
import math
import os
import random
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from etude.codec import decoded, short
from etude.errors import EDITED, InputError, MachineRefuses, UsageError
from etude.experiment.test import Test, make_test, to_plan
from etude.masking import MASKED, Mask
from etude.osutil.trust import check_for_root
from etude.stats.factors import next_look

if TYPE_CHECKING:
    from etude.stats.stopping import Rule


IN_TURN, BLOCKS, DUET = "in-turn", "blocks", "duet"


def groups(schedule: str, tests: Sequence[Test]) -> list[tuple[Test, ...]]:
    """Tests that share blocks: each alone when in turn, else all together."""
    return [(test,) for test in tests] if schedule == IN_TURN else [tuple(tests)]


def block_order(tests: Sequence[Test], block: int, seed: int) -> list[Test]:
    """The members of a block in random order, which depends on the seed and the block alone.

    Random order within each block keeps its error rate under drift, steps and periods, where a strict ABAB
    fails at period two (simulation, docs/explanation/calibration.md).
    """
    order = list(tests)
    random.Random(f"{seed}:{block}").shuffle(order)
    return order


def disjoint_cpus(cpus: Sequence[int], parties: int, block: int, seed: int) -> list[tuple[int, ...]]:
    """CPUs for each party of a duet: equal shares, dealt anew for each block so that no party owns the better ones.
    Raises MachineRefuses: there are fewer CPUs than parties."""
    share = len(cpus) // parties
    if share == 0:
        raise MachineRefuses(
            f"{len(cpus)} CPU{'' if len(cpus) == 1 else 's'} for a duet of {parties}; each needs one of its own"
        )
    shares = [tuple(cpus[i * share : (i + 1) * share]) for i in range(parties)]
    random.Random(f"{seed}:{block}:cpus").shuffle(shares)
    return shares


CHECK_FIRST, CHECK_EACH = "first", "each"
COUNTERS_AUTO = "auto"  # count perf events where there are hardware ones; also "on" and "off"


@dataclass(frozen=True)
class RuleSpec:
    """A stop rule by its name and parameters; `make` builds the rule itself (and only then loads numpy)."""

    kind: str  # fixed-count, mean-precision, ratio-precision or time-budget
    parameters: Mapping[str, Any]

    @property
    def minimum(self) -> int:
        """Minimum number of trials, before which the rule is not evaluated."""
        found: int = self.parameters.get("count", self.parameters.get("minimum", 1))
        return found

    @property
    def maximum(self) -> float:
        """Maximum number of trials, after which the rule ends once its minimum time has passed."""
        found: float = self.parameters.get("count", self.parameters.get("maximum", math.inf))
        return found

    def next_look(self, count: int) -> int:
        """The smallest number of trials, from `count` on, at which the rule is evaluated."""
        look = next_look(count, self.minimum)
        return look if count > self.maximum else int(min(look, self.maximum))

    @property
    def budget_s(self) -> float:
        """Time limit of the rule, s; inf without one."""
        seconds: float = self.parameters.get("budget_s", self.parameters.get("seconds", math.inf))
        return seconds

    def ends(self, count: int, spent_s: float) -> bool:
        """True if a limit of trials or of time is reached, so that the rule is evaluated before its next look."""
        least_s: float = 0.0 if self.parameters.get("exact") else self.parameters.get("least_s", 0.0)
        return spent_s >= self.budget_s or (count >= self.maximum and spent_s >= least_s)

    def make(self) -> Rule:
        """The rule. Raises InputError: its name or a parameter is invalid."""
        try:
            return self.made()
        except ValueError as error:
            raise InputError(f"stop rule {short(self.kind)}: {error}") from None

    def made(self) -> Rule:
        """The rule. Raises ValueError with the member and its fault."""
        from etude.stats import stopping

        rules: Mapping[str, type] = {
            "fixed-count": stopping.FixedCount,
            "mean-precision": stopping.MeanPrecision,
            "ratio-precision": stopping.RatioPrecision,
            "time-budget": stopping.TimeBudget,
        }
        kind = rules.get(self.kind)
        if kind is None:
            raise ValueError(f"kind: expected {', '.join(rules)}, found {short(self.kind)}")
        known = {each.name: each for each in fields(kind)}
        for name, each in known.items():
            if each.default is MISSING and name not in self.parameters:
                raise ValueError(f"parameters.{name}: is missing")
        for name, value in self.parameters.items():
            if name not in known:
                raise ValueError(f"parameters.{name}: is unknown to this Étude")
            if type(value) not in _KINDS[str(known[name].type)]:
                raise ValueError(
                    f"parameters.{name}: expected {_NAMES[str(known[name].type)]}, found {short(value)}"
                )
        try:
            rule: Rule = kind(**self.parameters)
        except EDITED as error:
            raise ValueError(f"parameters: {error}") from None
        return rule


_NAMES = {"int": "a whole number", "float": "a number", "bool": "true or false"}
_KINDS = {"int": (int,), "float": (int, float), "bool": (bool,)}
"""Types of a stop rule's parameters, by their annotation."""


@dataclass(frozen=True)
class Plan:
    """The plan of one experiment.

    `again_every`: number of blocks between A/A pairs of the baseline, half of that for the first five; 0: none.
    `warmup`: runs of each test before its first trial, recorded and excluded.
    `masks`: patterns of secrets in commands, in addition to the default ones.
    """

    name: str
    tests: tuple[Test, ...]
    rule: RuleSpec
    schedule: str = BLOCKS
    seed: int = 0
    ignore_failure: bool = False
    check_output: str = CHECK_FIRST
    cgroup: bool = True
    counters: str = COUNTERS_AUTO
    shell: str | None = None
    again_every: int = 4
    primary: str = "elapsed"
    warmup: int = 1
    masks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = [test.name for test in self.tests]
        if not names:
            raise UsageError("nothing to run: give at least one command")
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise UsageError(
                f"two tests are called {sorted(twice)[0]!r}; give each a name of its own with -n"
            )
        if self.warmup < 1:
            raise UsageError(
                f"--warmup {self.warmup}: the first run of each is always a warm-up, by which outputs are "
                "compared; give 1 or more"
            )
        if self.schedule not in (IN_TURN, BLOCKS, DUET):
            raise UsageError(f"schedule {self.schedule!r}; expected {IN_TURN}, {BLOCKS} or {DUET}")
        if self.schedule == DUET and len(names) < 2:
            raise UsageError("a duet needs two or more commands")
        if self.schedule == DUET and any(test.cpus is not None for test in self.tests):
            raise UsageError("a duet deals the CPUs among its commands itself; leave out --cpu")
        if self.shell and any(test.inner != 1 for test in self.tests):
            raise UsageError(
                "the start of --shell cannot be subtracted from inner repetitions; leave out one of them"
            )
        if self.schedule == DUET and any(test.inner != 1 for test in self.tests):
            raise UsageError("a duet runs each command once a trial: leave out inner repetitions")

    @cached_property
    def mask(self) -> Mask:
        """Mask that removes secrets from what is stored beside the plan."""
        return Mask(self.masks)

    @property
    def compares(self) -> bool:
        """True if tests are compared: they share blocks."""
        return len(self.tests) > 1 and self.schedule != IN_TURN


def to_document(plan: Plan) -> dict[str, Any]:
    """The plan as JSON-able data."""
    document = asdict(plan)
    document["tests"] = [to_plan(test) for test in plan.tests]
    if plan.warmup == 1:
        del document["warmup"]  # same as older versions wrote it
    if masks := document.pop("masks"):
        document["masks"] = list(masks)
    return document


def from_document(document: Mapping[str, Any], source: str) -> Plan:
    """The plan from its data. Raises InputError: it is invalid; `source` names its file."""
    plan = decoded(Plan, document, source, "plan", only=True)
    try:
        plan.rule.made()
    except ValueError as error:
        raise InputError(f"{source}: plan.rule.{error}; was it edited?") from None
    try:
        Mask(plan.masks)
    except UsageError as error:
        raise InputError(f"{source}: plan.masks: {error}; was it edited?") from None
    return plan


def plan_to_resume(document: Mapping[str, Any], source: str) -> Plan:
    """The plan of an `experiment.json` whose commands are about to be run. Raises InputError: it is invalid, differs
    from the stored one, or others could have written what root would run."""
    check_for_root(source)
    check_resumes(document, os.path.dirname(source), None)
    plan = from_document(document["plan"], source)
    if document.get("digest") != _digest(document["plan"]):
        refuse_masked(document["plan"], source)
        raise InputError(f"{source}: its plan does not fit its digest; was it edited? Begin a new experiment")
    return plan


def resume_command(document: Mapping[str, Any], directory: str | os.PathLike[str]) -> str:
    """The command that resumes an experiment, by the verb that made it."""
    kind, verb = document["plan"].get("kind"), str(document.get("verb"))
    if kind not in (None, "script", "bisect"):
        return f"the same etude {kind} command with -o {shlex.quote(str(directory))}"
    if verb == "why":
        return shlex.join(document["command_line"])
    by = {"script": "run", "bisect": "bisect"}.get(kind, verb if " " in verb else "bench")
    return shlex.join(["etude", *by.split(), "--resume", str(directory)])


def check_resumes(
    document: Mapping[str, Any], directory: str | os.PathLike[str], kind: Literal["script"] | None
) -> None:
    """Raise InputError for an experiment of another kind: of a script, or of commands."""
    if document["plan"].get("kind") != kind:
        what = "a script" if kind else "etude bench"
        raise InputError(
            f"{directory}: holds no results of {what}; resume with: {resume_command(document, directory)}"
        )


def refuse_masked(plan: Mapping[str, Any], source: str) -> None:
    """Raise InputError for a plan whose secrets were masked, in a bundle."""
    if MASKED in json.dumps(plan):
        raise InputError(
            f"{source}: a secret in its commands was masked when it was packed, so they cannot be run; repeat it from "
            "the results directory itself"
        )


def digest(plan: Plan) -> str:
    """SHA-256 of the plan as canonical JSON: equal for equal plans."""
    return _digest(to_document(plan))


def _digest(document: Mapping[str, Any]) -> str:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


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
    """The rule with the new limits. Raises UsageError: they do not fit the rule."""
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
    count = rule.parameters["count"]
    if limits != NewLimits(trials=limits.trials):
        raise UsageError(f"this experiment has a fixed number of trials ({count}); extend it with --trials N")
    if limits.trials is None or limits.trials < count:
        raise UsageError(f"--trials {limits.trials}: this experiment has {count}; give more")
    return RuleSpec(rule.kind, {**rule.parameters, "count": limits.trials})


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
    unless that is given, ends a test. Raises UsageError: invalid values.
    """
    mask = Mask(options.get("masks", ()))
    tests = tuple(
        c if isinstance(c, Test) else make_test(c, name=mask.text(c), shell=shell) for c in commands
    )
    schedule = schedule or BLOCKS
    if seed is not None and not -(2**63) <= seed < 2**63:
        raise UsageError(f"--seed {seed}: expected a whole number below 2^63")
    if schedule not in (IN_TURN, BLOCKS, DUET):
        raise UsageError(f"schedule {schedule!r}; expected {IN_TURN}, {BLOCKS} or {DUET}")
    ratio = len(tests) > 1 and schedule != IN_TURN
    return Plan(
        name=name or (os.path.basename(tests[0].command[0]) if tests else "") or "bench",
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
    if not 0 < budget_s < math.inf:
        raise UsageError(f"--time {budget_s:g}: expected seconds above 0")
    if least_s is not None and not 0.0 <= least_s <= budget_s:
        raise UsageError(f"--min-time {least_s:g}: expected seconds from 0 to those of --time, {budget_s:g}")
    parameters = {"precision": wanted, "minimum": minimum, "maximum": maximum, "budget_s": budget_s}
    if least := MIN_TIME_S if least_s is None else least_s:
        parameters |= {"least_s": least} | ({} if max_trials is None else {"exact": True})
    return RuleSpec("ratio-precision" if ratio else "mean-precision", parameters)
