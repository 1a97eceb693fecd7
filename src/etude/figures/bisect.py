"""Figure of a bisection: the posterior over the commits, and the measured levels."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import stdtrit

from etude.bisect.posterior import Posterior
from etude.figures.data import GREY, Axis, Band, Curve, Figure, Layer, Panel, Point

NAME_LENGTH = 8
"""Characters of a commit's SHA below the axis."""
APART = 0.2
"""Least distance of two such names, as a share of the axis."""


def bisect_figure(
    posterior: Posterior, measured: list[int], names: list[str], around: tuple[int, int]
) -> Figure:
    """Two panels over the position of a commit: probability of the step, and level relative to GOOD with 95 %
    intervals.

    measured: positions of the commits with trials, rising. names: SHAs of all commits. around: first and last
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
    likely, last = int(np.argmax(posterior.commits)), len(names) - 1
    ends = [end for end in (0, last) if abs(end - likely) >= APART * last]
    ticks = tuple((float(place), names[place][:NAME_LENGTH]) for place in sorted({likely, *ends}))
    return Figure(
        Axis("commit, from GOOD to BAD", ticks=ticks),
        (
            Panel(
                Axis("probability (%)", low=0.0),
                (*band, Curve("step at this commit", shares, 0, "line")),
                1.0,
            ),
            Panel(Axis("level against GOOD (%)"), (*band, Curve("measured", levels, GREY, "dots")), 1.0),
        ),
        key="off",
        notes=("error bars: 95 % interval of each level, against GOOD",),
        kind="bisect",
    )
