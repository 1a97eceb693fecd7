"""Loads, readings and answers of a search in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from etude.analysis.subject import was_resumed, was_simulated
from etude.cluster.pool.journal import FILE
from etude.peak.bottleneck import headroom
from etude.peak.search import BUDGET_SPENT, benchmarking_time_s
from etude.peak.slo_ratio import Reading, contradicting, slo_ratios
from etude.peak.task import CALIBRATION, WORST, Answer, Criterion, Task, Trial, slo_ratio_of
from etude.peak.window import joined_windows
from etude.present.sentences.notes import listed_names
from etude.present.sentences.status import FAILED_CELLS, NOT_CONVERGED, RESUMED, SIMULATED, UNFINISHED
from etude.units.formatting import counted, duration, percent, quantity

if TYPE_CHECKING:
    from etude.peak.search_store import SearchSpec, SearchStore
    from etude.surface.map_store import MapStore
    from etude.surface.surface_result import SurfaceResult

MOST_HOSTS = 8
"""Load hosts that are named."""
NO_ANSWER = "no answer"
"""Text in place of a response time."""
_ADVICE = {
    frozenset({"below-lowest", "failing"}): "check its answers (`etude load` names failures)",
    frozenset({"above-highest", "load-not-made"}): "higher loads could not be offered",
    frozenset({"above-highest", "generator-limited"}): "use a stronger load generator",
    frozenset({"below-lowest"}): "allow lower loads",
    frozenset({"above-highest"}): "allow higher loads",
}
"""Advice on a peak outside the offered loads, by the findings of an answer; the first that holds."""


def span_text(task: Task, low: float, high: float) -> str:
    """`493.0 … 537.0/s`; a question mark where there is no bound."""
    if low <= 0 and math.isinf(high):
        return "?"
    ends = ["?" if not 0 < end < math.inf else task.load_digits(end) for end in (low, high)]
    return f"{ends[0]} … {ends[1]}{' clients' if task.closed else '/s'}"


def value_text(criterion: Criterion, share: float) -> str:
    """A reading in the criterion's own unit: `38.12 ms`, `0.5 % errors`."""
    beyond = "> " if share >= WORST else ""
    if criterion.of == "errors":
        return f"{beyond}{percent(share * criterion.limit)} errors"
    return beyond + quantity(share * criterion.limit, "s")


def worst(task: Task, trial: Trial) -> tuple[Criterion, float] | None:
    """The criterion with the highest ratio to its limit, and that ratio; None if nothing is known. Errors win a tie,
    since response times are unknown if no request was answered."""
    found = [(c, r) for c in task.goal.criteria if (r := c.reading(trial.windows)) is not None]
    return max(found, key=lambda each: (each[1], each[0].of == "errors"), default=None)


def _measured_text(task: Task, trial: Trial) -> str | None:
    """Reading of the criterion with the highest ratio to its limit, in its own unit; None if nothing is known."""
    measured = worst(task, trial)
    if measured is None:
        return None
    criterion, share = measured
    if criterion.of == "errors":
        return f"{percent(joined_windows(trial.windows).failed_share)} errors"
    return NO_ANSWER if _unanswered([trial]) else value_text(criterion, share)


def _unanswered(trials: Sequence[Trial]) -> bool:
    """True if no request was answered."""
    return not any(window.completed for trial in trials for window in trial.windows)


def reading_texts(task: Task, trial: Trial) -> tuple[str, str]:
    """The measured value, and its share of the limit."""
    if trial.limited == "generator":
        return "–", "generator"
    measured = _measured_text(task, trial)
    share = slo_ratio_of(task.goal, trial)
    if trial.ended == "not-made":
        return "–", "not made"
    if trial.ended == "died":
        return measured or "–", "died"
    if trial.limited == "server":
        return measured or "–", "behind"
    if measured is None or math.isnan(share):
        return "–", "–"
    return measured, share_text(share)


def share_text(share: float) -> str:
    """`95 %` of the limit."""
    return f"> {100 * WORST:.0f} %" if share >= WORST else f"{100 * share:.0f} %"


def ran_text(trial: Trial) -> str:
    """Duration of the load, and whether the policy ended it."""
    return _ran(trial) + (" early" if trial.cut_short else "")


def _ran(trial: Trial) -> str:
    """Duration of the load; of a trial that ended early in seconds where it would read like the planned one."""
    alike = trial.cut_short and duration(trial.ran_s) == duration(trial.runlength_s)
    return f"{trial.ran_s:.0f} s" if alike else duration(trial.ran_s)


