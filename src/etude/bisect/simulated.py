"""Simulated histories, and the expected cost of a bisection from them.

The noise of trials has the parts that real machines show: dependent neighbours, drift, days, outliers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from etude.bisect.bisection import Bisection, Build, Setting
from etude.bisect.verdict import Answer

Floats = NDArray[np.float64]

KINDS = ("independent", "dependent", "drift", "days", "outliers", "all")
DAY = 60
"""Trials of a day, which all have an offset of one CV in common."""
DRIFT = 0.01
"""Drift from one trial to the next, in CVs."""
OUTLIERS = 0.03
"""Share of trials that take longer, by up to some 20 CVs."""


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


def noise(history: History, random: np.random.Generator, trials: int) -> Floats:
    """Noise of successive trials on the history's machine, in logarithms, shape (trials,)."""
    every = history.kind == "all"
    memory = 0.5 if every or history.kind == "dependent" else 0.0
    found: Floats = random.normal(0.0, history.cv, trials)
    if memory:
        found[1:] *= math.sqrt(1.0 - memory**2)
        found = lfilter([1.0], [1.0, -memory], found)
    if every or history.kind == "drift":
        found = found + history.cv * DRIFT * np.arange(trials)
    if every or history.kind == "days":
        found = found + np.repeat(random.normal(0.0, history.cv, trials // DAY + 1), DAY)[:trials]
    if every or history.kind == "outliers":
        late = random.random(trials) < OUTLIERS
        found = found + late * np.abs(random.normal(0.0, 10.0 * history.cv, trials))
    return found


@dataclass(frozen=True)
class Outcome:
    """A simulated bisection at its end."""

    answer: Answer
    trials: int
    builds: int
    seconds: float


def bisect(
    history: History,
    random: np.random.Generator,
    *,
    smallest: float,
    confidence: float = 0.95,
    most: int = 5000,
) -> Outcome:
    """Bisection by the posterior. most: trials after which it ends undecided."""
    setting = Setting(
        history.count,
        smallest,
        confidence,
        int(random.integers(2**31)),
        history.trial_s,
        history.build_s,
    )
    state, offsets = Bisection(setting), noise(history, random, most)
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
            state.add_trial(action, history.level(action.commit) + float(offsets[trials]), history.trial_s)
            trials += 1
    answer = state.answer or Answer("undecided", 1, history.count - 1, 1.0)
    return Outcome(answer, trials, builds, trials * history.trial_s + builds * history.build_s)


OUTLOOKS = 5
"""Simulated bisections of an outlook."""


@dataclass(frozen=True)
class Outlook:
    """Expected cost of a whole bisection: medians, and the longest, of simulated ones."""

    trials: int
    builds: int
    seconds: float
    longest_s: float


def outlook_of(state: Bisection) -> Outlook:
    """Cost if the step is as large, and the noise as now seen; raises ValueError before the first posterior."""
    if state.posterior is None:
        raise ValueError("there is no posterior yet")
    setting, random = state.setting, np.random.default_rng([state.setting.seed, 1])
    step = math.expm1(max(abs(state.posterior.step), setting.smallest))
    outcomes = []
    for _ in range(OUTLOOKS):
        place = int(random.integers(1, setting.count))
        history = History(
            setting.count, step, place, state.posterior.noise, KINDS[0], frozenset(), *_seconds(state)
        )
        outcomes.append(
            bisect(history, random, smallest=setting.smallest, confidence=setting.confidence, most=1000)
        )
    middle = sorted(outcomes, key=lambda each: each.seconds)
    median = middle[OUTLOOKS // 2]
    return Outlook(median.trials, median.builds, median.seconds, middle[-1].seconds)


def _seconds(state: Bisection) -> tuple[float, float]:
    return state.prices.trial, state.prices.build


def is_wrong(history: History, answer: Answer) -> bool:
    """True if an answer blames a commit, or a range, in which the step is not, or sees no step where there is one of
    at least the size of interest."""
    if answer.kind in ("commit", "range"):
        return not answer.first <= history.place <= answer.last
    return answer.kind in ("none", "drift") and history.step > 0.0
