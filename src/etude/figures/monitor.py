"""What went on beside the trials of one sitting: they above, the monitor's series below, over one time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from etude.errors import InputError
from etude.figures.common import Unit, unit_for, with_unit
from etude.figures.data import GREY, Axis, Band, Bars, Box, Curve, Figure, Layer, Panel, Point, Shape
from etude.figures.timeline import ALARM
from etude.figures.wish import Wish
from etude.figures.words import label
from etude.report.subject import Subject
from etude.report.warnings import Warning
from etude.results.monitor import Floats, Monitor
from etude.results.series import Series

MOST_POINTS = 600
"""Readings of a panel; of more, neighbours are joined: curves show the highest of them, areas their mean."""
MOST_NAMED = 6
"""Outliers that have their number above them."""
MARGIN = 0.02
"""Of the time axis, before the first reading and after the last; a trial seen closely has more."""
AROUND = 3.0
"""Times its length that is shown around one trial, and at least so many readings."""

MODES: Sequence[tuple[str, tuple[str, ...], int]] = (
    ("user", ("cpu.user", "cpu.nice"), 0),
    ("system", ("cpu.system", "cpu.irq", "cpu.softirq"), 1),
    ("iowait", ("cpu.iowait",), 3),
    ("stolen", ("cpu.steal",), 6),
)
"""What CPUs do, as it is stacked: name, columns, colour."""


@dataclass(frozen=True, eq=False)
class Seen:
    """A stretch of one sitting's readings, as it is drawn."""

    monitor: Monitor
    low_ns: int
    high_ns: int
    divisor_s: float
    unit: str

    def at(self, ns: int | float) -> float:
        """Where an instant of the monotonic clock is on the axis."""
        return float(ns - int(self.monitor.edges_ns[0])) / 1e9 / self.divisor_s

    @property
    def places(self) -> slice:
        """The readings of the stretch."""
        edges = self.monitor.edges_ns
        first = max(0, int(np.searchsorted(edges, self.low_ns, "right")) - 1)
        return slice(first, min(self.monitor.samples, int(np.searchsorted(edges, self.high_ns, "left"))))


@dataclass(frozen=True)
class Lane:
    """A panel of curves: what it is called, its unit, its curves, and the least that makes it worth its place."""

    title: str
    unit: str
    curves: Mapping[str, Floats]
    least: float
    low: float | None = 0.0


def monitor_figure(
    subject: Subject,
    monitor: Monitor,
    sitting: int,
    warnings: Sequence[Warning] = (),
    *,
    close: tuple[str, int] | None = None,
    title: str = "",
) -> Figure:
    """One sitting, or the time around one trial of it: `close`, a test and the number of a trial.

    warnings: those that name outliers.

    Raises:
        InputError: there is no reading, or that trial was not made in this sitting.
    """
    if not monitor.samples:
        raise InputError(f"{monitor.path}: nothing to plot: it holds no reading")
    seen = _seen(subject, monitor, sitting, close)
    odd = {(w.test, trial) for w in warnings if w.kind == "outliers" for trial in w.trials}
    shades, notes = _shades(subject, seen, sitting, odd, close)
    panels = [_trials(subject, seen, sitting, odd, shades)]
    panels.append(_cpus(seen, shades))
    panels += [panel for lane in _lanes(seen) if (panel := _lane(lane, seen, shades)) is not None]
    if ticks := _messages(seen):
        panels.append(Panel(Axis("kernel", ticks=(), low=0.0, high=1.1), (*_plain(shades), ticks), 0.3))
    if _step(seen) > 1:
        notes.append(f"{_step(seen)} readings each are joined: curves show the highest, areas the mean")
    axis = Axis(
        f"time since the sitting began ({seen.unit})", low=seen.at(seen.low_ns), high=seen.at(seen.high_ns)
    )
    return Figure(axis, tuple(panels), label(title, 120), "above", tuple(notes), "monitor")


def _seen(subject: Subject, monitor: Monitor, sitting: int, close: tuple[str, int] | None) -> Seen:
    low, high = int(monitor.edges_ns[0]), int(monitor.edges_ns[-1])
    if close is not None:
        spans = [
            span for test, number, span, *_ in _each(subject, monitor, sitting) if (test, number) == close
        ]
        if not spans:
            raise InputError(
                f"{monitor.path}: trial {close[1]} of {close[0]} was not made beside these readings"
            )
        start, end = spans[0]
        around = round(max(AROUND * (end - start), 5e9 * monitor.every_s))
        low, high = max(low, start - around), min(high, end + around)
    margin = round(MARGIN * (high - low))
    seconds = (high - int(monitor.edges_ns[0])) / 1e9
    divisor, unit = next((s for s in ((3600.0, "h"), (60.0, "min")) if seconds >= 3 * s[0]), (1.0, "s"))
    if close is not None:
        divisor, unit = 1.0, "s"
    return Seen(monitor, low - margin, high + margin, divisor, unit)