def ran_of_text(trial: Trial) -> str:
    """Duration of the load, of its run length where the policy ended it: `8.0 s of 30 s`."""
    ran = _ran(trial)
    return f"{ran} of {duration(trial.runlength_s)}" if trial.cut_short else ran


def goal_text(task: Task) -> str:
    """All criteria: `mean response ≤ 40 ms and errors ≤ 1 %`."""
    return " and ".join(map(str, task.goal.criteria))


def missed_line(task: Task, answer: Answer) -> str:
    """Sentence on a target that was not met, and the reason."""
    return f"The target ({target_text(task)}) is not met: {why_missed(answer)}."


def met_line(task: Task) -> str:
    """Clause on the end of a search that met its target."""
    return f"the target is met ({target_text(task)})."


def why_missed(answer: Answer) -> str:
    """Reason why the target is missed, with advice if the peak is outside the allowed loads. Requests that fail at the
    lowest load are not caused by the load."""
    found = {each.kind: each.what for each in answer.findings}
    why = found["failing"] if found.keys() >= {"failing", "below-lowest"} else answer.why
    if why == BUDGET_SPENT:
        why = f"{why}; the same command with a larger --budget resumes the search"
    return ": ".join((why, *[text for kinds, text in _ADVICE.items() if found.keys() >= kinds][:1]))


def target_text(task: Task) -> str:
    """The target of a search, as a clause."""
    level = confidence_text(task.confidence)
    if task.promise == "rate":
        return f"within {percent(task.within)} of the true peak at {level} confidence"
    return f"at a load whose response is within {percent(task.width)} of the limit, at {level} confidence"


def answer_lines(task: Task, answer: Answer, trials: Sequence[Trial]) -> list[str]:
    """Sentences on the end of a search: the rate, the response time there, the interval, obstacles and cost."""
    lines = [_first(task, answer), *_around(task, answer, trials)]
    if not answer.kept:
        lines.append(missed_line(task, answer))
    lines += finding_lines(answer)
    early = sum(trial.cut_short for trial in trials)
    offered = sum(min(trial.ran_s, trial.cost_s) for trial in trials)
    spent_s = benchmarking_time_s(trials)
    share = f", load was offered in {percent(offered / spent_s)} of it" if spent_s > 0 else ""
    lines.append(
        f"{counted(len(trials), 'trial')}, {early or 'none'} of them ended early: "
        f"{duration(spent_s)} of benchmarking time{share}."
    )
    return lines


def question_lines(task: Task, answer: Answer, trials: Sequence[Trial]) -> dict[str, tuple[str, ...]]:
    """Sentences on the questions of a page, by their keys."""
    first, *_ = lines = answer_lines(task, answer, trials)
    bounds, reached = _where(task, answer), answer.kept and answer.rate is not None
    certain = [f"The peak rate lies {bounds}." if bounds else "No trial bounds the peak rate."]
    told = f"The target ({target_text(task)}) is met: {_kept(task, answer)}."
    certain.append(told if reached else missed_line(task, answer))
    certain += [narrower_line(task, answer.rate)] if reached and answer.rate is not None else []
    return {
        "what": (f"The highest load with {goal_text(task)} was searched for.",),
        "often": (f"{counted(len({trial.load for trial in trials}), 'load')}: {lines[-1]}",),
        "real": tuple(certain),
        "large": (
            first if answer.rate is None else f"{task.load_text(answer.rate)}, with {goal_text(task)}.",
            *_around(task, answer, trials),
            *limit_lines(task, answer, trials),
        ),
        "against": tuple(f"{line}." for line in finding_lines(answer)),
    }


