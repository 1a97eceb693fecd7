"""Simulated histories, and the bisections that the posterior's is compared with.

The noise of trials has the parts that real machines show: dependent neighbours, drift, days, outliers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from etude.bisect.bisection import Bisection, Build, Setting
from etude.bisect.verdict import Answer

KINDS = ("independent", "dependent", "drift", "days", "outliers", "all")
DAY = 60
"""Trials of a day."""


@dataclass(frozen=True)
class History:
    """A history of commits with at most one step, and the noise of its machine."""

    count: int
    step: float
    """Relative size; 0: no step."""
    place: int
    """Index of the first commit of the new level; `count` without a step."""
    cv: float
    """Coefficient of variation of a trial."""
    kind: str
    """One of `KINDS`."""
    broken: frozenset[int]
    trial_s: float = 1.0
    build_s: float = 20.0

    def level(self, commit: int) -> float:
        """Logarithm of the commit's level."""
        return math.log1p(self.step) if commit >= self.place else 0.0


def drawn_history(random: np.random.Generator, *, step: bool = True) -> History:
    """History of 16 to 1,024 commits, a step of 1 to 10 %, a CV of 0.5 to 5 %, 10 % of the builds broken."""
    count = int(2 ** random.integers(4, 11))
    size = math.exp(random.uniform(math.log(0.01), math.log(0.1)))
    cv = math.exp(random.uniform(math.log(0.005), math.log(0.05)))
    kind = str(random.choice(KINDS))
    place = int(random.integers(1, count))
    broken = frozenset(int(c) for c in np.flatnonzero(random.random(count) < 0.1) if 0 < c < count - 1)
    return History(count, size if step else 0.0, place if step else count, cv, kind, broken)


def machine(history: History, random: np.random.Generator) -> Callable[[int], float]:
    """A machine that runs a trial of a commit and returns the logarithm of its time."""
    state = {"trials": 0, "neighbour": 0.0, "day": 0.0}
    every = history.kind == "all"
    memory = 0.5 if every or history.kind == "dependent" else 0.0

    def run(commit: int) -> float:
        number = state["trials"]
        state["trials"] += 1
        fresh = random.normal(0.0, history.cv * math.sqrt(1.0 - memory**2))
        state["neighbour"] = memory * state["neighbour"] + fresh
        found = history.level(commit) + state["neighbour"]
        if every or history.kind == "drift":
            found += history.cv * number / 100.0
        if every or history.kind == "days":
            if number % DAY == 0:
                state["day"] = random.normal(0.0, history.cv)
            found += state["day"]
        if (every or history.kind == "outliers") and random.random() < 0.03:
            found += abs(random.normal(0.0, 10.0 * history.cv))
        return float(found)

    return run


@dataclass(frozen=True)
class Outcome:
    """A simulated bisection at its end."""

    answer: Answer
    trials: int
    builds: int
    seconds: float


def bisect(
    history: History, random: np.random.Generator, *, smallest: float, confidence: float = 0.95, most: int = 5000
) -> Outcome:
    """Bisection by the posterior. most: trials after which it ends undecided."""
    setting = Setting(
        history.count, smallest, confidence, int(random.integers(2**31)), True, history.trial_s, history.build_s
    )
    state, run = Bisection(setting), machine(history, random)
    trials = builds = 0
    while True:
        action = state.action()
        if isinstance(action, Answer):
            break
        if isinstance(action, Build):
            builds += 1
            if action.commit in history.broken:
                state.add_failure(action.commit)
            else:
                state.add_build(action.commit, history.build_s)
        elif trials >= most:
            break
        else:
            trials += 1
            state.add_trial(run(action.commit), history.trial_s)
    answer = state.answer or Answer("undecided", 1, history.count - 1, 1.0)
    return Outcome(answer, trials, builds, trials * history.trial_s + builds * history.build_s)


def binary_search(history: History, random: np.random.Generator, trials: int, *, interleaved: bool) -> Outcome:
    """Binary search with a fixed number of trials of each commit, as `git bisect run` does it.

    The medians of GOOD and BAD, measured first, give the level between them at which a commit counts as bad.
    interleaved: trials of GOOD run between those of each commit, and the difference is compared with half the step.
    A commit that does not build is replaced by its neighbour.
    """
    run, used, builds = machine(history, random), 0, 2

    def measured(commit: int) -> tuple[float, float]:
        nonlocal used
        pairs = []
        for _ in range(trials):
            reference = run(0) if interleaved else 0.0
            pairs.append((run(commit), reference))
            used += 2 if interleaved else 1
        values, references = zip(*pairs, strict=True)
        return float(np.median(values)), float(np.median(references))

    bad, first = measured(history.count - 1)
    if interleaved:
        limit = (bad - first) / 2.0
    else:
        limit = (bad + measured(0)[0]) / 2.0
    upward = bad - first > 0.0 if interleaved else bad > limit
    low, high = 0, history.count - 1
    skipped: set[int] = set()
    while True:
        left = [c for c in range(low + 1, high) if c not in skipped]
        if not left:
            break
        middle = min(left, key=lambda c: abs(c - (low + high) / 2.0))
        builds += 1
        if middle in history.broken:
            skipped.add(middle)
            continue
        value, reference = measured(middle)
        if ((value - reference if interleaved else value) > limit) == upward:
            high = middle
        else:
            low = middle
    found = Answer("commit" if low + 1 == high else "range", low + 1, high, math.nan)
    return Outcome(found, used, builds, used * history.trial_s + builds * history.build_s)


def is_wrong(history: History, answer: Answer) -> bool:
    """True if an answer blames a commit, or a range, in which the step is not, or sees no step where there is one of
    at least the size of interest."""
    if answer.kind in ("commit", "range"):
        return not answer.first <= history.place <= answer.last
    return answer.kind in ("none", "drift") and history.step > 0.0
