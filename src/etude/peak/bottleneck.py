"""Bottleneck of a trial that sent less than requested: the server or the load generator.

A load generator that does not offer the requested load is the most common error of load tests. The server was the
bottleneck if all permitted requests were outstanding while the generator had CPU time to spare, or if more than 5 % of
the sent requests were not answered; in every other case the bottleneck is unknown and the trial says nothing about the
server. Load that was not offered, or not as requested, is also a reason to doubt a peak rate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from etude.peak.task import Finding, GeneratorPart, Limited, Task, Trial
from etude.peak.window import joined_windows
from etude.units.formatting import digits

SHORT = 0.95
"""Sent requests as a share of the requested ones: below this, server or generator is at its limit."""
BUSY = 0.80
"""CPU utilisation of its cores above which the generator counts as saturated."""
AT_LIMIT = 0.90
"""Share of the permitted outstanding requests that counts as all of them: the mean never quite reaches the maximum."""


@dataclass(frozen=True, slots=True)
class Generator:
    """Properties of a load generator that are known before a run."""

    cores: float = 1.0
    """Cores that it can keep busy: its number of threads."""
    outstanding: float | None = None
    """Maximum outstanding requests: its number of connections. None: unknown."""
    spins: bool = False
    """The generator polls the clock: CPU utilisation says nothing about its load."""
    serves: bool = False
    """The generator is itself the system under test (a CPU benchmark): its CPU time is the server's."""


@dataclass(frozen=True, slots=True)
class Effort:
    """Work of the load generator in one trial."""

    asked: float | None
    """Requested load, requests/s; None for closed systems, in which no request is due."""
    ran_s: float
    sent: int | None
    """Requests begun; None if not reported."""
    completed: int
    failed: int
    cores: float | None
    """Cores kept busy or waited for while other threads ran on them; None if unknown."""
    outstanding: float | None
    """Mean number of outstanding requests over the trial."""
    refused: int = 0
    """Requests that could not be begun because the generator ran out of descriptors, ports or similar."""
    clients: float | None = None
    """Closed systems: requested number of concurrent requests."""
    most_outstanding: float | None = None
    """Mean outstanding requests in the window with the most of them; None: same as `outstanding`."""


def find_bottleneck(generator: Generator, effort: Effort) -> Limited | None:
    """The component that limited the trial; None if the requested load was sent."""
    busy = (busy_share(generator, effort) or 0.0) >= BUSY
    if effort.refused:
        return "generator"
    if effort.asked is None:
        return "generator" if busy and not _held(effort) else None
    if _unanswered(effort):
        return "generator" if busy else "server"
    if effort.sent is None or not sent_too_little(effort.asked * effort.ran_s, effort.sent):
        return None
    if generator.serves:
        return "server"
    most = effort.outstanding if effort.most_outstanding is None else effort.most_outstanding
    if busy or generator.spins or generator.outstanding is None or most is None:
        return "generator"
    return "server" if most >= AT_LIMIT * generator.outstanding else "generator"


def _unanswered(effort: Effort) -> bool:
    """True if less than 95 % of the sent requests were answered and more are missing than can be outstanding at the
    end: twice the mean plus 3 sigma of it; without response times, 3 sigma of all."""
    if effort.sent is None:
        return False
    mean = effort.outstanding or 0.0
    under_way = 2 * mean + 3 * math.sqrt(mean) + 3 if mean else 3 * math.sqrt(effort.sent)
    return effort.sent - effort.completed - effort.failed > max((1 - SHORT) * effort.sent, under_way)


def _held(effort: Effort) -> bool:
    """True if as many requests were outstanding as there are clients: the generator kept up, however busy it was."""
    known = effort.clients is not None and effort.outstanding is not None
    return known and (effort.outstanding or 0.0) >= AT_LIMIT * (effort.clients or 0.0)


def busy_share(generator: Generator, effort: Effort) -> float | None:
    """CPU utilisation of the generator's cores, a share; None if unknown or meaningless as its limit."""
    if effort.cores is None or generator.spins or generator.serves:
        return None
    return effort.cores / generator.cores


def headroom(busy: float) -> float:
    """Remaining share of the generator's capacity: 0 if it counts as saturated."""
    return max(0.0, 1 - busy / BUSY)


def sent_too_little(due: float, sent: float) -> bool:
    """True if less than 95 % of the due requests were sent, by more than Poisson noise (3 sigma)."""
    return sent < min(SHORT * due, due - 3 * math.sqrt(due))


def effort_line(generator: Generator, effort: Effort) -> str:
    """The trial in one line: requests requested, sent, completed and failed, and the resources used."""
    ran = max(effort.ran_s, 1e-9)
    parts = [] if effort.asked is None else [f"asked {_rate(effort.asked)}/s"]
    if effort.sent is not None:
        parts.append(f"sent {_rate(effort.sent / ran)}/s")
    parts += [f"completed {_rate(effort.completed / ran)}/s", f"failed {effort.failed}"]
    if effort.refused:
        parts.append(f"refused by the generator {effort.refused}")
    if effort.cores is not None:
        parts.append(f"generator {effort.cores:.2f} of {generator.cores:g} cores")
    if effort.outstanding is not None:
        most = "" if generator.outstanding is None else f" of {generator.outstanding:g}"
        parts.append(f"outstanding {digits(effort.outstanding, 2)}{most}")
    return ", ".join(parts)


