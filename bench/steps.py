"""How often steps are found in flat histories, and missed in others: `python bench/steps.py [HISTORIES]`.

The table of docs/history.md, as Markdown: false alarms of flat series with their interval; and of steps of three
robust deviations (of the noise's own middle), the shares found within two places and at their place.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from scipy.signal import lfilter

from etude.history.backtest import Rate
from etude.stats.changes import fit_steps

Draw = Callable[[np.random.Generator, int], np.ndarray]
LENGTHS = (50, 200)


def autoregression(dependence: float, *, heavy: bool = False) -> Draw:
    """Of first order, from normal or t3 innovations."""

    def draw(random: np.random.Generator, n: int) -> np.ndarray:
        noise = random.standard_t(3, n + 100) if heavy else random.standard_normal(n + 100)
        series: np.ndarray = lfilter([1], [1, -dependence], noise)[100:]
        return series

    return draw


NOISES: dict[str, Draw] = {
    "white": lambda random, n: random.standard_normal(n),
    "autocorrelated, 0.3": autoregression(0.3),
    "autocorrelated, 0.5": autoregression(0.5),
    "autocorrelated, 0.7": autoregression(0.7),
    "heavy-tailed, t3": lambda random, n: random.standard_t(3, n),
    "heavy-tailed, Cauchy": lambda random, n: random.standard_cauchy(n),
    "one in twelve ten times as wild": lambda random, n: (
        random.standard_normal(n) * np.where(random.random(n) < 1 / 12, 10, 1)
    ),
    "two modes": lambda random, n: random.standard_normal(n) + 5 * (random.random(n) < 0.3),
    "autocorrelated, 0.5, and t3": autoregression(0.5, heavy=True),
}


def main(histories: int) -> None:
    """Print the table."""
    print("| noise | results | false alarms | step found | at its place |")
    print("| --- | --: | --: | --: | --: |")
    for name, draw in NOISES.items():
        for n in LENGTHS:
            false = near = there = 0
            for seed in range(histories):
                random = np.random.default_rng([2026, seed])
                x = draw(random, n)
                false += bool(fit_steps(x).steps)
                at = int(random.integers(n // 10, n - n // 10))
                x[at:] += 3.0 * 1.4826 * float(np.median(np.abs(x - np.median(x))))
                places = [step.at for step in fit_steps(x).steps]
                near += any(abs(place - at) <= 2 for place in places)
                there += at in places
            ends = Rate(false, histories).interval
            told = f"{100 * false / histories:.1f} % ({100 * ends.low:.1f} to {100 * ends.high:.1f})"
            shares = [f"{100 * count / histories:.0f} %" for count in (near, there)]
            print(f"| {name} | {n} | {told} | {shares[0]} | {shares[1]} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
