"""A server of which a test knows all: its mean response is a function of the load, without noise unless given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from etude.peak.search import EarlyStop, Policy
from etude.peak.task import Answer, Criterion, Goal, Task, Trial, TrialRequest
from etude.peak.window import Window

LIMIT_S = 0.040
GOAL = Goal((Criterion("mean", LIMIT_S),))


def task(**changes: object) -> Task:
    """A search by the mean response."""
    return Task(**{"goal": GOAL, "lowest": 50.0, "highest": 5000.0, "step": 20.0} | changes)  # type: ignore[arg-type]


def trial(load: float, share: float, **changes: object) -> Trial:
    """Of one window whose mean is `share` of the limit."""
    windows = (Window(180.0, 1000, 1000, 0, share * LIMIT_S),)
    return Trial(**{"load": load, "runlength_s": 180.0, "windows": windows, "cost_s": 350.0} | changes)  # type: ignore[arg-type]


def trials(*loads: tuple[float, Sequence[float]]) -> list[Trial]:
    """Of each load its shares of the limit."""
    return [trial(load, share) for load, shares in loads for share in shares]


def queue(peak: float, idle: float = 0.1) -> Callable[[float], float]:
    """One queue's mean response as a share of the limit: 1/(a - bλ), at most 50."""
    a = 1 / idle
    return lambda load: 1 / max(a - (a - 1) * load / peak, 0.02)


@dataclass
class StandIn:
    """A bench that remembers what it was asked for."""

    share: Callable[[float], float]
    noise: Iterator[float] | None = None
    """Factors of trials, one after the other."""
    offers: list[TrialRequest] = field(default_factory=list)

    def run(self, offer: TrialRequest, enough: EarlyStop) -> Trial:
        self.offers.append(offer)
        factor = next(self.noise) if self.noise else 1.0
        made = trial(offer.load, self.share(offer.load) * factor, runlength_s=offer.runlength_s)
        assert not enough(made.windows)
        return made

    @property
    def loads(self) -> list[float]:
        """Each once, in the order of their first trial."""
        return list(dict.fromkeys(offer.load for offer in self.offers))


def decisions(policy: Callable[[], Policy], of: Task, made: Iterable[Trial]) -> list[TrialRequest | Answer]:
    """What a policy that was begun anew says after each number of trials."""
    every = list(made)
    return [policy().decide(of, every[:n]) for n in range(len(every) + 1)]
