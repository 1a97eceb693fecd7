"""A plan as a section: what the pilot knows, how many trials are needed, and the command line that makes them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from etude.analysis.comparison import within_reach
from etude.analysis.planning import Row, TrialPlan
from etude.present.section import Block, Column, Command, Sentence, Table
from etude.present.sentences import comparison as text
from etude.present.sentences.phrases import INSTEAD
from etude.stats.planning import likely_factors
from etude.units.formatting import counted, duration, percent

_WITH_VALUE = frozenset(
    f"--{name}"
    for name in (
        *(
            "trials",
            "min-trials",
            "max-trials",
            "runs",
            "min-runs",
            "max-runs",
            "precision",
            "time",
            "min-time",
        ),
        *("output", "export", "export-json", "export-csv", "export-markdown", "baseline", "seed"),
        *("between-sessions", "fail-if", "undecided"),
    )
) | {"-r", "-m", "-M", "-o"}
_ALONE = frozenset(("--json",))
_HOOKS = (("--prepare", "-p"), ("--conclude", "-C"))
"""Options that each command may have its own value of."""
_NAMES = ("-n", "--name", "--command-name")
HEADINGS = ("trials of each", "likely (80 %)", "time")


def plan_blocks(plan: TrialPlan, document: Any) -> Iterator[Block]:
    """The pilot, the table of trials and what to do. `document`: the pilot's experiment.json, if it has one."""
    yield Sentence(pilot_line(plan))
    rows = zip(*(cells(plan, row) for row in plan.rows), strict=True)
    yield Table(tuple(map(Column, (heading(plan), *HEADINGS), rows)))
    for line in lines(plan, document):
        what, _, command = line.partition(": ")
        is_command = what.startswith("To do ") and command.startswith("etude bench ")
        yield Command(what, command) if is_command else Sentence(line)


def heading(plan: TrialPlan) -> str:
    """Heading of the table's first column."""
    return "difference" if plan.noise else "margin of error"


def cells(plan: TrialPlan, row: Row) -> tuple[str, ...]:
    """One row of the table: the share, trials, their likely range, time."""
    mark = " ←" if row.share == plan.asked else ""
    if row.trials is None:
        return f"{share_text(row.share)}{mark}", "above ten million", "–", "–"
    likely = f"{row.likely[0]:,} … {row.likely[1]:,}" if row.likely else "–"
    time = duration(row.seconds) if row.seconds is not None else "–"
    return f"{share_text(row.share)}{mark}", f"{row.trials:,}", likely, time


def share_text(share: float) -> str:
    """`0.5 %`: a share as it was requested."""
    return f"{100 * share:.4g} %"


def lines(plan: TrialPlan, document: Mapping[str, Any] | None) -> Iterator[str]:
    """All lines below the table."""
    yield from _asked(plan)
    yield from _quieter(plan)
    yield from _deadline(plan)
    yield _uncertain(plan)
    yield _between(plan)
    if plan.noise and plan.noise.design == "unpaired":
        yield (
            "These tests were not interleaved, so drift of the machine is in their difference. Interleaved in one run "
            "they usually need fewer trials: plan from a pilot of that kind."
        )
    trials, fit = plan.row.trials, plan.fit
    if fit is not None and (trials is None or fit.trials is None or fit.trials < trials):
        if fit.trials is not None:
            yield f"To do what fits: {_to_do(plan, fit.trials, document)}"
    elif trials is not None and within_reach(trials, plan.pilot, plan.row.seconds or 0.0):
        yield f"To do it: {_to_do(plan, trials, document)}"
    elif trials is not None:
        yield f"That would take too long: {INSTEAD}."


