"""Series that belong to none of the families that the rules were designed or calibrated with.

All values are multiples of a typical trial; shape (series, trials), in order of time along the second axis.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from support.synthetic_series import Floats, Series


def turbo(rng: Generator, series: int, trials: int) -> Floats:
    """A processor that is quick until its heat budget is used up, after 4 to 12 trials, then slows by 8 % for good."""
    budget = rng.integers(4, 13, (series, 1))
    beyond = np.maximum(0, np.arange(trials) - budget)
    return rng.normal(1.0, 0.015, (series, trials)) - 0.08 * np.exp(-beyond / 2.0)


def neighbour(rng: Generator, series: int, trials: int) -> Floats:
    """Another tenant comes before one trial in fifteen, stays for 2 to 5 of them and costs 20 %."""
    before = 50
    slow = np.zeros((series, trials + before), dtype=bool)
    comes = rng.random(slow.shape) < 1.0 / 15.0
    stays = rng.integers(2, 6, slow.shape)
    for place in range(5):
        slow[:, place:] |= (comes & (stays > place))[:, : slow.shape[1] - place]
    return rng.normal(1.0, 0.02, (series, trials)) * (1.0 + 0.2 * slow[:, before:])


def neighbour_mean() -> float:
    """1.2 but for the share of trials before which nobody came in time to be still there."""
    alone = 1.0
    for stay_beyond in (1.0, 1.0, 0.75, 0.5, 0.25):
        alone *= 1.0 - stay_beyond / 15.0
    return 1.0 + 0.2 * (1.0 - alone)


def page_colours(rng: Generator, series: int, trials: int) -> Floats:
    """Four layouts of memory, drawn anew with every start, 0, 2, 5 and 9 % slower, the better ones more often."""
    slower = rng.choice([0.0, 0.02, 0.05, 0.09], (series, trials), p=[0.4, 0.3, 0.2, 0.1])
    return 1.0 + slower + rng.normal(0.0, 0.003, (series, trials))


def fragmentation(rng: Generator, series: int, trials: int) -> Floats:
    """The mean stays, but the spread grows from 2 to 8 % over fifty trials."""
    return 1.0 + rng.standard_normal((series, trials)) * (
        0.02 + 0.06 * np.minimum(np.arange(trials) / 50.0, 1.0)
    )


def throughput(rng: Generator, series: int, trials: int) -> Floats:
    """Skewed to the left, as rates are: 1.2 less a gamma variate of shape 2 and scale 0.1."""
    return 1.2 - np.minimum(rng.gamma(2.0, 0.1, (series, trials)), 1.1)


def long_memory(rng: Generator, series: int, trials: int) -> Floats:
    """Noise of 3 % on all time scales: white, over three, and over ten trials, a third of the variance each."""
    z = rng.standard_normal((3, series, trials))
    for part, rho in ((z[1], np.exp(-1.0 / 3.0)), (z[2], np.exp(-1.0 / 10.0))):
        part[:, 1:] *= np.sqrt(1.0 - rho * rho)
        for i in range(1, trials):
            part[:, i] += rho * part[:, i - 1]
    return 1.0 + 0.03 * z.sum(axis=0) / np.sqrt(3.0)


def coarse_clock(rng: Generator, series: int, trials: int) -> Floats:
    """Normal of cv 3 %, counted in the ticks of 5 % that fall into it; it begins anywhere between two."""
    return 0.05 * np.floor(rng.normal(1.0, 0.03, (series, trials)) / 0.05 + rng.random((series, trials)))


def cold_every_boot(rng: Generator, series: int, trials: int) -> Floats:
    """The first six trials fill a cache: 40 % slower at first, evenly falling, then steady at cv 4 %."""
    extra = 0.4 * np.maximum(0.0, 1.0 - np.arange(trials) / 6.0)
    return rng.normal(1.0, 0.04, (series, trials)) * (1.0 + extra)


OWN: tuple[Series, ...] = (
    Series("turbo, 8 % slower after a while", turbo),
    Series("neighbour, stays for 2-5 trials", neighbour, neighbour_mean()),
    Series("page colours, four levels", page_colours, 1.025),
    Series("spread grows 2 to 8 %", fragmentation),
    Series("rates, skewed to the left", throughput),
    Series("noise on all time scales", long_memory),
    Series("ticks of 5 %, cv 3 %", coarse_clock),
    Series("six trials fill a cache", cold_every_boot),
)
"""The mean of the last one is that of a steady trial."""
