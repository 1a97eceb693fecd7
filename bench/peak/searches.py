"""Searches on simulated servers, and what became of each."""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

from etude.peak.harnesses.curves import CURVES, TROUBLED
from etude.peak.harnesses.simulated import SimulatedServer
from etude.peak.policies import policy
from etude.peak.search import Bench, Policy, search
from etude.peak.task import Answer, Criterion, Goal, Kind, Task, Trial, TrialRequest
from etude.peak.window import Window
from peak import mlrsearch_peer
from rows import in_processes

T = TypeVar("T")
LIMIT_S = 0.040
FIXED_COST_S = 170.0
WITHIN = 0.10
WIDTH = 0.10
PEAKS = (150.0, 1500.0)
"""True peak rates are drawn between these, every factor as likely as the next."""
SEED_FACTOR = 1.5
"""A seed, the peak of a similar configuration, is off by up to this factor either way, drawn alike."""
TASK = Task(
    Goal((Criterion("mean", LIMIT_S),)),
    lowest=50.0,
    highest=5000.0,
    within=WITHIN,
    confidence=0.95,
    width=WIDTH,
    accuracy=0.90,
    runlength_s=180.0,
    step=20.0,
)
SHOWS = 1.25
MLRSEARCH, OURS = "mlrsearch", "ours"
PART = 10
"""Searches that a process makes before it takes others."""


@dataclass(frozen=True, slots=True)
class Party:
    """Who searches, and for what."""

    name: str
    policy: str
    seeded: bool = False
    promise: Literal["rate", "region"] = "rate"
    share: float = 1.0
    """Of the searches that others make."""