def pilot_line(plan: TrialPlan) -> str:
    """Sentence on the pilot that the plan is based on."""
    if plan.noise is None:
        spread = f"trials vary by {percent(plan.spread or 0.0)} (standard deviation)"
        pilot = f"Pilot: {counted(plan.pilot, 'trial')} of {plan.tests[0]}; {plan.metric}: {spread}."
        return f"{pilot} {_cost(plan)}{_worth(plan.worth)}"
    noise = plan.noise
    base, other = plan.tests
    low, high = (percent(part) for part in noise.likely)
    if noise.design == "paired":
        what = (
            f"{counted(plan.pilot, 'pair')} of {base} and {other}, in blocks; {plan.metric}: a pair's ratio"
        )
    else:
        what = f"{counted(plan.pilot, 'trial')} or more of {base} and {other}; {plan.metric}: a trial"
    fewer = "needs" if len(plan.others) == 1 else "need"
    more = f" ({counted(len(plan.others), 'more test')} {fewer} no more trials)" if plan.others else ""
    spread = f"{percent(noise.deviation)} (likely {low} to {high})"
    return f"Pilot: {what} varies by {spread}{more}. {_cost(plan)}{_worth(noise.worth)}"


def _worth(worth: float) -> str:
    if worth >= 1:
        return ""
    return f" Consecutive trials are autocorrelated: each is worth {worth:.2f} independent ones."


LACKING = {
    "starts": "start times of trials are not recorded: elapsed only, without the time between trials",
    "times": "neither when trials began nor how long they took is recorded",
}
"""Reasons why the time of a trial is unknown or incomplete."""


def _cost(plan: TrialPlan) -> str:
    if plan.cost.seconds is None:
        return f"How long it takes is not known: {LACKING[plan.cost.lacking]}."
    time = duration(plan.cost.seconds)
    if plan.cost.lacking:
        return f"A trial takes {time} ({LACKING[plan.cost.lacking]})."
    return f"A trial takes {time}, time between trials included."


def _asked(plan: TrialPlan) -> Iterator[str]:
    row = plan.row
    share = share_text(row.share)
    if row.trials is None:
        yield f"{share} is out of reach: it needs more than ten million trials. Instead of more trials: {INSTEAD}."
        return
    time = f", {duration(row.seconds)} in all" if row.seconds is not None else ""
    if plan.noise is None:
        yield (
            f"{counted(row.trials, 'trial')}{time}: the mean is then known to ± {share} at 95 %; "
            "half of all experiments need some more."
        )
        return
    tests = "either test" if plan.of == 2 else f"each of the {plan.of} tests"
    level = "at the 5 % level" + (f", counting all {plan.together} comparisons" if plan.together > 1 else "")
    yield (
        f"{counted(row.trials, 'trial')} of {tests}{time}: a true difference of {share} is then found ({level}) "
        f"with probability {share_text(plan.power)}{text.BEYOND_NOISE}."
    )


def _quieter(plan: TrialPlan) -> Iterator[str]:
    if plan.quieter is None or plan.noise is None:
        return
    q = plan.quieter
    yield (
        f"{q.metric} is less noisy here, and excludes waiting: it varies by {percent(q.deviation)}, "
        f"{plan.metric} by {percent(plan.noise.deviation)}. "
        f"A difference of {share_text(plan.asked)} in {q.metric} is found by "
        f"{counted(q.trials, 'trial')} of each with the same probability."
    )


def _deadline(plan: TrialPlan) -> Iterator[str]:
    fit = plan.fit
    if fit is None:
        return
    within = duration(fit.seconds)
    if fit.trials is None or fit.share is None:
        yield f"Within {within} not even two trials of each test fit."
    elif plan.noise is None:
        yield f"Within {within}: {counted(fit.trials, 'trial')}, the mean to ± {percent(fit.share)}."
    else:
        yield (
            f"Within {within}: {counted(fit.trials, 'trial')} of each; the smallest difference that they find "
            f"with probability {share_text(plan.power)} is {percent(fit.share)}{text.BEYOND_NOISE}."
        )


def _uncertain(plan: TrialPlan) -> str:
    low, high = plan.noise.likely if plan.noise else likely_factors(plan.pilot - 1)
    told = (
        f"Of a pilot of {plan.pilot} the ends of the spread's 80 % interval are a factor of {high / low:.1f} apart, so "
        f"that those of the number of trials are {(high / low) ** 2:.1f} apart: the column likely."
    )
    if (plan.noise.worth if plan.noise else plan.worth) < 1:
        told += " It assumes that the autocorrelation is known; a pilot estimates it poorly; the true range is wider."
    return told


def _between(plan: TrialPlan) -> str:
    if plan.sittings > 1:
        return f"The pilot has {plan.sittings} sessions; the plan excludes the variation between them."
    return (
        "A pilot of one session does not show the variation between sessions (boots, builds, days); more trials in one "
        "session do not reduce it."
    )


