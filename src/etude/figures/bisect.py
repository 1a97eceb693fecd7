"""Figure of a bisection: the posterior over the commits, and the measured levels."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import stdtrit

from etude.bisect.posterior import Posterior
from etude.figures.data import GREY, Axis, Band, Curve, Figure, Layer, Panel, Point

WIDE = 40
"""Commits around the credible range that are drawn, at least."""


def bisect_figure(
    posterior: Posterior, measured: list[int], names: list[str], around: tuple[int, int]
) -> Figure:
    """Two panels over the position of a commit: probability of the step, and level relative to GOOD with 95 %
    intervals.

    measured: positions of the commits with trials, rising. names: short names of all commits. around: first and last
    commit of the range in which the step is.
    """
    half = float(stdtrit(posterior.degrees, 0.975))
    levels = tuple(
        Point(
            float(place),
            100.0 * math.expm1(level),
            100.0 * math.expm1(level - half * error),
            100.0 * math.expm1(level + half * error),
        )
        for place, level, error in zip(measured, posterior.levels, posterior.level_errors, strict=True)
    )
    shares = tuple(
        Point(float(place), 100.0 * float(share)) for place, share in enumerate(posterior.commits) if place
    )
    band: list[Layer] = [Band(around[0] - 0.5, around[1] + 0.5, "")] if around[0] else []
    likely = sorted(int(place) for place in np.argsort(-posterior.commits)[:1])
    shown = sorted({0, len(names) - 1, *likely})
    ticks = tuple((float(place), names[place]) for place in shown)
    return Figure(
        Axis("commit, from GOOD to BAD", ticks=ticks),
        (
            Panel(Axis("probability (%)"), (*band, Curve("step at this commit", shares, 0, "line")), 1.0),
            Panel(Axis("level against GOOD (%)"), (*band, Curve("measured", levels, GREY, "dots")), 1.0),
        ),
        key="none",
        notes=("error bars: 95 % interval of each level, against GOOD",),
        kind="bisect",
    )
