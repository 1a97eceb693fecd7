"""Reasons to doubt a peak rate that lie in the load generator: load not offered, or not as requested."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from etude.peak.bottleneck import BUSY
from etude.peak.task import Finding, GeneratorPart, Task, Trial
from etude.peak.window import joined_windows

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
    """Generator parts of all hosts in these trials."""
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