def _to_do(plan: TrialPlan, trials: int, document: Mapping[str, Any] | None) -> str:
    tests = (*plan.tests, *plan.others)
    by_hand = " ".join(
        ["etude bench --trials", str(trials), *(shlex.quote(f"COMMAND of {t}") for t in tests)]
    )
    if document is None or document.get("verb") not in ("bench", "run"):
        return by_hand
    left_out = [test for test in _tests_of(document) if test["name"] not in tests]
    if document["verb"] == "run":
        of = f" of {' and '.join(tests)}" if left_out else ""
        return f"etude run, with {trials} trials and no stop program in the TEST lines{of} of the script"
    words = without_tests(without_rule(document["command_line"][1:]), left_out)
    return by_hand if words is None else shlex.join(["etude", "bench", "--trials", str(trials), *words])


def _tests_of(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The tests of experiment.json's plan; not the empty shell, nor the first one against itself."""
    tests = (document.get("plan") or {}).get("tests") or ()
    return [test for test in tests if test.get("role", "test") == "test"]


def without_tests(words: Sequence[str], left_out: Sequence[Mapping[str, Any]]) -> list[str] | None:
    """Arguments of `etude bench` without the commands and the names of these tests.

    None if they cannot be distinguished: a test has no word of its own (`-P`), or several have hooks of their own.
    """
    kept = list(words)
    if left_out and any(sum(word.partition("=")[0] in hook for word in kept) > 1 for hook in _HOOKS):
        return None
    for test in left_out:
        places = [n for n, word in enumerate(kept) if _is_command(word, test["command"])]
        if len(places) != 1:
            return None
        command, name = kept.pop(places[0]), test["name"]
        named = next((n for n in range(len(kept) - 1) if kept[n] in _NAMES and kept[n + 1] == name), None)
        joined = next((n for n, word in enumerate(kept) if word in (f"-n{name}", f"--name={name}")), None)
        if named is not None:
            del kept[named : named + 2]
        elif joined is not None:
            del kept[joined]
        elif name != command:
            return None
    return kept


def _is_command(word: str, command: Sequence[str]) -> bool:
    """True if a word is this command: split into words, or handed to a shell whole."""
    try:
        return shlex.split(word) == list(command) or word == command[-1]
    except ValueError:
        return False


def without_rule(words: Sequence[str]) -> list[str]:
    """Arguments of `etude bench` without those on the number of trials and the use of the results."""
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            kept += [word, *rest]
        elif word in _WITH_VALUE:
            next(rest, None)
        elif word in _ALONE or word.partition("=")[0] in _WITH_VALUE:
            continue
        elif not word.startswith(("-o", "-r", "-m", "-M")):
            kept.append(word)
    return kept


def to_document(label: str, plans: Sequence[TrialPlan]) -> dict[str, Any]:
    """The plans as JSON-able data (docs/howto/planning.md)."""
    return {
        "format": "etude-plan",
        "version": 1,
        "pilot": label,
        "plans": [_document(plan) for plan in plans],
    }


def _document(plan: TrialPlan) -> dict[str, Any]:
    noise = plan.noise
    return {
        "tests": list(plan.tests),
        "tests_in_all": plan.of,
        "comparisons_in_all": plan.together,
        "metric": plan.metric,
        "trials": plan.pilot,
        "sittings": plan.sittings,
        "seconds_per_trial": plan.cost.seconds,
        "seconds_reason": LACKING.get(plan.cost.lacking),
        "design": noise.design if noise else "mean",
        "deviation": noise.deviation if noise else plan.spread,
        "deviation_likely": list(noise.likely) if noise else None,
        "worth": noise.worth if noise else plan.worth,
        "power": plan.power if noise else None,
        "asked": plan.asked,
        "needs": [
            {
                "share": row.share,
                "trials": row.trials,
                "likely": list(row.likely) if row.likely else None,
                "seconds": row.seconds,
            }
            for row in plan.rows
        ],
        "deadline": plan.fit
        and {"seconds": plan.fit.seconds, "trials": plan.fit.trials, "share": plan.fit.share},
    }
