"""Steps and drifts of histories: how often either is claimed of what is the other or of neither, and what sizes cover.

    python bench/calibration/steps.py [--alarms] [HISTORIES]

Prints the section of bench/calibration/results.md, or the table of docs/howto/history.md.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))  # bench/: markdown
sys.path.append(str(Path(__file__).resolve().parents[2] / "tests"))  # support: series

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.signal import lfilter

from etude.history.backtest import Rate
from etude.stats.changes import SHORTEST, StepFit, fit_steps
from rows import options, paragraph, table
from support.synthetic_series import Floats, autoregressive

TOGETHER: tuple[tuple[tuple[float, ...], float], ...] = (
    ((5.0, 5.0), 0.0),
    ((8.0, 8.0), 0.0),
    ((5.0, -5.0), 0.0),
    ((12.0,), 14.0),
    ((-12.0,), 14.0),
    ((6.7,), 8.3),
)
"""Sizes of steps, and of a line from the first to the last result, in deviations."""

Noise = Callable[[Generator, int], Floats]
HISTORIES = 200


def _autoregression(dependence: float) -> Noise:
    draw = autoregressive(dependence, 1.0)
    return lambda rng, n: draw(rng, 1, n)[0] - 1.0


NOISES: dict[str, Noise] = {
    "white": lambda rng, n: rng.standard_normal(n),
    "AR(1) .5": _autoregression(0.5),
    "t3": lambda rng, n: rng.standard_t(3.0, n) / np.sqrt(3.0),
}
CHANGES = (0.0, 1.0, 2.0, 4.0, 10.0)
LENGTHS = (20, 50, 100, 200)
DAYS = tuple(product((5, 20), (0.5, 1.0, 2.0), (60, 200)))
"""Results a day, the deviation that those of a day share, results."""
SIZES = (3.0, 5.0)

CLEAR_DAYS = (
    *((1, 0.0, n) for n in (12, 20, 45)),
    *((3, 0.5, n) for n in (30, 60)),
    *((5, 0.5, n) for n in (30, 45, 60)),
    *((5, 1.0, 60), (20, 0.5, 200), (20, 1.0, 200)),
)
CLEAR = 7.0
"""Standard deviations of the results of many days."""


def histories_section(seed: int, histories: int) -> list[str]:
    return [
        "## 5. Steps and drifts of histories",
        "",
        *paragraph(
            f"By `bench/calibration/steps.py {histories}`: {histories} histories a case (standard error at 5 %:",
            f"{100 * np.sqrt(0.05 * 0.95 / histories):.1f} points).",
        ),
        *_drifts(seed, histories),
        *_days(seed, histories),
        *_clear(seed, histories),
        *_found(seed, histories),
        *_together(seed, histories),
    ]


def _drifts(seed: int, histories: int) -> list[str]:
    rows = []
    for name, n in product(NOISES, LENGTHS):
        cells = []
        for change in CHANGES:
            line = np.linspace(0.0, change, n)
            found = [fit_steps(NOISES[name](_rng(seed, k, n), n) + line) for k in range(histories)]
            sure = _share(found, lambda x: any(not step.or_drift for step in x.steps))
            cells.append(f"{_share(found, _stepped):.1f}; {sure:.1f}; {_share(found, _drifting):.0f}")
        rows.append([name, str(n), *cells])
    return [
        *paragraph(
            "Share in % of histories with a step; with one of which it is not said that it may be a drift; and with",
            "a drift, where there is a straight line of so many standard deviations of the noise from the first to the",
            "last result, and no step.",
        ),
        *table(["noise", "results", *(f"line of {change:g}" for change in CHANGES)], rows),
    ]


def _days(seed: int, histories: int) -> list[str]:
    rows = []
    for each, offset, n in DAYS:
        found = []
        for k in range(histories):
            rng = _rng(seed, k, n)
            days, x = _of_days(rng, n, each, offset)
            found.append(fit_steps(x, blocks=days))
        shares = [f"{_share(found, has):.1f}" for has in (_stepped, _drifting)]
        rows.append([str(each), f"{offset:g}", str(n), *shares])
    return [
        *paragraph("Flat histories of days whose results share an offset of so many deviations, in %:"),
        *table(["results a day", "offset", "results", "with a step", "with a drift"], rows),
    ]


def _clear(seed: int, histories: int) -> list[str]:
    rows = []
    for each, offset, n in CLEAR_DAYS:
        found, near = [], 0
        for k in range(histories):
            rng = _rng(seed, k, n)
            days, x = _of_days(rng, n, each, offset)
            at = each * int(rng.integers(SHORTEST, days[-1] + 2 - SHORTEST))
            x[at:] += CLEAR * np.hypot(1.0, offset)
            found.append(fit_steps(x, blocks=days))
            near += any(abs(step.at - at) <= 5 for step in found[-1].steps)
        shares = [f"{100 * near / histories:.1f}", f"{_share(found, _drifting):.1f}"]
        rows.append([str(each), f"{offset:g}", str(n), *shares])
    return [
        *paragraph(
            f"One step of {CLEAR:g} deviations between days, with at least {SHORTEST} days on either side: found",
            "within five results of its place, and taken for a drift, in %:",
        ),
        *table(["results a day", "offset", "results", "found", "with a drift"], rows),
    ]


def _found(seed: int, histories: int) -> list[str]:
    rows = []
    for name, n in product(("white", "AR(1) .5"), LENGTHS[1:]):
        cells = []
        for size in SIZES:
            near = held = drifts = 0
            for k in range(histories):
                rng = _rng(seed, k, n)
                x, at = NOISES[name](rng, n), int(rng.integers(n // 10, n - n // 10))
                x[at:] += size
                found = fit_steps(x)
                drifts += found.drift is not None
                there = [step for step in found.steps if abs(step.at - at) <= 5]
                if there:
                    step = min(there, key=lambda step: abs(step.at - at))
                    near += 1
                    held += step.interval.low <= size <= step.interval.high
            covered = 100 * held / max(1, near)
            cells += [
                f"{100 * near / histories:.0f}; {100 * drifts / histories:.0f}",
                f"{covered:.1f}",
            ]
        rows.append([name, str(n), *cells])
    heads = [f"{size:g}: {word}" for size in SIZES for word in ("found; drift", "size covered")]
    return [
        *paragraph(
            "One step of so many deviations, anywhere but in the first and last tenth: found within five results of",
            "its place, taken for a drift, and, of those found, with a size that the interval at 95 % holds, in %.",
        ),
        *table(["noise", "results", *heads], rows),
    ]


def _together(seed: int, histories: int) -> list[str]:
    rows = []
    for name, n in product(("white", "AR(1) .5"), (30, 60, 120)):
        cells = []
        for sizes, line in TOGETHER:
            both = 0
            for k in range(histories):
                rng = _rng(seed, k, n)
                x = NOISES[name](rng, n) + np.linspace(0.0, line, n)
                third = n // (2 * len(sizes) + 1)
                firsts = [third * (2 * j + 1) for j in range(len(sizes))]
                places = [int(rng.integers(first, first + third)) for first in firsts]
                for at, size in zip(places, sizes, strict=True):
                    x[at:] += size
                found = fit_steps(x)
                near = all(any(abs(step.at - at) <= 3 for step in found.steps) for at in places)
                both += near and len(found.steps) == len(places) and _drifting(found) == (line != 0.0)
            cells.append(f"{100 * both / histories:.1f}")
        rows.append([name, str(n), *cells])
    heads = [
        " and ".join([*(f"step of {size:g}" for size in sizes), *([f"line of {line:g}"] * bool(line))])
        for sizes, line in TOGETHER
    ]
    return [
        *paragraph(
            "Several of them in one history: all found, steps within three results of their places, and nothing else,",
            "in %.",
        ),
        *table(["noise", "results", *heads], rows),
    ]


def _of_days(rng: Generator, n: int, each: int, offset: float) -> tuple[NDArray[np.intp], Floats]:
    """The day of each result, and flat results that share an offset of theirs."""
    days = np.arange(n) // each
    return days, rng.standard_normal(n) + offset * rng.standard_normal(days[-1] + 1)[days]


def _stepped(found: StepFit) -> bool:
    return bool(found.steps)


def _drifting(found: StepFit) -> bool:
    return found.drift is not None


def _share(found: list[StepFit], has: Callable[[StepFit], bool]) -> float:
    return 100.0 * sum(has(each) for each in found) / len(found)


def _rng(seed: int, history: int, n: int) -> Generator:
    return np.random.default_rng([seed, history, n])


ALARM_LENGTHS = (50, 200)


def autoregression(dependence: float, *, heavy: bool = False) -> Noise:
    """Of first order, from normal or t3 innovations."""

    def draw(random: Generator, n: int) -> Floats:
        noise = random.standard_t(3, n + 100) if heavy else random.standard_normal(n + 100)
        series: Floats = lfilter([1], [1, -dependence], noise)[100:]
        return series

    return draw


ALARM_NOISES: dict[str, Noise] = {
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


def alarms(histories: int) -> None:
    """Print how often steps are found in flat histories, and missed in others: the table of docs/howto/history.md.

    False alarms of flat series with their interval; and of steps of three robust deviations (of the noise's own
    middle), the shares found within two places and at their place.
    """
    print("| noise | results | false alarms | step found | at its place |")
    print("| --- | --: | --: | --: | --: |")
    for name, draw in ALARM_NOISES.items():
        for n in ALARM_LENGTHS:
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
    parser = options(__doc__)
    parser.add_argument(
        "histories", type=int, nargs="?", help=f"of a case (default {HISTORIES}; of --alarms 1000)"
    )
    parser.add_argument(
        "--alarms", action="store_true", help="the table that docs/howto/history.md has a part of"
    )
    given = parser.parse_args()
    if given.alarms:
        alarms(given.histories or 1000)
    else:
        print("\n".join(histories_section(2026, given.histories or HISTORIES)))
