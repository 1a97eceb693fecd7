"""Steps and drifts of histories: how often either is claimed of what is the other or of neither, and what sizes cover.

    python bench/calibrate_steps.py [HISTORIES]

Prints the section of docs/calibration.md.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import product

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from calibrate_tables import paragraph, table
from etude.stats.changes import SHORTEST, StepFit, fit_steps
from etude.stats.series import Floats, autoregressive

TOGETHER: tuple[tuple[tuple[float, ...], float], ...] = (
    ((5.0, 5.0), 0.0),
    ((8.0, 8.0), 0.0),
    ((5.0, -5.0), 0.0),
    ((12.0,), 14.0),
    ((-12.0,), 14.0),
    ((6.7,), 8.3),
)
"""Sizes of steps, and of a line from the first to the last result, in deviations."""

TOGETHER_BEFORE: dict[tuple[str, int], tuple[float, ...]] = {
    ("white", 30): (0.0, 0.0, 0.0, 1.0, 0.0, 16.0),
    ("white", 60): (3.5, 3.5, 0.5, 11.5, 0.0, 63.5),
    ("white", 120): (87.5, 87.0, 41.0, 92.0, 17.0, 99.5),
    ("AR(1) .5", 30): (0.0, 0.0, 0.0, 0.0, 0.0, 5.5),
    ("AR(1) .5", 60): (0.0, 0.0, 0.0, 1.5, 0.5, 20.5),
    ("AR(1) .5", 120): (0.5, 0.5, 0.0, 18.5, 0.5, 75.0),
}

Noise = Callable[[Generator, int], Floats]
Cell = tuple[float, ...]
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
UNKNOWN: Cell = (np.nan,) * len(CHANGES)

STEPS_BEFORE: dict[tuple[str, int], Cell] = {
    ("white", 50): (1.5, 9.0, 67.0, 99.0, 100.0),
    ("white", 100): (0.0, 30.5, 93.5, 100.0, 100.0),
    ("white", 200): (0.0, 54.0, 100.0, 100.0, 100.0),
    ("AR(1) .5", 50): (7.0, 15.0, 32.5, 68.0, 88.0),
    ("AR(1) .5", 100): (4.5, 20.0, 48.5, 86.5, 98.0),
    ("AR(1) .5", 200): (0.5, 22.5, 68.5, 98.5, 100.0),
    ("t3", 50): (0.5, 27.5, 84.5, 99.0, 100.0),
    ("t3", 100): (1.5, 52.5, 97.5, 100.0, 100.0),
    ("t3", 200): (0.0, 85.0, 100.0, 100.0, 100.0),
}
"""Shares in % of 200 histories, of levels alone: the code before drifts and days were known to it."""

DAYS_BEFORE: dict[tuple[int, float, int], float] = {
    (5, 0.5, 60): 4.0,
    (5, 0.5, 200): 7.5,
    (5, 1.0, 60): 33.0,
    (5, 1.0, 200): 41.0,
    (5, 2.0, 60): 38.0,
    (5, 2.0, 200): 35.5,
    (20, 0.5, 60): 24.5,
    (20, 0.5, 200): 52.0,
    (20, 1.0, 60): 63.5,
    (20, 1.0, 200): 96.5,
    (20, 2.0, 60): 86.5,
    (20, 2.0, 200): 100.0,
}

COVERED_BEFORE: dict[tuple[str, int], Cell] = {
    ("white", 50): (95.1, 95.8),
    ("white", 100): (97.0, 98.0),
    ("white", 200): (93.5, 94.0),
    ("AR(1) .5", 50): (87.2, 86.3),
    ("AR(1) .5", 100): (91.4, 91.1),
    ("AR(1) .5", 200): (92.6, 92.9),
}
SIZES = (3.0, 5.0)

CLEAR_BEFORE: dict[tuple[int, float, int], float] = {
    (1, 0.0, 12): 35.0,
    (1, 0.0, 20): 64.5,
    (1, 0.0, 45): 89.5,
    (3, 0.5, 30): 21.5,
    (3, 0.5, 60): 58.0,
    (5, 0.5, 30): 0.0,
    (5, 0.5, 45): 20.0,
    (5, 0.5, 60): 31.0,
    (5, 1.0, 60): 22.5,
    (20, 0.5, 200): 31.0,
    (20, 1.0, 200): 12.0,
}
"""Shares in % of 200 histories: the code that judged the noise by differences of neighbours, which cross a step."""
CLEAR = 7.0
"""Standard deviations of the results of many days."""


def section(seed: int, histories: int) -> list[str]:
    """All lines on histories."""
    return [
        "## 5. Steps and drifts of histories",
        "",
        *paragraph(
            f"By `bench/calibrate_steps.py {histories}`: {histories} histories a case (standard error at 5 %:",
            f"{100 * np.sqrt(0.05 * 0.95 / histories):.1f} points). In brackets what levels alone gave, before drifts",
            "and days were known (200 histories).",
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
        for change, was in zip(CHANGES, STEPS_BEFORE.get((name, n), UNKNOWN), strict=True):
            line = np.linspace(0.0, change, n)
            found = [fit_steps(NOISES[name](_rng(seed, k, n), n) + line) for k in range(histories)]
            steps, sure, drifts = (
                _share(found, lambda x: bool(x.steps)),
                _share(found, lambda x: any(not step.or_drift for step in x.steps)),
                _share(found, lambda x: x.drift is not None),
            )
            cells.append(f"{steps:.1f}{'' if np.isnan(was) else f' ({was:.1f})'}; {sure:.1f}; {drifts:.0f}")
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
    for (each, offset, n), was in DAYS_BEFORE.items():
        found = []
        for k in range(histories):
            rng = _rng(seed, k, n)
            days, x = _of_days(rng, n, each, offset)
            found.append(fit_steps(x, blocks=days))
        steps, drifts = _share(found, lambda x: bool(x.steps)), _share(found, lambda x: x.drift is not None)
        rows.append([str(each), f"{offset:g}", str(n), f"{steps:.1f} ({was:.1f})", f"{drifts:.1f}"])
    return [
        *paragraph("Flat histories of days whose results share an offset of so many deviations, in %:"),
        *table(["results a day", "offset", "results", "with a step", "with a drift"], rows),
    ]


def _clear(seed: int, histories: int) -> list[str]:
    rows = []
    for (each, offset, n), was in CLEAR_BEFORE.items():
        found, near = [], 0
        for k in range(histories):
            rng = _rng(seed, k, n)
            days, x = _of_days(rng, n, each, offset)
            at = each * int(rng.integers(SHORTEST, days[-1] + 2 - SHORTEST))
            x[at:] += CLEAR * np.hypot(1.0, offset)
            found.append(fit_steps(x, blocks=days))
            near += any(abs(step.at - at) <= 5 for step in found[-1].steps)
        drifts = _share(found, lambda x: x.drift is not None)
        rows.append(
            [str(each), f"{offset:g}", str(n), f"{100 * near / histories:.1f} ({was:.1f})", f"{drifts:.1f}"]
        )
    return [
        *paragraph(
            f"One step of {CLEAR:g} deviations between days, with at least {SHORTEST} days on either side: found",
            "within five results of its place (in brackets: when it was not taken out of the noise), and taken for a",
            "drift, in %:",
        ),
        *table(["results a day", "offset", "results", "found", "with a drift"], rows),
    ]


def _found(seed: int, histories: int) -> list[str]:
    rows = []
    for (name, n), before in COVERED_BEFORE.items():
        cells = []
        for size, was in zip(SIZES, before, strict=True):
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
                f"{covered:.1f} ({was:.1f})",
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
    for (name, n), before in TOGETHER_BEFORE.items():
        cells = []
        for (sizes, line), was in zip(TOGETHER, before, strict=True):
            both = 0
            for k in range(histories):
                rng = _rng(seed, k, n)
                x = NOISES[name](rng, n) + np.linspace(0.0, line, n)
                third = n // (2 * len(sizes) + 1)
                places = [
                    int(rng.integers(third * (2 * j + 1), third * (2 * j + 2))) for j in range(len(sizes))
                ]
                for at, size in zip(places, sizes, strict=True):
                    x[at:] += size
                found = fit_steps(x)
                near = all(any(abs(step.at - at) <= 3 for step in found.steps) for at in places)
                both += (
                    near and len(found.steps) == len(places) and (found.drift is not None) == (line != 0.0)
                )
            cells.append(f"{100 * both / histories:.1f} ({was:.1f})")
        rows.append([name, str(n), *cells])
    heads = [
        " and ".join([*(f"step of {size:g}" for size in sizes), *([f"line of {line:g}"] * bool(line))])
        for sizes, line in TOGETHER
    ]
    return [
        *paragraph(
            "Several of them in one history: all found, steps within three results of their places, and nothing else,",
            "in % (in brackets: when they were not taken out of the noise together).",
        ),
        *table(["noise", "results", *heads], rows),
    ]


def _of_days(rng: Generator, n: int, each: int, offset: float) -> tuple[NDArray[np.intp], Floats]:
    """The day of each result, and flat results that share an offset of theirs."""
    days = np.arange(n) // each
    return days, rng.standard_normal(n) + offset * rng.standard_normal(days[-1] + 1)[days]


def _share(found: list[StepFit], has: Callable[[StepFit], bool]) -> float:
    return 100.0 * sum(has(each) for each in found) / len(found)


def _rng(seed: int, history: int, n: int) -> Generator:
    return np.random.default_rng([seed, history, n])


if __name__ == "__main__":
    print("\n".join(section(2026, int(sys.argv[1]) if len(sys.argv) > 1 else HISTORIES)))
