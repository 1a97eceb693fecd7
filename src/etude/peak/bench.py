"""A bench, on which policies are tried: a real harness or a simulated server, also observed, or paced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from etude.peak.task import Trial, TrialRequest
from etude.peak.window import Window

Enough = Callable[[Sequence[Window]], bool]
"""Asked after each window with all of the trial so far: whether it may end."""


class Bench(Protocol):
    """Makes trials. A failure of the system under test is part of the trial; what keeps the bench itself from working
    is an `InputError` or a `MachineRefuses` of etude.errors."""

    def run(self, request: TrialRequest, enough: Enough) -> Trial:
        """Offer a load, until its time is over or `enough` says so."""
        ...


@dataclass(frozen=True)
class ObservedBench:
    """Tells of each trial that begins, and of each of its windows, before the policy is asked."""

    bench: Bench
    begins: Callable[[TrialRequest], None]
    window: Callable[[TrialRequest, Sequence[Window]], None]

    def run(self, request: TrialRequest, enough: Enough) -> Trial:
        """As the bench below."""

        def asked(windows: Sequence[Window]) -> bool:
            self.window(request, windows)
            return enough(windows)

        self.begins(request)
        return self.bench.run(request, asked)


@dataclass(frozen=True)
class Paced:
    """A simulated bench at a pace that can be followed: a window takes its time, divided by `speed`."""

    bench: Bench
    speed: float
    pause: Callable[[float], None]

    def run(self, request: TrialRequest, enough: Enough) -> Trial:
        """As the bench below."""

        def asked(windows: Sequence[Window]) -> bool:
            self.pause(windows[-1].duration_s / self.speed)
            return enough(windows)

        trial = self.bench.run(request, asked)
        self.pause(max(0.0, trial.cost_s - trial.ran_s) / self.speed)
        return trial
