"""Plain data of a search: its task with the service level objective (SLO), its trials and its answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from etude import codec
from etude.peak.machine_state import MachineState
from etude.peak.window import Window, joined_windows
from etude.units.formatting import counted, digits

CALIBRATION = "calibrate"
"""Name under which a calibration is stored in place of a search policy."""


WORST = 50.0
"""Upper bound of SLO ratios: beyond it, more load gives no information."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """One limit; a load fails when its SLO ratio is above 1."""

    of: Literal["mean", "percentile", "errors"]
    limit: codec.Above0
    """s for response times; share of requests for errors."""
    percent: codec.Percent | None = None
    """Percentile, for criteria of response time: 95 is the 95th."""

    def __post_init__(self) -> None:
        if (self.of == "percentile") != (self.percent is not None):
            raise ValueError(f"a criterion of {self.of} has percent {self.percent!r}")

    def reading(self, windows: Sequence[Window]) -> float | None:
        """SLO ratio: measured value over limit; None if the windows do not contain it."""
        whole = joined_windows(windows)
        if self.of == "errors":
            ended = whole.completed + whole.failed
            return min(whole.failed_share / self.limit, WORST) if ended else None
        value = whole.mean_so_far_s if self.percent is None else whole.percentile_s(self.percent)
        if value is None:
            # No response although requests were due.
            return WORST if whole.offered and not whole.completed else None
        return min(value / self.limit, WORST)

    def __str__(self) -> str:
        if self.of == "errors":
            return f"errors ≤ {100 * self.limit:g} %"
        what = "mean response" if self.percent is None else f"{self.percent:g} % of responses"
        return f"{what} ≤ {1e3 * self.limit:g} ms"


@dataclass(frozen=True, slots=True)
class Goal:
    """Criteria that must all be met."""

    criteria: tuple[Criterion, ...]

    def reading(self, windows: Sequence[Window]) -> float:
        """The highest SLO ratio of the criteria: 1 is the limit; NaN if nothing is known yet."""
        known = [r for c in self.criteria if (r := c.reading(windows)) is not None]
        return max(known, default=math.nan)


@dataclass(frozen=True, slots=True)
class Task:
    """Search for the peak rate λ*: the highest load that meets the goal ("Cutting Corners", section 2.1)."""

    goal: Goal
    lowest: codec.Above0
    """Range of permitted loads: requests per second or, for closed systems, concurrency."""
    highest: codec.Above0
    seed_load: codec.Above0 | None = None
    """First load: the peak of a similar configuration. None: the lowest load."""
    seed_spread: codec.Above0 | None = None
    """Standard deviation of log λ* around log `seed_load`, if that was predicted; meaningless without it."""
    seed_trials: int = 0
    """Number of trials near the answer that a predicted seed counts as: 1 if predictions for similar configurations
    were calibrated."""
    seed_shapes: tuple[tuple[str, codec.Chance], ...] = ()
    """Probabilities of curves, by name, from similar configurations (`policies/belief/curves.py`); empty: unknown."""
    promise: Literal["rate", "region"] = "rate"
    """*rate*: the answer is within `within` of λ*. *region*: the SLO ratio at the answer is within `width` of 1."""
    within: codec.Share = 0.10
    confidence: codec.Share = 0.95
    width: codec.Share = 0.10
    """s of the paper: the peak-rate region is 1 ± s of the limit."""
    accuracy: codec.Share = 0.90
    """a of the paper: 1 - (high - low) / (high + low) of the mean response at the answer."""
    runlength_s: codec.Above0 = 180.0
    """Length of the longest trial; trials that are not ended early have this length."""
    step: codec.Above0 | None = None
    """Step of searches with a fixed step; None: the lowest load."""
    whole: bool = False
    """True if loads are whole numbers, as numbers of clients always are."""
    closed: bool = False
    """True if loads are numbers of clients instead of requests per second."""
    budget_s: codec.From0 | None = None
    """Benchmarking time after which the best answer so far is given."""
    seed: int = 0
    """Seed of the policy's random draws."""

    def rounded(self, load: float) -> float:
        """The load; the nearest whole number if loads are whole."""
        return float(round(load)) if self.whole else load

    def request(self, load: float, why: str) -> TrialRequest:
        """A trial of the whole run length."""
        return TrialRequest(load, self.runlength_s, why)

    def load_text(self, load: float) -> str:
        """`512.4/s`, or `12 clients` for a closed system."""
        return counted(round(load), "client") if self.closed else f"{self.load_digits(load)}/s"

    def load_digits(self, load: float) -> str:
        """The load without its unit; whole numbers if loads are whole."""
        return f"{round(load)}" if self.whole else digits(load)


