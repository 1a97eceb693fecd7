"""What is searched for, what was tried, and what was found: plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from etude import codec
from etude.peak.goal import Goal
from etude.peak.machine_state import MachineState
from etude.peak.window import Window
from etude.units.formatting import counted, digits


@dataclass(frozen=True, slots=True)
class Task:
    """A search for the peak rate λ*: the highest load at which the goal is met ("Cutting Corners", section 2.1)."""

    goal: Goal
    lowest: codec.Above0
    """Loads that may be asked for: requests per second or, of closed systems, concurrency."""
    highest: codec.Above0
    seed_load: codec.Above0 | None = None
    """Where to begin: the peak of a similar configuration. None: at the lowest load."""
    seed_spread: codec.Above0 | None = None
    """Standard deviation of log λ* around log `seed_load`, where that was predicted; of no meaning without."""
    seed_trials: int = 0
    """How many trials near the answer a predicted seed counts as: 1 where predictions of similar configurations came
    true."""
    seed_shapes: tuple[tuple[str, codec.Chance], ...] = ()
    """How likely curves of similar configurations are, by name (`policies/belief/curves.py`); empty: nobody can say."""
    promise: Literal["rate", "region"] = "rate"
    """*rate*: the answer is within `within` of λ*. *region*: the reading at the answer is within `width` of 1."""
    within: codec.Share = 0.10
    confidence: codec.Share = 0.95
    width: codec.Share = 0.10
    """s of the paper: the peak-rate region is 1 ± s of the limit."""
    accuracy: codec.Share = 0.90
    """a of the paper: 1 - (high - low) / (high + low) of the mean response at the answer."""
    runlength_s: codec.Above0 = 180.0
    """The longest trial; those that need not be watched are so long."""
    step: codec.Above0 | None = None
    """Of searches by fixed steps; None: the lowest load."""
    whole: bool = False
    """Whether loads are whole numbers, as those of clients always are."""
    closed: bool = False
    """Whether loads are numbers of clients, not requests per second."""
    budget_s: codec.From0 | None = None
    """Benchmarking time after which the best answer so far is given."""
    seed: int = 0
    """Of whatever the policy draws."""

    def load_text(self, load: float) -> str:
        """`512.4/s`, or `12 clients` of a closed system."""
        return counted(round(load), "client") if self.closed else f"{self.load_digits(load)}/s"

    def load_digits(self, load: float) -> str:
        """The load without its unit: a whole number where loads are, of rates as well."""
        return f"{round(load)}" if self.whole else digits(load)


@dataclass(frozen=True, slots=True)
class TrialRequest:
    """A trial that is to be made."""

    load: float
    runlength_s: float
    why: str
    """One short clause, for whoever watches."""


Limited = Literal["server", "generator"]
Ended = Literal["whole", "early", "died", "not-made"]


@dataclass(frozen=True, slots=True)
class GeneratorPart:
    """One host's part in the load of a trial that several hosts offered."""

    host: str
    """As in the hosts file."""
    limited: Limited | None = None
    """As of the trial, for what this host was to offer."""
    busy: codec.Number | None = None
    """Share of its cores that its load generator kept busy."""
    lateness_p99_s: codec.Number | None = None
    began_s: codec.Number | None = None
    """How long after the first host it began, s."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One that was made."""

    load: codec.Number
    """Asked for."""
    runlength_s: codec.Number
    """Asked for, at most."""
    windows: tuple[Window, ...]
    cost_s: codec.Number
    """Benchmarking time that it took: set-up, warm-up, the run, draining."""
    ended: Ended = "whole"
    """*early*: the policy had seen enough. *died*: the system stopped by itself. *not-made*: the load command failed,
    and the system did not."""
    limited: Limited | None = None
    """Where less was offered or completed than asked for: whose fault that was."""
    note: str = ""
    generator_busy: codec.Number | None = None
    """Share of its cores that the load generator (of several hosts the busiest) kept busy; None where that is unknown,
    or says nothing (it spins)."""
    lateness_p99_s: codec.Number | None = None
    """99 % of each window's requests were sent at most so long after they were due; None where that is unknown."""
    machine: MachineState | None = None
    """Of the machine at which Étude runs, while load was offered; None where nobody looked."""
    generators: tuple[GeneratorPart, ...] = ()
    """Of each host, where several offered the load; empty where one machine did."""

    @property
    def ran_s(self) -> float:
        """How long load was offered, s."""
        return sum(window.duration_s for window in self.windows)

    @property
    def offered(self) -> bool:
        """Whether its load was offered, all of it and to the end."""
        return self.limited != "generator" and self.ended != "not-made"

    @property
    def of_server(self) -> bool:
        """Whether it tells something of the server: the generator did what was asked of it."""
        return self.offered and (bool(self.windows) or self.ended == "died")


@dataclass(frozen=True, slots=True)
class Answer:
    """The end of a search."""

    rate: codec.From0 | None
    """λ*; None where nothing can be said but the bounds."""
    low: codec.From0
    high: codec.From0
    """Between these it is, with the confidence that the task asks for; 0 and inf where there is no bound."""
    confidence: codec.From0
    """How sure it is that the promise holds at `rate` or, without a rate, that the bound does, whether that is enough
    or not. Policies that cannot tell (the paper's, and `bracket`) give what the task asks for."""
    kept: bool
    """Whether the promise is met; else this is the best that is known, and `why` says what stood in the way."""
    why: str
    findings: tuple[Finding, ...] = ()


Kind = Literal[
    "stalling",
    "non-monotone",
    "hysteretic",
    "drifting",
    "bimodal",
    "model-misfit",
    "generator-limited",
    "generator-late",
    "generator-saturated",
    "load-not-made",
    "not-bracketed",
    "disturbed",
    "not-steady",
    "below-lowest",
    "above-highest",
    "no-windows",
    "failing",
    "dying",
    "cut-short",
    "no-times",
]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about the server that makes a single peak rate doubtful, or bounds it."""

    kind: Kind
    what: str
    """One line with the figures it rests on."""
