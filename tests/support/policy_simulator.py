"""A server that is a formula, for tests of policies: quick, and with manners that each test chooses."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from etude.peak.search import EarlyStop
from etude.peak.task import Criterion, Goal, Task, Trial, TrialRequest
from etude.peak.window import Window

LIMIT_S = 0.040
GOAL = Goal((Criterion("mean", LIMIT_S),))


def task(**fields: object) -> Task:
    return Task(**{"goal": GOAL, "lowest": 50.0, "highest": 5000.0, **fields})  # type: ignore[arg-type]


def mm1(rho: float, base: float = 0.106) -> float:
    left = 1 / base - (1 / base - 1) * rho
    return 1 / left if left > 0.02 else 50.0


def slow(rho: float) -> float:
    return 0.15 + 0.85 * rho**1.5


def knee(rho: float) -> float:
    return min(0.075 * (1 + rho / 2) + 0.8875 * min(rho, 3.0) ** 40, 50.0)


def shelf(rho: float) -> float:
    """Of no family: a step at 0.7 of the peak, a second rise that bends."""
    return min(0.1 + 0.25 / (1 + math.exp(-(rho - 0.7) / 0.02)) + 0.65 * min(rho, 3.0) ** 9, 50.0)


def bend(rho: float) -> float:
    """Of no family: straight, then four times as steep."""
    return 0.1 + 0.3 * rho / 0.8 if rho < 0.8 else 0.4 + 3.0 * (rho - 0.8)


class Server:
    """Windows of 10 s; a trial costs 170 s more than it runs.

    `noise`: relative standard deviation of a window. `mark`: answers take so many times as long after an overload.
    `stall`: the probability of a window in which they take 15 times as long. `offers`: beyond this load the generator
    is the limit; `made`: beyond this one the load command fails.
    """

    def __init__(
        self,
        curve: Callable[[float], float],
        peak: float,
        seed: int,
        *,
        noise: float = 0.2,
        mark: float = 1.0,
        stall: float = 0.0,
        offers: float = math.inf,
        made: float = math.inf,
    ) -> None:
        self.curve, self.peak, self.noise, self.mark, self.stall = curve, peak, noise, mark, stall
        self.offers, self.most_made = offers, made
        self.rng = np.random.default_rng(seed)
        self.marked = False
        self.made: list[Trial] = []

    def run(self, request: TrialRequest, enough: EarlyStop) -> Trial:
        if request.load > self.most_made:
            note = "the load command ended with 1: no space left"
            self.made.append(Trial(request.load, request.runlength_s, (), 5.0, "not-made", None, note))
            return self.made[-1]
        rho = request.load / self.peak
        mean = LIMIT_S * self.curve(rho) * (self.mark if self.marked else 1.0)
        mean *= math.exp(0.02 * self.rng.standard_normal())
        windows: list[Window] = []
        while len(windows) < round(request.runlength_s / 10):
            factor = self.rng.gamma(1 / self.noise**2) * self.noise**2
            if self.rng.random() < self.stall:
                factor *= 15
            count = max(round(10 * request.load), 1)
            windows.append(Window(10.0, count, count, 0, mean * factor))
            if enough(tuple(windows)):
                break
        limited = "generator" if request.load > self.offers else None
        ended = "whole" if len(windows) == round(request.runlength_s / 10) else "early"
        trial = Trial(
            request.load, request.runlength_s, tuple(windows), 10.0 * len(windows) + 170, ended, limited
        )  # type: ignore[arg-type]
        self.marked = self.marked or rho > 1.05
        self.made.append(trial)
        return trial


def trial(load: float, readings: Sequence[float], **fields: object) -> Trial:
    """Of windows with these readings, as shares of the limit."""
    windows = tuple(Window(10.0, int(10 * load), int(10 * load), 0, LIMIT_S * each) for each in readings)
    return Trial(load, 180.0, windows, 170 + 10.0 * len(windows), **fields)  # type: ignore[arg-type]