@dataclass(frozen=True, slots=True)
class TrialRequest:
    """A trial to be made."""

    load: float
    runlength_s: float
    why: str
    """Short reason, one clause, for display."""


Limited = Literal["server", "generator"]
Ended = Literal["whole", "early", "died", "not-made"]


@dataclass(frozen=True, slots=True)
class GeneratorPart:
    """One host's part of a trial whose load several hosts offered."""

    host: str
    """Name as in the hosts file."""
    limited: Limited | None = None
    """Bottleneck as in `Trial`, for the load of this host."""
    busy: codec.Number | None = None
    """CPU utilisation of its load generator's cores, a share."""
    lateness_p99_s: codec.Number | None = None
    began_s: codec.Number | None = None
    """Start delay after the first host, s."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A trial that was made."""

    load: codec.From0
    """Requested load."""
    runlength_s: codec.From0
    """Requested run length, the maximum."""
    windows: tuple[Window, ...]
    cost_s: codec.From0
    """Benchmarking time: set-up, warm-up, run, drain."""
    ended: Ended = "whole"
    """*early*: the policy had seen enough. *died*: the system stopped by itself. *not-made*: the load command failed
    while the system did not."""
    limited: Limited | None = None
    """Bottleneck if less than requested was offered or completed."""
    note: str = ""
    generator_busy: codec.Number | None = None
    """CPU utilisation of the load generator's cores, a share (the maximum over hosts); None if unknown, or if the
    generator spins."""
    lateness_p99_s: codec.Number | None = None
    """99th percentile of the send lateness, s, the maximum over windows; None if unknown."""
    machine: MachineState | None = None
    """State of Étude's machine during the load; None if not sampled."""
    generators: tuple[GeneratorPart, ...] = ()
    """Parts of the hosts if several offered the load; empty if one machine did."""

    @property
    def ran_s(self) -> float:
        """Duration of the load, s."""
        return sum(window.duration_s for window in self.windows)

    @property
    def cut_short(self) -> bool:
        """True if the policy ended it before its run length; *early* is also a trial that it ended at the last
        window."""
        return self.ended == "early" and self.ran_s < self.runlength_s * (1 - 1e-6)

    @property
    def offered(self) -> bool:
        """True if the whole load was offered until the end."""
        return self.limited != "generator" and self.ended != "not-made"

    @property
    def of_server(self) -> bool:
        """True if the trial has information on the server: the generator offered the requested load."""
        return self.offered and (bool(self.windows) or self.ended == "died")


def slo_ratio_of(goal: Goal, trial: Trial) -> float:
    """SLO ratio of one trial; the maximum if the server died or fell far behind."""
    if trial.ended == "died" or trial.limited == "server":
        return WORST
    return goal.reading(trial.windows)


@dataclass(frozen=True, slots=True)
class Answer:
    """Result of a search."""

    rate: codec.From0 | None
    """λ*; None if only bounds are known."""
    low: codec.From0
    high: codec.From0
    """Interval of λ* at the task's confidence; 0 and inf: no bound."""
    confidence: codec.From0
    """Probability that the target is met at `rate` or, without a rate, that the bound holds, sufficient or not.
    Policies that cannot compute it (the paper's, and `bracket`) give the task's confidence."""
    kept: bool
    """True if the target is met; otherwise this is the best known answer, and `why` gives the reason."""
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
    """A property of the server that makes a single peak rate doubtful, or bounds it."""

    kind: Kind
    what: str
    """One line with the figures that it is based on."""
