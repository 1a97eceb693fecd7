"""Figures of replays: their times beside the recorded ones, and how late their calls began."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from etude.analysis.replays import LATE_S, TimePair
from etude.figures.data import Axis, Bars, Box, Curve, Figure, Line, Look, Panel, Point
from etude.results.engine_reports import Lateness
from etude.units.formatting import scale_of

WIDTH = 0.36
"""Width of a bar; pairs are 1 apart."""


def recorded_and_replayed(pairs: Sequence[TimePair]) -> Figure:
    """Pairs of bars: each recorded time, and the mean of the replays with their range."""
    known = [each.original_s or 0.0 for each in pairs]
    divisor, unit = scale_of(max(*known, *(s for each in pairs for s in each.replayed_s)), "s")
    recorded = tuple(
        Box(place - WIDTH / 2, WIDTH, 0.0, each.original_s / divisor)
        for place, each in enumerate(pairs)
        if each.original_s
    )
    replayed = tuple(_replayed(place, each, divisor) for place, each in enumerate(pairs))
    several = len(pairs[0].replayed_s) > 1
    notes = ["bars: means of the trials, with the least and the greatest"] if several else []
    notes += ["recorded times are lower bounds"] if any(each.lower_bound for each in pairs) else []
    ticks = tuple((float(place), each.what) for place, each in enumerate(pairs))
    x = Axis("", ticks=ticks, low=-0.6, high=len(pairs) - 0.4)
    panel = Panel(
        Axis(f"time ({unit})", low=0.0), (Bars("recorded", recorded, 7), Bars("replayed", replayed, 0))
    )
    return Figure(x, (panel,), "", "above", tuple(notes), "recorded-and-replayed")


def _replayed(place: int, pair: TimePair, divisor: float) -> Box:
    ends = (min(pair.replayed_s), max(pair.replayed_s)) if len(pair.replayed_s) > 1 else (None, None)
    low, high = (None if end is None else end / divisor for end in ends)
    return Box(place + WIDTH / 2, WIDTH, 0.0, fmean(pair.replayed_s) / divisor, low, high)


def lateness(late: Mapping[int, Lateness]) -> Figure:
    """Lateness of the calls' starts on a log axis: median, 99 % and largest of each trial, and the bound of 99 %."""
    divisor, unit = 1e-6, "µs"
    bound = Line(LATE_S / divisor, "bound of 99 %", side="left")
    y = Axis(f"late by ({unit})", "log")
    if len(late) == 1:
        (each,) = late.values()
        points = [
            Point(float(x), max(s, 1e-9) / divisor) for x, s in enumerate((each.median, each.p99, each.max))
        ]
        x = Axis("share of calls", ticks=((0.0, "half"), (1.0, "99 %"), (2.0, "all")), low=-0.5, high=2.5)
        return Figure(x, (Panel(y, (Curve("", tuple(points), 0), bound)),), "", "off", (), "lateness")
    kinds: tuple[tuple[str, Look, list[float]], ...] = (
        ("median", "filled", [each.median for each in late.values()]),
        ("99 %", "both", [each.p99 for each in late.values()]),
        ("largest", "hollow", [each.max for each in late.values()]),
    )
    curves = [
        Curve(
            name,
            tuple(Point(float(trial), max(s, 1e-9) / divisor) for trial, s in zip(late, values, strict=True)),
            number,
            look,
        )
        for number, (name, look, values) in enumerate(kinds)
    ]
    x = Axis("trial", ticks=tuple((float(t), str(t)) for t in late) if len(late) <= 20 else None)
    return Figure(x, (Panel(y, (*curves, bound)),), "", "above", (), "lateness")
