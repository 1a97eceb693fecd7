"""State of a bisection and its next action: decisions only, the same for real commits and simulated ones.

The state follows from the builds and trials alone, so that a bisection that was killed continues from its results.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from etude.bisect.next_block import Block, Prices, next_block
from etude.bisect.posterior import Evidence, Posterior, posterior_of
from etude.bisect.verdict import Answer, answer_of

FIRST_BLOCKS = 2
"""Blocks of GOOD and BAD alone, of `FIRST_TRIALS` trials of each, before the first choice."""
FIRST_TRIALS = 2
GROWTH = 12
"""Trials so far over those that are run before the next choice, at least."""
LEAST_S = 0.5
"""Least duration of what is run before the next choice."""


@dataclass(frozen=True)
class Setting:
    """Parameters that decide a bisection, besides its trials."""

    count: int
    """Number of commits, from GOOD to BAD."""
    smallest: float = 0.03
    """Smallest step of interest, in the unit of the values."""
    confidence: float = 0.95
    seed: int = 0
    trial_s: float = 1.0
    """Expected duration of a trial and of a build, until some are known."""
    build_s: float = 60.0


@dataclass(frozen=True)
class Build:
    """Action: build a commit."""

    commit: int


@dataclass(frozen=True)
class Run:
    """Action: run one trial of a commit."""

    commit: int
    block: int


@dataclass
class Bisection:
    """A bisection as far as it has come."""

    setting: Setting
    posterior: Posterior | None = None
    """After the last completed choice; None before the first blocks are done."""
    answer: Answer | None = None
    built: dict[int, float] = field(default_factory=dict)
    """Seconds of each build."""
    broken: set[int] = field(default_factory=set)
    """Commits that do not build, or cannot be measured."""
    session: int = 0
    """Number of the session: one more after each interruption."""
    _commits: list[int] = field(default_factory=list)
    _blocks: list[int] = field(default_factory=list)
    _sessions: list[int] = field(default_factory=list)
    _values: list[float] = field(default_factory=list)
    _seconds: list[float] = field(default_factory=list)
    _plan: list[Run] = field(default_factory=list)
    """Trials of the current blocks that have not run."""
    _block: int = 0
    _candidate: Block | None = None

    @property
    def last(self) -> int:
        """Index of BAD."""
        return self.setting.count - 1

    @property
    def trials(self) -> int:
        """Number of trials so far."""
        return len(self._values)

    @property
    def evidence(self) -> Evidence:
        """All trials so far."""
        commits, blocks, sessions = (
            np.array(each, dtype=np.intp) for each in (self._commits, self._blocks, self._sessions)
        )
        return Evidence(commits, blocks, sessions, np.array(self._values))

    @property
    def prices(self) -> Prices:
        """Expected durations: means of those so far."""
        builds = list(self.built.values())
        trial = float(np.mean(self._seconds)) if self._seconds else self.setting.trial_s
        return Prices(max(trial, 1e-6), float(np.mean(builds)) if builds else self.setting.build_s)

    def action(self) -> Build | Run | Answer:
        """The next thing to do; the answer once it is decided, or nothing is left that could be measured."""
        ends = (0, self.last)
        if not self.broken.isdisjoint(ends):
            return Answer("undecided", 1, self.last, 1.0)
        for end in ends:
            if end not in self.built:
                return Build(end)
        if not self._plan and self._candidate is None:
            if min(map(self._commits.count, ends)) < FIRST_BLOCKS * FIRST_TRIALS:
                self._plan = self._order([0, self.last] * FIRST_TRIALS)
            else:
                self.judge()
        if self.answer is not None and self.answer.decided:
            return self.answer
        if self._candidate is not None:
            if self._candidate.commit not in self.built:
                return Build(self._candidate.commit)
            self._plan, self._candidate = self._trials_of(self._candidate), None
        return self._plan[0]

    def add_build(self, commit: int, seconds: float) -> None:
        """A commit was built."""
        self.built[commit] = seconds

    def add_failure(self, commit: int) -> None:
        """A commit does not build, or its program fails: it is skipped, with its trials."""
        self.broken.add(commit)
        self._candidate = None
        kept = [i for i, each in enumerate(self._commits) if each != commit]
        self._commits, self._blocks, self._sessions = (
            [values[i] for i in kept] for values in (self._commits, self._blocks, self._sessions)
        )
        self._values, self._seconds = ([values[i] for i in kept] for values in (self._values, self._seconds))
        self._plan = [each for each in self._plan if each.commit != commit]

    def add_trial(self, run: Run, value: float, seconds: float) -> None:
        """A trial was run, which `action` returned, or before an interruption; value: in the unit of the evidence."""
        if self._plan:
            self._plan.remove(run)
        self._block = max(self._block, run.block + 1)
        self._commits.append(run.commit)
        self._blocks.append(run.block)
        self._sessions.append(self.session)
        self._values.append(value)
        self._seconds.append(seconds)

    def judge(self) -> None:
        """Posterior and answer of all trials so far, and if more are needed the next candidate."""
        evidence, setting = self.evidence, self.setting
        self.posterior = posterior_of(evidence, setting.count, smallest=setting.smallest)
        self.answer = answer_of(
            self.posterior, self.broken, confidence=setting.confidence, smallest=setting.smallest
        )
        if not self.answer.decided:
            self._candidate = next_block(
                self.posterior,
                built=self.built,
                broken=self.broken,
                prices=self.prices,
                smallest=setting.smallest,
                counts=np.bincount(evidence.commits, minlength=setting.count),
            )

    def _trials_of(self, block: Block) -> list[Run]:
        """The block, as often as is worth it before the next choice."""
        size = block.trials + block.references
        times = max(1, self.trials // (GROWTH * size), math.ceil(LEAST_S / (size * self.prices.trial)))
        planned: list[Run] = []
        for _ in range(min(times, max(1, self.trials // size))):
            ends = [(0, self.last)[(self._block + i) % 2] for i in range(block.references)]
            if block.commit == self.last:
                ends = [0] * block.references
            planned += self._order([*([block.commit] * block.trials), *ends])
        return planned

    def _order(self, commits: Sequence[int]) -> list[Run]:
        """A new block of these trials, in random order."""
        random = np.random.default_rng([self.setting.seed, self._block])
        self._block += 1
        return [Run(int(commit), self._block - 1) for commit in random.permutation(np.array(commits))]