def _each(
    subject: Subject, monitor: Monitor, sitting: int
) -> Iterator[tuple[str, int, tuple[int, int], float, bool, int]]:
    """The trials of a sitting: test, number, when, elapsed in s, whether kept, and the test's colour."""
    for colour, series in enumerate(subject.tests):
        for place in _places(series, monitor, sitting):
            assert series.spans is not None
            low, high = series.spans[place].tolist()
            elapsed = float(series.columns["elapsed"].values[place])
            yield (
                series.test,
                int(series.trials[place]),
                (low, high),
                elapsed,
                bool(series.kept[place]),
                colour,
            )


def _places(series: Series, monitor: Monitor, sitting: int) -> Iterator[int]:
    if series.spans is None or "elapsed" not in series.columns:
        return
    boots = series.labels.get("boot")
    for place in np.flatnonzero(series.spans[:, 0] >= 0).tolist():
        if series.sittings is not None and int(series.sittings[place]) != sitting:
            continue
        if not boots or boots[place] == monitor.boot_id:
            yield place


def _shades(
    subject: Subject, seen: Seen, sitting: int, odd: set[tuple[str, int]], close: tuple[str, int] | None
) -> tuple[list[Band], list[str]]:
    """The seconds of the outliers, through all panels."""
    marked = odd if close is None else odd | {close}
    found: list[Band] = []
    for test, number, (low, high), *_ in _each(subject, seen.monitor, sitting):
        if (test, number) in marked and high > seen.low_ns and low < seen.high_ns:
            name = f"trial {number}" if len(found) < MOST_NAMED else ""
            found.append(Band(seen.at(low), seen.at(high), name))
    return found, ["shaded: the time of trials that are outliers"] if found else []


def _plain(shades: Sequence[Band]) -> tuple[Band, ...]:
    return tuple(Band(shade.low, shade.high) for shade in shades)


def _trials(
    subject: Subject, seen: Seen, sitting: int, odd: set[tuple[str, int]], shades: Sequence[Band]
) -> Panel:
    """Each trial as a bar: as wide and as high as it lasted."""
    trials = [
        each
        for each in _each(subject, seen.monitor, sitting)
        if each[2][1] > seen.low_ns and each[2][0] < seen.high_ns
    ]
    unit = unit_for([elapsed for *_, elapsed, _, _ in trials if np.isfinite(elapsed)], "s", Wish())
    least = (seen.at(seen.high_ns) - seen.at(seen.low_ns)) / 1500
    layers: list[Layer] = list(shades)
    names = dict.fromkeys((test, colour) for test, *_, colour in trials)
    for name, hue in (*names, ("set aside", GREY)):
        boxes = tuple(
            _box(seen, span, elapsed / unit.divisor, least)
            for test, _, span, elapsed, kept, _ in trials
            if (test == name if kept and hue != GREY else not kept and hue == GREY)
        )
        if boxes:
            layers.append(Bars(label(name), boxes, hue, pale=True))
    far = tuple(
        Point(seen.at(sum(span) / 2), elapsed / unit.divisor)
        for test, number, span, elapsed, _, _ in trials
        if (test, number) in odd
    )
    if far:
        layers.append(Curve("outlier", far, ALARM, "hollow"))
    return Panel(Axis(with_unit("elapsed", unit), low=0.0), tuple(layers), 1.2)


def _box(seen: Seen, span: tuple[int, int], height: float, least: float) -> Box:
    low, high = seen.at(span[0]), seen.at(span[1])
    return Box((low + high) / 2, max(high - low, least), 0.0, height)


def _cpus(seen: Seen, shades: Sequence[Band]) -> Panel:
    """What the CPUs did, one mode upon the other."""
    monitor = seen.monitor
    edges = _edges(seen)
    below = np.zeros(len(edges) - 1)
    layers: list[Layer] = list(_plain(shades))
    for name, columns, colour in MODES:
        there = [monitor.rate(each) for each in columns if each in monitor.columns]
        if not there:
            continue
        rate = _mean(seen, np.nan_to_num(np.sum(there, axis=0)))
        if rate.size and float(rate.max()) >= 0.01:
            layers.append(Shape(name, _outline(edges, below, below + rate), colour))
            below = below + rate
    return Panel(Axis("CPUs", low=0.0), tuple(layers), 1.1)


def _outline(edges: Floats, low: Floats, high: Floats) -> tuple[tuple[float, float], ...]:
    """Along the top in steps, and back along the bottom."""
    x = np.repeat(edges, 2)[1:-1]
    top, bottom = np.repeat(high, 2), np.repeat(low, 2)
    there = zip(x.tolist(), top.tolist(), strict=True)
    back = zip(x[::-1].tolist(), bottom[::-1].tolist(), strict=True)
    return (*there, *back)


