"""The figure of a profile: cumulative time of reads and of writes against the run's, and how busy its parts were."""

from __future__ import annotations

import numpy as np

from etude.figures.data import Axis, Curve, Figure, Panel, Point
from etude.iotrace.calls import BOTH, READS, WRITES
from etude.iotrace.profile import Profile
from etude.iotrace.stretches import cumulative_s
from etude.report.text import scale_of

POINTS = 1000
"""Of a curve."""
TITLE = 40
"""Characters of a title that fit."""


def figure_of(profile: Profile) -> Figure:
    """Two panels: time in reads and in writes up to each moment of the run, and the share of time in any call."""
    scale, unit = scale_of(profile.run_s, "s")
    command = " ".join(profile.trace.header["argv"])
    notes = ("of threads side by side each counts: the time in calls may be more than that of the run",)
    curves = tuple(_curve(profile, name, number, scale) for number, name in enumerate(("read", "write")))
    top = max((point.y for curve in curves for point in curve.points), default=0.0) * scale
    y_scale, y_unit = scale_of(top, "s")
    curves = tuple(_rescaled(curve, scale / y_scale) for curve in curves)
    return Figure(
        Axis(f"run time, {unit}", low=0.0, high=profile.run_s / scale),
        (
            Panel(Axis(f"cumulative time, {y_unit}", low=0.0), curves),
            Panel(Axis("share in calls", low=0.0, high=1.0), (_share(profile, scale),), height=0.5),
        ),
        title=command if len(command) <= TITLE else f"{command[: TITLE - 1]}…",
        key="top left",
        notes=notes,
        kind="profile",
    )


def _curve(profile: Profile, name: str, number: int, scale: float) -> Curve:
    trace = profile.trace
    among = (*READS, *BOTH) if name == "read" else WRITES
    codes = [code for code, each in enumerate(trace.names) if each in among]
    which = np.isin(trace.call, codes)
    at = np.linspace(0, profile.run_s * 1e9, POINTS + 1).astype(np.int64)
    sums = cumulative_s(trace.start_ns[which], trace.duration_ns[which], at)
    places = (at * 1e-9 / scale).tolist()
    points = (Point(x, y / scale) for x, y in zip(places, sums.tolist(), strict=True))
    return Curve(name, tuple(points), number, "line")


def _rescaled(curve: Curve, factor: float) -> Curve:
    points = tuple(Point(point.x, point.y * factor) for point in curve.points)
    return Curve(curve.name, points, curve.colour, curve.look)


def _share(profile: Profile, scale: float) -> Curve:
    over = profile.over_time
    lengths = np.diff(over.edges_s)
    shares = np.divide(over.in_calls_s, lengths, out=np.zeros_like(lengths), where=lengths > 0).clip(0, 1)
    steps = [
        Point(float(x) / scale, float(y))
        for left, right, y in zip(over.edges_s[:-1], over.edges_s[1:], shares, strict=True)
        for x in (left, right)
    ]
    return Curve("", tuple(steps), 2, "line")