def calibration_questions(
    task: Task, trials: Sequence[Trial], texts: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """Sentences of a calibration on the questions of a page, by their keys. texts: those on its variation, and on the
    run length and number of trials that are suggested."""
    loads = counted(len({trial.load for trial in trials}), "load")
    first, *others = texts
    return {
        "what": (f"How much trials of one load vary, over their run length ({goal_text(task)}).",),
        "often": (f"{loads}: {counted(len(trials), 'trial')}, {duration(benchmarking_time_s(trials))}.",),
        "real": tuple(others[-1:]) or (first,),
        "large": tuple(others[:-1]) or (first,),
    }


def narrower_line(task: Task, rate: float) -> str:
    """Sentence on what gives a narrower interval: the options of a further search, which begins at the answer."""
    within = task.within if task.promise == "rate" else task.width
    target = f"--{'within' if task.promise == 'rate' else 'width'} {100 * within / 2:g}%"
    return (
        f"A narrower interval takes a further search, in another directory: {target} "
        f"--seed-load {task.load_digits(rate)}, with the other options as here."
    )


def limit_lines(task: Task, answer: Answer, trials: Sequence[Trial]) -> list[str]:
    """Line on what limits the rate: the criterion that the next load above misses by most, the load generator, and what
    tasks of its machine waited for; none without a load above."""
    above = [each for each in neighbours(task, answer, trials) if each.mean > 1.0]
    made = [trial for trial in trials if above and trial.of_server and trial.load == above[-1].load]
    if not made:
        return []
    found = [each for trial in made if (each := worst(task, trial)) is not None]
    by = max(found, key=lambda each: each[1])[0] if found else None
    told = [] if by is None or len(task.goal.criteria) == 1 else [f"{by} is missed by most"]
    busy = [trial.generator_busy for trial in made if trial.generator_busy is not None]
    if busy:
        told.append(f"the load generator had {percent(headroom(max(busy)))} of its capacity left")
    waits = [f"for {name} {percent(share)}" for name, share in _pressures(made)]
    if waits:
        told.append(
            f"some task of the machine that offered the load waited {listed_names(waits, len(waits))} of the time"
        )
    return [f"What limits: at {task.load_text(made[0].load)} {'; '.join(told)}."] if told else []


def _pressures(trials: Sequence[Trial]) -> list[tuple[str, float]]:
    """Mean pressure over the trials by resource, where it is known."""
    names = {"a CPU": "cpu_pressure", "I/O": "io_pressure", "memory": "memory_pressure"}
    states = [trial.machine for trial in trials if trial.machine is not None]
    values = {
        name: [value for state in states if (value := getattr(state, member)) is not None]
        for name, member in names.items()
    }
    return [(name, sum(each) / len(each)) for name, each in values.items() if each]


def served_text(sought: SearchSpec, trials: Sequence[Trial]) -> str:
    """The server and the load generator of a search that was no simulation, and on which machines they ran."""
    commands, factors = sought.commands, ", ".join(f"{name}={text}" for name, text in sought.factors.items())
    name = f"Harness {sought.name}{f' ({factors})' if factors else ''}"
    if not commands:
        return f"{name}, in Python: its text is under How each number was made."
    hosts = list(dict.fromkeys(part.host for trial in trials for part in trial.generators))
    server = f"the server was started by “{commands['start']}”" if commands.get("start") else ""
    server = server or "the search started no server: one was running, at the address in the load command"
    load = f"the load was offered by “{commands.get('load', '')}”"
    if hosts:
        where = f"on {'host' if len(hosts) == 1 else 'hosts'} {listed_names(hosts, MOST_HOSTS)}"
    elif commands.get("start") and not sought.apart:
        where = "on the same machine, so that server and load generator share its CPUs"
    else:
        where = "on this machine" + (", the server on another node" if sought.apart else "")
    return f"{name}: {server}; {load} {where}."


def finding_lines(answer: Answer) -> list[str]:
    """Findings that make the answer doubtful, except the one that is the reason why it misses its target."""
    lines = (f"{finding.kind}: {finding.what}" for finding in answer.findings)
    return [line for line in lines if answer.kept or line != answer.why]


def _first(task: Task, answer: Answer) -> str:
    goal, where = goal_text(task), _where(task, answer)
    if answer.rate is None:
        if where is None:
            return f"The peak rate is unknown ({goal}): no trial bounds it."
        sure = confidence_text(min(answer.confidence, task.confidence))
        return f"{_bound(task, answer)} ({goal}), with {sure} confidence; the peak rate is not bracketed."
    kept = f"; {_kept(task, answer)}" if answer.kept else ""
    return f"Peak rate: {task.load_text(answer.rate)} ({goal}), {where or 'without bounds'}{kept}."


def _bound(task: Task, answer: Answer) -> str:
    """The measured bound of an answer without a rate."""
    if answer.low > 0 and math.isfinite(answer.high):
        return f"Sustains at least {task.load_text(answer.low)} and less than {task.load_text(answer.high)}"
    if answer.low > 0:
        return f"Sustains at least {task.load_text(answer.low)}"
    return f"Sustains less than {task.load_text(answer.high)}"


def _where(task: Task, answer: Answer) -> str | None:
    """`between 490.0 and 512.0/s with 95 % confidence`; None where there is no bound."""
    level = f"with {confidence_text(task.confidence)} confidence"
    low = task.load_text(answer.low) if answer.low > 0 else None
    high = task.load_text(answer.high) if math.isfinite(answer.high) else None
    if low is not None and high is not None:
        first = low.removesuffix("/s").removesuffix(" clients").removesuffix(" client")
        return f"between {first} and {high} {level}"
    if low is None and high is None:
        return None
    return f"above {low} {level}" if low is not None else f"below {high} {level}"


def confidence_text(confidence: float) -> str:
    """`95 %`, and never more than is known: 99.96 % is `99.9 %`."""
    return f"{math.floor(1000 * confidence + 1e-9) / 10:g} %"


def _kept(task: Task, answer: Answer) -> str:
    """Text on how the target was met."""
    more = answer.confidence > task.confidence
    sure = f" with {confidence_text(answer.confidence)} confidence" if more else ""
    if task.promise == "region":
        return f"there the response is within {percent(task.width)} of the limit{sure}"
    rate = answer.rate or 0.0
    wide = max(rate - answer.low, answer.high - rate) > task.within * rate * (1 + 1e-9)
    if wide and not more:
        return f"within {percent(task.within)} by the rule of the policy; this interval does not show it"
    return f"within {percent(task.within)}{sure}"


def neighbours(task: Task, answer: Answer, trials: Sequence[Trial]) -> list[Reading]:
    """Readings at the loads next to the answer, ascending; one if a load is the answer, or at the end of the loads."""
    known = slo_ratios(task, trials)
    middle = answer.rate or (answer.low if answer.low > 0 else answer.high)
    below = max((each for each in known if each.load <= middle), key=lambda each: each.load, default=None)
    above = min((each for each in known if each.load >= middle), key=lambda each: each.load, default=None)
    return [each for each in dict.fromkeys((below, above)) if each is not None]


def contradiction_line(task: Task, answer: Answer, trials: Sequence[Trial]) -> str | None:
    """Line on a load below the answer that failed in all its trials; None if there is none."""
    found = contradicting(answer.rate or answer.low, slo_ratios(task, trials))
    if found is None:
        return None
    made = counted(len(found.values), "trial")
    return (
        f"the stored answer contradicts its trials: {task.load_text(found.load)}, below it, was too much in all "
        f"{made}; was it edited?"
    )


def _around(task: Task, answer: Answer, trials: Sequence[Trial]) -> list[str]:
    """Line on the readings at the loads next to the answer, in their own unit; none without readings."""
    found = neighbours(task, answer, trials)
    if not found:
        return []
    told = [
        f"{_in_unit(task, each, trials)} at {task.load_text(each.load)} ({counted(len(each.values), 'trial')})"
        for each in found
    ]
    what = (
        str(task.goal.criteria[0]).partition(" ≤")[0] if len(task.goal.criteria) == 1 else "response / limit"
    )
    return [f"Next to it {what} was {' and '.join(told)}."]


def _in_unit(task: Task, at: Reading, trials: Sequence[Trial]) -> str:
    if len(task.goal.criteria) > 1:
        return share_text(at.mean)
    (criterion,) = task.goal.criteria
    if criterion.of != "errors" and _unanswered([t for t in trials if t.of_server and t.load == at.load]):
        return f"unknown ({NO_ANSWER})"
    return value_text(criterion, at.mean)


def of_search(kept: SearchStore, answer: Answer) -> tuple[str, ...]:
    """The words for a search, the most important first; none where all is as it should be."""
    words = {
        SIMULATED: was_simulated(kept.document),
        NOT_CONVERGED: not answer.kept and kept.sought.policy != CALIBRATION,
        UNFINISHED: kept.answer is None,
        RESUMED: was_resumed(kept.document),
    }
    return tuple(word for word, holds in words.items() if holds)


def of_map(kept: MapStore, mapped: SurfaceResult) -> tuple[str, ...]:
    """The words for a map, the most important first; none where all is as it should be."""
    samples = mapped.last.values()
    over_a_pool = (kept.directory / FILE).exists()
    words = {
        SIMULATED: was_simulated(kept.document),
        FAILED_CELLS: any(sample.state == "failed" for sample in samples),
        NOT_CONVERGED: any(sample.state != "failed" and not sample.kept for sample in samples),
        UNFINISHED: kept.document.get("surface") is None,
        RESUMED: not over_a_pool and was_resumed(kept.document),
    }
    return tuple(word for word, holds in words.items() if holds)
