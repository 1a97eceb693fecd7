"""Bars: one group a series, one bar a metric; user time may stand on system time."""

from __future__ import annotations

from collections.abc import Sequence

from etude.errors import InputError, UsageError
from etude.figures.axes import MOST_SLANTED, Unit, threshold_lines, turned, unit_for, y_axis
from etude.figures.data import Axis, Bars, Box, Figure, Panel, Point, check_count, label, labels
from etude.figures.plot_options import PlotOptions
from etude.figures.sources import (
    Sample,
    bars_note,
    chosen_metrics,
    shown_metric,
    shown_metrics,
    single_metric,
    summary_point,
)

MOST_GROUPS = 60
APART = 6.0
"""Error bars of two stacked parts stand this share of the bar's width off its middle, to either side."""

Group = tuple[str, Sequence[Sample]]


def bars(samples: Sequence[Sample], wish: PlotOptions) -> Figure:
    """A group for each test, a bar for each metric."""
    return bars_of([(sample.name, [sample]) for sample in samples], wish)


def bars_of(groups: Sequence[Group], wish: PlotOptions) -> Figure:
    """A group of bars for each name: of each metric of its one sample."""
    samples = [sample for _, members in groups for sample in members]
    metrics = chosen_metrics(samples, wish)
    units = {sample.unit(metric) for sample in samples for metric in metrics if metric in sample.metrics()}
    if len(units) > 1:
        raise UsageError(
            f"metrics in {' and '.join(sorted(units))} do not fit on one axis; draw a figure of each"
        )
    stacks = _stacks(metrics, wish)
    points = {
        (group, metric): summary_point(members[0], metric, wish)
        for group, (_, members) in enumerate(groups)
        for metric in metrics
    }
    text = shown_metric(metrics[0], wish) if len(metrics) == 1 else "time" if units == {"s"} else "value"
    named = shown_metrics(metrics, wish)
    return _figure([name for name, _ in groups], stacks, points, named, text, units.pop(), wish, "bars")


def before_after(files: Sequence[tuple[str, Sequence[Sample]]], wish: PlotOptions) -> Figure:
    """Two or more results side by side: a group for each test that any has, a bar for each file.

    Raises:
        UsageError: there is one file only, or they have no test in common.
    """
    if len(files) < 2:
        raise UsageError("before-after shows two results beside each other; name two files")
    everything = [sample for _, members in files for sample in members]
    metric = single_metric(everything, wish, "before-after")
    by_file = [{s.name if s.series is None else s.series.test: s for s in members} for _, members in files]
    tests = list(dict.fromkeys(name for members in by_file for name in members))
    if not any(sum(test in members for members in by_file) > 1 for test in tests):
        if not all(len(members) == 1 for members in by_file):
            raise UsageError("before-after: the files have no test of one name in common")
        tests, by_file = [""], [{"": next(iter(m.values()))} for m in by_file]
    keys = [str(n) for n in range(len(files))]
    points: dict[tuple[int, str], Point | None] = {
        (group, key): summary_point(members[test], metric, wish) if test in members else None
        for group, test in enumerate(tests)
        for key, members in zip(keys, by_file, strict=True)
    }
    shown = labels(name for name, _ in files)
    named = {key: shown[name] for key, (name, _) in zip(keys, files, strict=True)}
    base = everything[0].unit(metric)
    stacks = [[key] for key in keys]
    return _figure(tests, stacks, points, named, shown_metric(metric, wish), base, wish, "before-after")


def _stacks(metrics: Sequence[str], wish: PlotOptions) -> list[list[str]]:
    """Groups of metrics that are stacked, from below: user and system, at the place of the first of them."""
    if not (wish.stack and {"user", "system"} <= set(metrics)):
        return [[metric] for metric in metrics]
    found: list[list[str]] = []
    for metric in metrics:
        if metric not in ("user", "system"):
            found.append([metric])
        elif ["system", "user"] not in found:
            found.append(["system", "user"])
    return found


def _figure(
    groups: Sequence[str],
    stacks: Sequence[Sequence[str]],
    points: dict[tuple[int, str], Point | None],
    named: dict[str, str],
    text: str,
    base: str,
    wish: PlotOptions,
    kind: str,
) -> Figure:
    if not any(points.values()):
        raise InputError("nothing to plot: no included trial has a value of that metric")
    if "y" in wish.log:
        raise UsageError(
            "--log y: bars begin at zero, which a logarithmic axis does not have; use --kind lines"
        )
    check_count(len(named), "bars in each group")
    if len(groups) > MOST_GROUPS:
        raise UsageError(
            f"{len(groups)} groups of bars cannot be read; choose at most {MOST_GROUPS}, or --kind lines"
        )
    unit = unit_for((p.high or p.y for p in points.values() if p), base, wish)
    centres, boxes = _boxes(len(groups), stacks, points, unit, wish)
    layers = tuple(
        Bars(named[metric], tuple(found), colour)
        for colour, (metric, found) in enumerate(boxes.items())
        if found
    )
    shown = labels(groups, 24 if len(groups) > MOST_SLANTED else 32)
    names = [shown[name] for name in groups]
    edge = wish.bar_width * (0.5 + wish.group_gap / 2)
    first = min(box.x for layer in layers for box in layer.boxes)
    last = max(box.x for layer in layers for box in layer.boxes)
    axis = Axis(
        label(wish.x_label or ""),
        "linear",
        tuple(zip(centres, names, strict=True)),
        turned(names) if wish.rotate is None else wish.rotate,
        first - edge,
        last + edge,
    )
    lost = [f"{name}: has no value" for n, name in enumerate(names) if not any(points[n, m] for m in boxes)]
    return Figure(
        axis,
        (Panel(y_axis(text, unit, wish), (*layers, *threshold_lines(wish.thresholds, unit, "y"))),),
        label(wish.title, 120),
        ("above" if wish.key == "best" else wish.key) if len(layers) > 1 else "off",
        tuple(lost + bars_note(wish, [box for layer in layers for box in layer.boxes])),
        kind,
    )


def _boxes(
    groups: int,
    stacks: Sequence[Sequence[str]],
    points: dict[tuple[int, str], Point | None],
    unit: Unit,
    wish: PlotOptions,
) -> tuple[list[float], dict[str, list[Box]]]:
    """The artificial x axis: the middle of each group, and the boxes of each metric."""
    width, step = wish.bar_width, wish.bar_width * (1 + wish.bar_gap)
    whole = step * (len(stacks) - 1) + width * (1 + wish.group_gap)
    boxes: dict[str, list[Box]] = {metric: [] for stack in stacks for metric in stack}
    centres = []
    for group in range(groups):
        start = group * whole
        centres.append(start + step * (len(stacks) - 1) / 2)
        for place, stack in enumerate(stacks):
            bottom = 0.0
            for level, metric in enumerate(stack):
                point = points[group, metric]
                if point is None:
                    continue
                found = point.divided(unit.divisor)
                x = start + place * step
                aside = (2 * level - 1) * width / APART if len(stack) > 1 else 0.0
                low, high = (None if v is None else bottom + v for v in (found.low, found.high))
                boxes[metric].append(Box(x, width, bottom, bottom + found.y, low, high, x + aside))
                bottom += found.y
    return centres, boxes
