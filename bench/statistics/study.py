"""What the study that the rules were designed by found, with its own code and seeds, on synthetic series.

20,000 replications for coverage and designs, 10,000 for bootstrap intervals, 6,000 for tests of two samples. In the
tables its figures stand in brackets beside ours.
"""

from __future__ import annotations

from collections.abc import Mapping

REPLICATIONS = 20_000

Figures = Mapping[str, tuple[float, ...]]

MEAN: Figures = {
    "normal cv5": (95.1, 95.0, 95.1, 96.4),
    "normal cv10": (94.8, 95.0, 93.5, 95.5),
    "normal cv20": (95.2, 95.1, 95.0, 96.6),
    "lognormal cv10": (94.9, 95.1, 93.6, 95.2),
    "lognormal cv30": (94.0, 94.3, 94.3, 96.3),
    "bimodal 50/50 +10%": (94.0, 94.8, 94.0, 96.2),
    "bimodal 85/15 +30%": (80.0, 94.0, 79.5, 80.1),
    "gamma .8+G(2)": (92.4, 93.7, 89.7, 92.0),
    "pareto tail a=2.5": (79.7, 84.4, 78.5, 80.8),
    "AR1 .3 cv10": (85.6, 85.1, 82.9, 88.1),
    "AR1 .6 cv10": (67.0, 66.5, 63.6, 80.4),
    "warm-up 3 trials +30%, cv5": (84.5, 82.5, 82.0, 99.2),
    "warm-up exp 30%, cv5": (11.1, 40.0, 21.9, 73.7),
    "spikes 5% x1.5, cv3": (61.2, 78.8, 61.0, 65.4),
    "spikes 2% x3, cv3": (21.2, 45.0, 21.1, 24.4),
}
"""Coverage in %: t at a fixed 10 and 30 trials, Auto-pilot's rule (10 to 30), MeanPrecision."""

INDEPENDENT: Figures = {
    "normal cv5, 10 and 10": (5.3, 5.4, 5.5, 4.7),
    "lognormal cv30, 10 and 10": (5.0, 5.3, 5.3, 4.7),
    "spikes 5% x1.5, cv3, 10 and 10": (1.8, 1.9, 2.1, 4.0),
    "bimodal 50/50 +10%, 10 and 10": (5.0, 5.0, 5.0, 4.2),
    "normal cv2 and cv8, 10 and 10": (5.5, 5.5, 6.6, 7.1),
    "normal cv2 and cv8, 30 and 10": (5.6, 5.7, 23.8, 13.2),
    "lognormal cv40 and cv10, 10 and 10": (7.1, 8.5, 8.0, 9.9),
    "lognormal cv40 and cv10, 10 and 30": (6.8, 8.2, 25.2, 17.9),
    "AR1 .3 cv5, 10 and 10": (15.0, 15.1, 15.2, 13.0),
    "AR1 .6 cv5, 10 and 10": (34.2, 34.0, 34.5, 31.1),
    "AR1 .6 cv5, 30 and 30": (33.6, 33.4, 33.7, 31.7),
}
"""False findings in %: Welch, Welch on logarithms, Student, Mann-Whitney."""

RESAMPLED: Figures = {
    "normal cv5": (5.3, 5.3, 4.2, 8.4),
    "normal cv2 and cv8": (6.6, 6.6, 5.7, 9.7),
    "lognormal cv30": (5.0, 5.0, 4.2, 8.5),
    "spikes 5% x1.5, cv3": (4.3, 4.3, 2.9, 10.2),
    "bimodal 50/50 +10%": (4.7, 4.7, 4.0, 7.0),
    "AR1 .6 cv5": (33.8, 33.8, 26.5, 40.0),
}
"""False findings in %, 10 trials a side: permutation of means, studentised, bootstrap of medians, of means."""

DESIGNS: Figures = {
    "steady": (4.8, 4.9, 4.9),
    "drift 2% per 20 trials": (18.7, 4.0, 5.0),
    "drift 5% per 20 trials": (72.5, 1.5, 5.1),
    "drift 10% per 20 trials": (99.7, 0.0, 5.1),
    "random walk 0.5%/trial": (21.6, 3.4, 5.1),
    "random walk 1%/trial": (41.7, 1.9, 5.3),
    "AR1 .8 sd 3%": (33.9, 1.5, 5.1),
    "one step +5% in the first 20": (52.2, 1.2, 4.9),
    "warm-up 3 trials +20%": (13.3, 0.0, 0.8),
    "period 2, ±1.5%": (1.4, 9.0, 5.1),
    "sine 3%, 20 trials a cycle": (49.0, 0.6, 5.0),
}
"""False findings in %: one test after the other; random pairs by Welch; random pairs by the paired ratio."""

CLEAN_OUTLIERS: Figures = {
    "z above 2": (24.0, 62.1, 82.0, 99.2, 21.1, 0.0),
    "ESD on logarithms": (8.8, 6.9, 6.7, 85.7, 73.9, 98.8),
}
"""In %: clean normal series of 10, 20, 30 trials with a flag; then what is found of 1 of +30 %, 2 of +30 %, 3 of +50 %
in ten."""

KENDALL: Figures = {
    "normal cv5": (4.7, 4.5, 4.8),
    "lognormal cv30": (4.7, 4.5, 4.8),
    "AR1 .5 cv5": (17.4, 21.1, 23.5),
    "rises by 10 %, cv5": (36.8, 67.5, 85.5),
}
"""Kendall's test at 5 % finds a trend, in %, by 10, 20, 30 trials."""

UNADJUSTED: Figures = {"5": (23.0, 18.0), "20": (64.0, 42.0), "100": (99.0, 77.0)}
"""Chance of at least one false finding among so many tests, in %: independent, and correlated by .5."""


def beside(text: str, figures: Figures, key: str, place: int) -> str:
    """Our figure, and the study's in brackets where it looked at that case."""
    found = figures.get(key)
    return text if found is None else f"{text} ({found[place]:.1f})"