def _lanes(seen: Seen) -> Iterator[Lane]:
    """The panels below, each only where something happened in it."""
    m = seen.monitor
    pressure = {
        what: 100 * m.rate(f"pressure.{what}.some")
        for what in ("cpu", "memory", "io")
        if f"pressure.{what}.some" in m.columns
    }
    yield Lane("pressure (%)", "", pressure, 1.0)
    yield Lane(
        "disk", "B/s", {"read": _all(m, "disk", ".read"), "written": _all(m, "disk", ".written")}, 2.0**17
    )
    yield Lane(
        "swapped (pages/s)",
        "",
        {"swapped in": _one(m, "paging.swapped_in"), "swapped out": _one(m, "paging.swapped_out")},
        1.0,
    )
    free = {"available": _one(m, "memory.available"), "dirty": _one(m, "memory.dirty")}
    there = free["available"][seen.places]
    moved = float(np.ptp(there[np.isfinite(there)])) if np.isfinite(there).any() else 0.0
    if moved > 0.02 * float(np.nanmax(there, initial=1.0)):
        yield Lane("memory", "B", free, 0.0)
    loop = np.nan_to_num(_one(m, "net.lo.received"))
    yield Lane(
        "network",
        "B/s",
        {"received": _all(m, "net", ".received") - loop, "sent": _all(m, "net", ".sent") - loop},
        2.0**14,
    )
    clocks = [name for name in m.names("frequency") if name not in ("frequency.min", "frequency.max")]
    if clocks:
        yield Lane(
            "clock (GHz)", "", {"": np.mean([m.rate(each) for each in clocks], axis=0) / 1e9}, 0.0, None
        )
    heat = m.names("temperature")
    if heat:
        yield Lane("hottest (°C)", "", {"": np.max([m.rate(each) for each in heat], axis=0)}, 0.0, None)


def _one(monitor: Monitor, name: str) -> Floats:
    return monitor.rate(name) if name in monitor.columns else np.full(monitor.samples, np.nan)


def _all(monitor: Monitor, group: str, end: str) -> Floats:
    """The sum over devices; NaN where none has a value."""
    rates = [monitor.rate(name) for name in monitor.names(group, end)]
    if not rates:
        return np.full(monitor.samples, np.nan)
    known = np.isfinite(rates).any(axis=0)
    found: Floats = np.where(known, np.nansum(rates, axis=0), np.nan)
    return found


def _lane(lane: Lane, seen: Seen, shades: Sequence[Band]) -> Panel | None:
    edges = _edges(seen)
    curves = {name: _highest(seen, rate) for name, rate in lane.curves.items()}
    curves = {name: each for name, each in curves.items() if np.isfinite(each).any()}
    if not curves or max(float(np.nanmax(each)) for each in curves.values()) < lane.least:
        return None
    unit = (
        Unit("1")
        if not lane.unit
        else unit_for([float(np.nanmax(each)) for each in curves.values()], lane.unit, Wish())
    )
    layers: list[Layer] = list(_plain(shades))
    for colour, (name, each) in enumerate(curves.items()):
        if float(np.nanmax(each)) >= lane.least or len(curves) == 1:
            layers.append(Curve(name, _steps(edges, each / unit.divisor), colour + 2, "steps"))
    return Panel(Axis(with_unit(lane.title, unit), low=lane.low), tuple(layers))


def _steps(edges: Floats, values: Floats) -> tuple[Point, ...]:
    """Each value from its edge to the next, the last one, too; what is not known is passed over."""
    ends = np.append(values, values[-1:])
    return tuple(Point(float(x), float(y)) for x, y in zip(edges, ends, strict=True) if np.isfinite(y))


def _step(seen: Seen) -> int:
    count = int(seen.places.stop - seen.places.start)
    return max(1, -(-count // MOST_POINTS))


def _edges(seen: Seen) -> Floats:
    """Where the readings that are drawn begin, and the last one's end."""
    places, step = seen.places, _step(seen)
    edges = seen.monitor.edges_ns[places.start : places.stop + 1]
    chosen = np.append(edges[:-1:step], edges[-1])
    return np.array([seen.at(int(edge)) for edge in chosen])


def _highest(seen: Seen, rate: Floats) -> Floats:
    """Of so many readings as are joined."""
    rate = rate[seen.places]
    found: Floats = np.fmax.reduceat(rate, np.arange(0, rate.size, _step(seen)))
    return found


def _mean(seen: Seen, rate: Floats) -> Floats:
    """Of so many readings as are joined."""
    rate = rate[seen.places]
    starts = np.arange(0, rate.size, _step(seen))
    found: Floats = np.add.reduceat(rate, starts) / np.diff(np.append(starts, rate.size))
    return found


def _messages(seen: Seen) -> Bars | None:
    """A tick each, the higher the worse."""
    width = (seen.at(seen.high_ns) - seen.at(seen.low_ns)) / 400
    boxes = tuple(
        Box(seen.at(each.ns), width, 0.0, (8 - each.level) / 8)
        for each in seen.monitor.messages
        if seen.low_ns <= each.ns <= seen.high_ns
    )
    return Bars("kernel message", boxes, 7, pale=True) if boxes else None