PARTIES: Mapping[str, Party] = {
    party.name: party
    for party in (
        Party("strawman", "strawman", share=0.1),
        Party("linear", "linear"),
        Party("linear+seed", "linear", seeded=True),
        Party("binsearch", "binsearch"),
        Party("binsearch+seed", "binsearch", seeded=True),
        Party("model", "model"),
        Party("model+seed", "model", seeded=True),
        Party("polynomial", "polynomial"),
        Party(MLRSEARCH, MLRSEARCH),
        Party("bracket", "bracket"),
        Party("ours", "posterior"),
        Party("ours+seed", "posterior", seeded=True),
        Party("ours+region", "posterior", promise="region", share=0.5),
    )
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one search."""

    hours: float
    trials: int
    early: int
    """Of its trials, those that its policy ended."""
    error: float | None
    """Of the rate, as a share of the true peak; None where none was given."""
    in_region: bool
    """The true mean response at the rate is within `WIDTH` of the limit."""
    held: bool
    """The true peak is within the interval."""
    kept: bool
    kinds: frozenset[Kind]
    decisions_s: tuple[float, ...]
    shows: bool = True
    """Of a server that is named for not being monotone: whether its lowest load is slower than a higher one."""

    @property
    def right(self) -> bool:
        return self.error is not None and abs(self.error) <= WITHIN


@dataclass(frozen=True, slots=True)
class Job:
    """Some searches of one party on servers of one kind."""

    party: str
    curve: str
    seed: int
    numbers: range
    peer: Path | None


Found = dict[tuple[str, str], list[Outcome]]
"""By party and curve, in the order of their numbers."""


def searched(
    parties: Sequence[Party],
    curves: Sequence[str],
    seed: int,
    searches: int,
    processes: int,
    peer: Path | None,
) -> Found:
    found: dict[tuple[str, str], dict[int, Outcome]] = {}
    todo = list(jobs(parties, curves, seed, searches, peer))
    for job, outcomes in in_processes(worked, todo, processes, "parts"):
        found.setdefault((job.party, job.curve), {}).update(zip(job.numbers, outcomes, strict=True))
    return {key: [of[number] for number in sorted(of)] for key, of in found.items()}


def jobs(
    parties: Sequence[Party], curves: Sequence[str], seed: int, searches: int, peer: Path | None
) -> Iterator[Job]:
    for party in parties:
        count = max(round(party.share * searches), 1)
        for curve in curves:
            for first in range(0, count, PART):
                yield Job(party.name, curve, seed, range(first, min(first + PART, count)), peer)


def worked(job: Job) -> tuple[Job, list[Outcome]]:
    return job, [outcome(PARTIES[job.party], job.curve, job.seed, number, job.peer) for number in job.numbers]


def outcome(party: Party, curve: str, seed: int, number: int, peer: Path | None) -> Outcome:
    """The search of that number, which has the same server for all parties."""
    server, task = drawn(party, curve, seed, number)
    counted = Counted(server)
    if party.policy == MLRSEARCH:
        return judged(mlrsearch_peer.search(peer, task, counted), server, counted.made, ())
    timed = Timed(policy(party.policy))
    answer = search(timed, task, counted)
    return judged(answer, server, counted.made, timed.took_s)


def drawn(party: Party, curve: str, seed: int, number: int) -> tuple[SimulatedServer, Task]:
    """A server and what is asked of it, by these alone."""
    rng = np.random.default_rng([seed, zlib.crc32(curve.encode()), number])
    low, high = PEAKS
    peak = low * (high / low) ** rng.random()
    seed_load = peak * SEED_FACTOR ** rng.uniform(-1, 1)
    of_server = int(rng.integers(2**31))
    kind = CURVES[curve] if curve in CURVES else TROUBLED[curve]
    server = SimulatedServer(kind, peak, of_server, limit_s=LIMIT_S, fixed_cost_s=FIXED_COST_S)
    return server, asked(party, seed_load if party.seeded else None, number)


def asked(party: Party, seed_load: float | None, number: int) -> Task:
    """The task of the paper's experiments (section 5.3)."""
    return replace(TASK, seed_load=seed_load, promise=party.promise, seed=number)


def judged(
    answer: Answer, server: SimulatedServer, made: Sequence[Trial], decisions_s: Sequence[float]
) -> Outcome:
    """By the truth. Of a server that drifts, each peak that it had during the search is true."""
    last, first = server.peak_now, server.peak
    rate = answer.rate
    nearest = None if rate is None else min(max(rate, last), first)
    error = None if rate is None or nearest is None else rate / nearest - 1
    return Outcome(
        hours=sum(trial.cost_s for trial in made) / 3600,
        trials=len(made),
        early=sum(trial.ended == "early" for trial in made),
        error=error,
        in_region=rate is not None and abs(server.response_s(rate) / LIMIT_S - 1) <= WIDTH,
        held=answer.low <= first and last <= answer.high,
        kept=answer.kept,
        kinds=frozenset(finding.kind for finding in answer.findings),
        decisions_s=tuple(decisions_s),
        shows=shows(server),
    )


def shows(server: SimulatedServer) -> bool:
    """Whether its lowest load is slower by `SHOWS` than one between that and its peak: a high peak has its dip within
    the loads that are offered, a low one below them."""
    loads = np.linspace(TASK.lowest, server.peak, 200)
    responses = [server.response_s(float(load)) for load in loads]
    return responses[0] >= SHOWS * min(responses)


class Counted:
    """A bench that remembers its trials."""

    def __init__(self, bench: Bench) -> None:
        self.made: list[Trial] = []
        self._bench = bench

    def run(self, request: TrialRequest, enough: Callable[[Sequence[Window]], bool]) -> Trial:
        self.made.append(self._bench.run(request, enough))
        return self.made[-1]


class Timed:
    """A policy, and how long each of its decisions took on the wall, s."""

    def __init__(self, policy: Policy) -> None:
        self.name = policy.name
        self.took_s: list[float] = []
        self._policy = policy

    def decide(self, *given: Any) -> TrialRequest | Answer:
        return self._timed(self._policy.decide, *given)

    def enough(self, *given: Any) -> bool:
        return self._timed(self._policy.enough, *given)

    def _timed(self, decide: Callable[..., T], *given: Any) -> T:
        start = time.perf_counter()
        decision = decide(*given)
        self.took_s.append(time.perf_counter() - start)
        return decision

    def best(self, task: Task, trials: Sequence[Trial], why: str) -> Answer:
        return self._policy.best(task, trials, why)


def share(outcomes: Sequence[Outcome], of: Callable[[Outcome], bool]) -> float:
    """Of the searches; NaN of none."""
    return sum(map(of, outcomes)) / len(outcomes) if outcomes else math.nan


def mean_hours(outcomes: Sequence[Outcome]) -> float:
    return sum(each.hours for each in outcomes) / len(outcomes)
