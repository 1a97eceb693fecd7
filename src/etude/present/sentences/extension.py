"""The command that reaches a target of `etude bench`: it resumes a comparison, and measures a single test anew."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from etude.analysis.comparison import within_reach
from etude.present.sentences.comparison import GOES_ON, MEASURES_ANEW
from etude.units.formatting import percent

if TYPE_CHECKING:
    from etude.analysis.comparison import Comparison
    from etude.analysis.gate import Answer
    from etude.analysis.verdict import Verdict

ROOM = 1.2
"""Factor by which allowed trials and time exceed the expected ones; the rule stops at its target anyway."""
DECIDES = "To decide it, if ratio and spread do not change"
JUDGES = "To have enough trials to judge it (this may not decide it)"


@dataclass(frozen=True)
class Extension:
    """Changes of an experiment's limits; None: unchanged."""

    directory: str
    trials: int | None = None
    min_trials: int | None = None
    """Minimum of a new measurement only: an experiment that reached its target makes no more trials."""
    max_trials: int | None = None
    time_s: int | None = None
    precision: float | None = None
    anew: tuple[str, ...] | None = None
    """Arguments of a new measurement: further trials in another session do not narrow a single mean, whose interval is
    then over the sessions."""
    judged: tuple[tuple[str, str], ...] = ()
    """Options that judge the result, and their values; `anew` may have some of them already."""

    @property
    def label(self) -> str:
        """Label of the command: it resumes the experiment, or makes another."""
        return GOES_ON if self.anew is None else MEASURES_ANEW

    @property
    def command(self) -> str:
        """The command line."""
        words = ["etude", "bench", *(("--resume", self.directory) if self.anew is None else ())]
        for option, value in (
            ("--trials", self.trials),
            ("--min-trials", self.min_trials),
            ("--max-trials", self.max_trials),
            ("--time", self.time_s),
            ("--precision", None if self.precision is None else percent(self.precision).replace(" ", "")),
        ):
            words += [] if value is None else [option, str(value)]
        known = {word.partition("=")[0] for word in self.anew or ()}
        words += [word for pair in self.judged if pair[0] not in known for word in pair]
        return shlex.join([*words, *(self.anew or ())])


def reaching_command(verdict: Verdict) -> Extension | None:
    """The extension that reaches every target that was missed; None where none was, where that takes another program,
    and where more trials would take too long."""
    missed = [c for c in verdict.comparisons if c.missed] + [test for test in verdict.tests if test.more]
    if not all(each.within_reach for each in missed):
        return None
    return _extension(verdict, max((each.more_range[1] for each in missed if each.more), default=0))


def limit_line(verdict: Verdict) -> str | None:
    """Sentence on the limit of `etude bench` that ended an experiment before its target, by its option; None where none
    did."""
    experiment = verdict.subject.experiment or {}
    plan, sessions = experiment.get("plan") or {}, experiment.get("sittings") or [{}]
    missed = any(c.missed for c in verdict.comparisons) or any(test.more for test in verdict.tests)
    if not missed or plan.get("kind") is not None or sessions[-1].get("how_ended") != "complete":
        return None
    if plan["rule"]["kind"] not in ("mean-precision", "ratio-precision"):
        return None
    rule: Mapping[str, Any] = plan["rule"]["parameters"]
    kept, least_s = max(test.kept for test in verdict.tests), rule.get("least_s", 0.0)
    if kept < rule["maximum"]:
        return f"Ended by --time {rule['budget_s']:g}."
    sooner = f", and not before {least_s:g} s" if least_s and kept > rule["maximum"] else ""
    # Without a minimum time it is unknown whether the limit was given.
    default = " (the default)" if least_s and not rule.get("exact") else ""
    return f"Ended by --max-trials {rule['maximum']:g}{default}{sooner}."


def narrowing_command(verdict: Verdict, c: Comparison) -> Extension | None:
    """Command that narrows one ratio to `c.finer`."""
    return _extension(verdict, c.more_range[1] if c.more else 0, c.finer)


def deciding_command(
    verdict: Verdict, answers: Sequence[Answer], judged: Sequence[tuple[str, str]] = ()
) -> tuple[str, Extension] | None:
    """Purpose and extension that decide the undecided bounds, or make enough trials to judge them.

    None where that is not known, or would take too long.

    judged: the options that ask for them, without which nothing would be decided.
    """
    asked = [each for each in answers if each.fails is None and each.more]
    if not asked or not verdict.tests:
        return None
    more, kept = max(each.more for each in asked), max(test.kept for test in verdict.tests)
    if not within_reach(more, kept, more * _spent_s(verdict.subject.experiment or {}) / max(kept, 1)):
        return None
    precision = min((p for each in asked if (p := each.precision)), default=None)
    fewest = max((kept + each.more for each in asked if each.precision is None), default=0)
    extension = _extension(verdict, more, precision, fewest)
    purpose = DECIDES if all(each.decides for each in asked) else JUDGES
    return None if extension is None else (purpose, replace(extension, judged=tuple(judged)))


def _extension(
    verdict: Verdict, more: int, precision: float | None = None, fewest: int = 0
) -> Extension | None:
    """The extension by `more` trials of each, to `precision` (None: as it was), and for no fewer than `fewest`."""
    experiment = verdict.subject.experiment or {}
    plan = experiment.get("plan") or {}
    known = "rule" in plan and plan.get("kind") is None and not experiment.get("pool")
    if not more or not known or not verdict.tests:
        return None
    rule: Mapping[str, Any] = plan["rule"]["parameters"]
    kept = max(test.kept for test in verdict.tests)
    directory = str(verdict.directory)
    ends_early = plan["rule"]["kind"] != "fixed-count" and fewest > rule.get("minimum", 0)
    anew = None
    if ends_early or not verdict.asked.compares:
        from etude.present.sections.plan import without_rule

        anew = tuple(without_rule(experiment["command_line"][1:])) or None
    if plan["rule"]["kind"] == "fixed-count":
        return Extension(directory, trials=kept + more, anew=anew)
    if plan["rule"]["kind"] not in ("mean-precision", "ratio-precision"):
        return None
    trials = kept + math.ceil(ROOM * more)
    needed_s = math.ceil(ROOM * _spent_s(experiment) * (kept + more) / max(kept, 1))
    maximum, budget_s = rule["maximum"], rule["budget_s"]
    if anew is not None:  # without options its limits are the defaults
        from etude.stats.stopping import MeanPrecision

        precision = (verdict.asked.compares and precision) or rule["precision"]
        trials, maximum = max(trials, maximum), min(maximum, MeanPrecision.maximum)
        needed_s, budget_s = max(needed_s, math.ceil(budget_s)), min(budget_s, MeanPrecision.budget_s)
    elif not verdict.asked.compares:
        precision = None
    return Extension(
        directory,
        min_trials=fewest if ends_early and anew is not None else None,
        max_trials=trials if trials > maximum else None,
        time_s=needed_s if needed_s > budget_s else None,
        precision=precision,
        anew=anew,
    )


def _spent_s(experiment: Mapping[str, Any]) -> float:
    """Wall time of all sessions that ended."""
    return sum(map(lasted_s, experiment.get("sittings") or ()))


def lasted_s(sitting: Mapping[str, Any]) -> float:
    """Duration of a session, s; 0 where its start or end is not known."""
    try:
        start, end = (datetime.fromisoformat(str(sitting[name])) for name in ("start", "end"))
        return max(0.0, (end - start).total_seconds())
    except (KeyError, TypeError, ValueError):  # TypeError: one of them has no zone
        return 0.0
