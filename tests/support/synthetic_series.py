"""Synthetic series of trials, on which intervals and stop rules are evaluated (bench/calibrate.py, tests).

REFERENCE has the families that the rules were designed with; OWN has others that nothing was tuned to, as an
independent test. All values are multiples of a typical trial.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Draw = Callable[[Generator, int, int], Floats]
"""(generator, series, trials) -> values of shape (series, trials), in order of time along the second
axis."""


@dataclass(frozen=True)
class Series:
    """A family of series and the mean that its intervals should cover."""

    name: str
    draw: Draw
    mean: float | None = 1.0
    """True mean of a steady trial; None if the distribution has none."""
    drift: float = 0.0
    """Increase of the true mean with every trial, the first being number 0."""


@dataclass(frozen=True)
class Machine:
    """Effect of a machine on every command, trial after trial."""

    name: str
    draw: Draw
    """Factors around 1, of shape (series, trials)."""


def normal(cv: float) -> Draw:
    """N(1, cv), with values at or below zero redrawn."""

    def draw(rng: Generator, series: int, trials: int) -> Floats:
        values = rng.normal(1.0, cv, (series, trials))
        while (wrong := values <= 0.0).any():
            values[wrong] = rng.normal(1.0, cv, int(wrong.sum()))
        return values

    return draw


def lognormal(cv: float) -> Draw:
    """Log-normal with mean 1."""
    sigma = float(np.sqrt(np.log1p(cv * cv)))
    return lambda rng, series, trials: np.exp(rng.normal(-sigma * sigma / 2.0, sigma, (series, trials)))


def mixture(share: float, *, plus: float = 0.0, times: float = 1.0, cv: float = 0.01) -> Draw:
    """Normal trials, a share of which is shifted by `plus` and multiplied by `times`."""
    steady = normal(cv)

    def draw(rng: Generator, series: int, trials: int) -> Floats:
        values = steady(rng, series, trials)
        return np.where(rng.random((series, trials)) < share, values * times + plus, values)

    return draw


def gamma(rng: Generator, series: int, trials: int) -> Floats:
    """0.8 + Gamma(shape 2, scale 0.1): skewness 1.4."""
    return 0.8 + rng.gamma(2.0, 0.1, (series, trials))


def pareto(rng: Generator, series: int, trials: int) -> Floats:
    """0.9 + 0.15·Lomax(2.5): a tail without a third moment."""
    return 0.9 + 0.15 * rng.pareto(2.5, (series, trials))


def autoregressive(rho: float, deviation: float) -> Draw:
    """1 + deviation·z, z a stationary AR(1) of variance 1."""

    def draw(rng: Generator, series: int, trials: int) -> Floats:
        z = rng.standard_normal((series, trials))
        z[:, 1:] *= np.sqrt(1.0 - rho * rho)
        for i in range(1, trials):
            z[:, i] += rho * z[:, i - 1]
        return 1.0 + deviation * z

    return draw


def slow_start(extra: Callable[[Floats], Floats], cv: float) -> Draw:
    """Normal trials times 1 + extra(position)."""
    steady = normal(cv)
    return lambda rng, series, trials: (
        steady(rng, series, trials) * (1.0 + extra(np.arange(trials, dtype=np.float64)))
    )


def first_trials(count: int, extra: float) -> Callable[[Floats], Floats]:
    """`extra` for the first `count` positions, 0 afterwards."""
    return lambda position: np.where(position < count, extra, 0.0)


def decaying(extra: float, over: float) -> Callable[[Floats], Floats]:
    """`extra`·exp(-position/over)."""
    return lambda position: extra * np.exp(-position / over)


def weibull(rng: Generator, series: int, trials: int) -> Floats:
    """0.8 + 0.15·Weibull(shape 0.9): skewed more than an exponential."""
    return 0.8 + 0.15 * rng.weibull(0.9, (series, trials))


WEIBULL_MEAN = 0.8 + 0.15 * 1.0521849  # Gamma(1 + 1/0.9)


def frequency_modes(rng: Generator, series: int, trials: int) -> Floats:
    """Two speeds 12 % apart; the machine switches before every trial with probability 0.1."""
    changes = rng.random((series, trials)) < 0.1
    changes[:, 0] = rng.random(series) < 0.5
    slow = np.cumsum(changes, axis=1) % 2
    return normal(0.02)(rng, series, trials) + 0.12 * slow


def heavy_log(rng: Generator, series: int, trials: int) -> Floats:
    """exp(0.05·t), t Student with 3 degrees of freedom: its logarithm has a variance, it has no mean."""
    return np.exp(0.05 * rng.standard_t(3.0, (series, trials)))


def collector(rng: Generator, series: int, trials: int) -> Floats:
    """A heap that fills: 0, 2 … 12 % slower over seven trials, then collected; random phase."""
    phase = rng.integers(0, 7, (series, 1))
    return normal(0.02)(rng, series, trials) * (1.0 + 0.02 * ((np.arange(trials) + phase) % 7))


def every_tenth(rng: Generator, series: int, trials: int) -> Floats:
    """Every tenth trial includes a flush and takes 40 % longer; random phase."""
    phase = rng.integers(0, 10, (series, 1))
    return normal(0.03)(rng, series, trials) * np.where((np.arange(trials) + phase) % 10 == 0, 1.4, 1.0)


REFERENCE: tuple[Series, ...] = (
    Series("normal cv5", normal(0.05)),
    Series("normal cv10", normal(0.10)),
    Series("normal cv20", normal(0.20)),
    Series("lognormal cv10", lognormal(0.10)),
    Series("lognormal cv30", lognormal(0.30)),
    Series("bimodal 50/50 +10%", mixture(0.5, plus=0.1), 1.05),
    Series("bimodal 85/15 +30%", mixture(0.15, plus=0.3), 1.045),
    Series("gamma .8+G(2)", gamma),
    Series("pareto tail a=2.5", pareto),
    Series("AR1 .3 cv10", autoregressive(0.3, 0.10)),
    Series("AR1 .6 cv10", autoregressive(0.6, 0.10)),
    Series("warm-up 3 trials +30%, cv5", slow_start(first_trials(3, 0.3), 0.05)),
    Series("warm-up exp 30%, cv5", slow_start(decaying(0.3, 3.0), 0.05)),
    Series("spikes 5% x1.5, cv3", mixture(0.05, times=1.5, cv=0.03), 1.025),
    Series("spikes 2% x3, cv3", mixture(0.02, times=3.0, cv=0.03), 1.04),
    Series("drift +0.2%/trial, cv5", slow_start(lambda i: 0.002 * i, 0.05), drift=0.002),
    Series("warm-up first trial +100%, cv3", slow_start(first_trials(1, 1.0), 0.03)),
)

OWN: tuple[Series, ...] = (
    Series("Weibull .9", weibull, WEIBULL_MEAN),
    Series("two frequencies, Markov", frequency_modes, 1.06),
    Series("t3 on a log scale", heavy_log, None),
    Series("collector sawtooth 12%", collector, 1.06),
    Series("every tenth +40%, cv3", every_tenth, 1.04),
)


def steady(rng: Generator, series: int, trials: int) -> Floats:
    """A machine without effects."""
    return np.ones((series, trials))


def linear(per_trial: float) -> Draw:
    """Slower by the same amount with every trial."""
    return lambda rng, series, trials: np.broadcast_to(1.0 + per_trial * np.arange(trials), (series, trials))


def random_walk(step: float) -> Draw:
    """The logarithm of the speed is a random walk with steps N(0, step) per trial."""
    return lambda rng, series, trials: np.exp(np.cumsum(rng.normal(0.0, step, (series, trials)), axis=1))


def one_step(extra: float, within: int) -> Draw:
    """Slower from one trial on, a random one of the first `within`."""

    def draw(rng: Generator, series: int, trials: int) -> Floats:
        place = rng.integers(1, within, (series, 1))
        return np.where(np.arange(trials) >= place, 1.0 + extra, 1.0)

    return draw


def warm_up(count: int, extra: float) -> Draw:
    """The first `count` trials are slower, whatever they run."""
    return lambda rng, series, trials: np.broadcast_to(
        1.0 + first_trials(count, extra)(np.arange(trials, dtype=np.float64)), (series, trials)
    )


def alternating(size: float) -> Draw:
    """Alternately slower and faster; random phase."""

    def draw(rng: Generator, series: int, trials: int) -> Floats:
        odd = (np.arange(trials) + rng.integers(0, 2, (series, 1))) % 2 == 1
        return np.where(odd, 1.0 - size, 1.0 + size)

    return draw


def sine(size: float, cycle: float) -> Draw:
    """One slow wave per `cycle` trials; random phase."""

    def draw(rng: Generator, series: int, trials: int) -> Floats:
        return 1.0 + size * np.sin(2.0 * np.pi * (np.arange(trials) / cycle + rng.random((series, 1))))

    return draw


MACHINES: tuple[Machine, ...] = (
    Machine("steady", steady),
    Machine("drift 2% per 20 trials", linear(0.02 / 20)),
    Machine("drift 5% per 20 trials", linear(0.05 / 20)),
    Machine("drift 10% per 20 trials", linear(0.10 / 20)),
    Machine("random walk 0.5%/trial", random_walk(0.005)),
    Machine("random walk 1%/trial", random_walk(0.01)),
    Machine("AR1 .8 sd 3%", autoregressive(0.8, 0.03)),
    Machine("one step +5% in the first 20", one_step(0.05, 20)),
    Machine("warm-up 3 trials +20%", warm_up(3, 0.20)),
    Machine("period 2, ±1.5%", alternating(0.015)),
    Machine("sine 3%, 20 trials a cycle", sine(0.03, 20.0)),
)


def deal_into_blocks(rng: Generator, trials: Floats, tests: int) -> Floats:
    """Deal trials out to tests in blocks of one trial each, in random order within every block.

    trials: shape (series, blocks·tests), in order of time. Returns shape (tests, series, blocks).
    """
    series = trials.shape[0]
    blocks = trials.reshape(series, -1, tests)
    order = np.argsort(rng.random(blocks.shape), axis=2)
    dealt: Floats = np.take_along_axis(blocks, order, axis=2)
    return np.moveaxis(dealt, 2, 0)
