"""Interface of a bench, which makes trials: a harness or a simulated server, optionally observed or paced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from etude.peak.task import Trial, TrialRequest
from etude.peak.window import Window

EarlyStop = Callable[[Sequence[Window]], bool]
"""Called after each window with all windows of the trial so far; True ends the trial early."""


class Bench(Protocol):
    """Makes trials. A failure of the system under test is part of the trial; a failure of the bench itself raises
    `InputError` or `MachineRefuses` of etude.errors."""

    def run(self, request: TrialRequest, enough: EarlyStop) -> Trial:
        """Offer a load until the run length is over or `enough` returns True."""
        ...


@dataclass(frozen=True)
class ObservedBench:
    """Notifies callbacks of each trial that begins and of each of its windows, before the policy sees them."""

    bench: Bench
    begins: Callable[[TrialRequest], None]
    window: Callable[[TrialRequest, Sequence[Window]], None]

    def run(self, request: TrialRequest, enough: EarlyStop) -> Trial:
        """Same as `Bench.run` of the inner bench."""

        def asked(windows: Sequence[Window]) -> bool:
            self.window(request, windows)
            return enough(windows)

        self.begins(request)
        return self.bench.run(request, asked)


@dataclass(frozen=True)
class PacedBench:
    """A simulated bench in scaled real time: each window takes its duration divided by `speed`."""

    bench: Bench
    speed: float
    pause: Callable[[float], None]

    def run(self, request: TrialRequest, enough: EarlyStop) -> Trial:
        """Same as `Bench.run` of the inner bench."""

        def asked(windows: Sequence[Window]) -> bool:
            self.pause(windows[-1].duration_s / self.speed)
            return enough(windows)

        trial = self.bench.run(request, asked)
        self.pause(max(0.0, trial.cost_s - trial.ran_s) / self.speed)
        return trial