def _rate(per_s: float) -> str:
    """`18.6`, `13,750`: four digits, and all of the whole part."""
    return f"{per_s:,.0f}" if per_s >= 1000 else f"{per_s:.4g}"


ENDED = 1.1
"""Run length over the trial's whole cost above which the load cannot have been offered."""
PARTLY = "response times are partly the generator's: leave it more CPU, or give it a machine of its own"
LATE_S = 0.01
"""Lateness too small to matter for any limit, s."""


def generator_limited(task: Task, trials: Sequence[Trial]) -> Finding | None:
    """The load generator did not offer the requested load."""
    short = [trial for trial in trials if trial.limited == "generator"]
    if not short:
        return None
    lowest = min(trial.load for trial in short)
    where = _on({part.host for part in _parts(short) if part.limited == "generator"})
    return Finding(
        "generator-limited",
        f"{len(short)} of {len(trials)} trials, from {task.load_text(lowest)} on, show nothing about the server: "
        f"use a stronger load generator{where}",
    )


def find_cut_short(trials: Sequence[Trial]) -> Finding | None:
    """Trials that took less time than the load should have lasted: the load command ended early."""
    short = [trial for trial in trials if trial.ran_s > ENDED * trial.cost_s]
    if not short:
        return None
    least = min(short, key=lambda trial: trial.cost_s / trial.ran_s)
    text = f"in {len(short)} of {len(trials)} trials the load command ended before its time was over"
    what = f"{text} ({least.cost_s:.2g} s of {least.ran_s:.3g} s): counts are read as those of the whole time"
    return Finding("cut-short", what)


def _parts(trials: Sequence[Trial]) -> Iterator[GeneratorPart]:
    return (part for trial in trials for part in trial.generators)


def _on(hosts: Collection[str]) -> str:
    """Host names as the end of a clause; empty if one machine offered the load."""
    return f" on {', '.join(sorted(hosts))}" if hosts else ""


def find_generator_late(task: Task, trials: Sequence[Trial]) -> Finding | None:
    """Late requests in at least half of the failing trials at a load."""
    for load, late, over in _too_much(task, trials, lambda trial: sent_late(task, trial)):
        late_s = min(trial.lateness_p99_s or 0.0 for trial in late)
        text = f"{len(late)} of {over} trials at {task.load_text(load)} that were too much"
        where = _on({part.host for part in _parts(late) if (part.lateness_p99_s or 0.0) >= late_s})
        what = f"in {text}, 1 % of the requests{where} were sent {1e3 * late_s:.3g} ms late or later"
        return Finding("generator-late", f"{what}: {PARTLY}")
    return None


def find_generator_saturated(task: Task, trials: Sequence[Trial]) -> Finding | None:
    """Saturated generator in at least half of the failing trials at a load."""
    for load, full, over in _too_much(task, trials, _saturated):
        text = f"{len(full)} of {over} trials at {task.load_text(load)} that were too much"
        where = _on({part.host for part in _parts(full) if (part.busy or 0.0) >= BUSY})
        return Finding(
            "generator-saturated",
            f"in {text}, the generator{where} had no CPU time to spare: the limit may be its own, not the server's",
        )
    return None


def _saturated(trial: Trial) -> bool:
    """True if a generator that reports lateness, as ours does, was saturated: other tools poll."""
    return trial.lateness_p99_s is not None and (trial.generator_busy or 0.0) >= BUSY


def _too_much(
    task: Task, trials: Sequence[Trial], holds: Callable[[Trial], bool]
) -> Iterator[tuple[float, list[Trial], int]]:
    """Failing loads at which `holds` is true of at least half of the failing trials, as (load, these trials, failing
    trials)."""
    for load in sorted({trial.load for trial in trials if holds(trial)}):
        over = [t for t in trials if t.load == load and t.of_server and task.goal.reading(t.windows) > 1]
        found = [trial for trial in over if holds(trial)]
        if found and 2 * len(found) >= len(over):
            yield load, found, len(over)


def sent_late(task: Task, trial: Trial) -> bool:
    """True if the trial failed and lateness was a notable part of the response time: half of the limit and of the
    median response (etude load uses the same share)."""
    late_s = trial.lateness_p99_s
    if late_s is None or late_s <= LATE_S or not trial.of_server:
        return False
    whole = joined_windows(trial.windows)
    if not whole.completed:
        return False
    over = [c for c in task.goal.criteria if c.of != "errors" and (c.reading(trial.windows) or 0) > 1]
    middle_s = whole.percentile_s(50) or whole.mean_s
    return bool(over) and late_s > 0.5 * max([middle_s or 0.0, *[c.limit for c in over]])


def find_not_made(task: Task, trials: Sequence[Trial]) -> Finding | None:
    """Trials not made because the load command failed while the system did not."""
    failed = [trial for trial in trials if trial.ended == "not-made"]
    if not failed:
        return None
    first = min(trial.load for trial in failed)
    text = f"{len(failed)} of {len(trials)} trials, from {task.load_text(first)} on, were not made"
    return Finding("load-not-made", f"{text}: {failed[-1].note}")
