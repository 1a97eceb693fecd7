"""The figure of a profile, or of two: cumulative time of reads and writes against run time, how busy its parts were."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from etude.figures.data import Axis, Curve, Figure, Panel, Point
from etude.figures.style import COLOURS
from etude.iotrace.profile import BOTH, READS, WRITES, Profile, cumulative_s
from etude.units.formatting import scale_of

POINTS = 1000
"""Points of a curve."""
TITLE = 40
"""Characters of a title that fit."""
LOOKS = ((0, 1, 2), (len(COLOURS) + 5, len(COLOURS) + 4, len(COLOURS) + 6))
"""Places in the palette: of reads, of writes and of the share, of the first and the second trace."""
NOTES = ("of threads side by side each counts: the time in calls may be more than that of the run",)


def figure_of(profile: Profile) -> Figure:
    """Two panels: time in reads and in writes up to each moment of the run, and the share of time in any call."""
    return _figure([("", profile)], " ".join(profile.trace.header["argv"]))


def figure_beside(a: Profile, b: Profile, names: tuple[str, str], title: str) -> Figure:
    """The same of two: B's curves are broken, and paler, so that A's can be seen where they are the same."""
    return _figure(list(zip(names, (a, b), strict=True)), title)


def _figure(profiles: Sequence[tuple[str, Profile]], title: str) -> Figure:
    run_s = max(profile.run_s for _, profile in profiles)
    scale, unit = scale_of(run_s, "s")
    curves, shares = [], []
    for (name, profile), (read, write, share) in zip(profiles, LOOKS, strict=False):
        prefix = f"{name} " if name else ""
        curves += [_curve(profile, f"{prefix}read", (*READS, *BOTH), read)]
        curves += [_curve(profile, f"{prefix}write", WRITES, write)]
        shares.append(_share(profile, scale, share))
    top = max((point.y for curve in curves for point in curve.points), default=0.0)
    y_scale, y_unit = scale_of(top, "s")
    return Figure(
        Axis(f"run time, {unit}", low=0.0, high=run_s / scale),
        (
            Panel(
                Axis(f"cumulative time, {y_unit}", low=0.0),
                tuple(_rescaled(curve, scale, y_scale) for curve in curves),
            ),
            Panel(Axis("share in calls", low=0.0, high=1.0), tuple(shares), height=0.5),
        ),
        title=title if len(title) <= TITLE else f"{title[: TITLE - 1]}…",
        key="top left",
        notes=NOTES,
        kind="profile",
    )


def _curve(profile: Profile, name: str, among: Sequence[str], colour: int) -> Curve:
    """A curve in seconds."""
    trace = profile.trace
    codes = [code for code, each in enumerate(trace.names) if each in among]
    which = np.isin(trace.call, codes)
    at = np.linspace(0, profile.run_s * 1e9, POINTS + 1).astype(np.int64)
    sums = cumulative_s(trace.start_ns[which], trace.duration_ns[which], at)
    points = (Point(x, y) for x, y in zip((at * 1e-9).tolist(), sums.tolist(), strict=True))
    return Curve(name, tuple(points), colour, "line")


def _rescaled(curve: Curve, x_scale: float, y_scale: float) -> Curve:
    points = tuple(Point(point.x / x_scale, point.y / y_scale) for point in curve.points)
    return Curve(curve.name, points, curve.colour, curve.look)


def _share(profile: Profile, scale: float, colour: int) -> Curve:
    over = profile.over_time
    lengths = np.diff(over.edges_s)
    shares = np.divide(over.in_calls_s, lengths, out=np.zeros_like(lengths), where=lengths > 0).clip(0, 1)
    steps = [
        Point(float(x) / scale, float(y))
        for left, right, y in zip(over.edges_s[:-1], over.edges_s[1:], shares, strict=True)
        for x in (left, right)
    ]
    return Curve("", tuple(steps), colour, "line")
