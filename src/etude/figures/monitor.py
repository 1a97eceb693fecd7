"""The monitor's series of one session over time, below its trials."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from etude.analysis.interference import others_rate
from etude.analysis.subject import Subject
from etude.analysis.warnings import DataWarning
from etude.errors import InputError
from etude.figures.axes import Unit, unit_for, with_unit
from etude.figures.data import (
    GREY,
    Axis,
    Band,
    Bars,
    Box,
    Curve,
    Figure,
    Layer,
    Panel,
    Point,
    Shape,
    label,
    labels,
)
from etude.figures.plot_options import PlotOptions
from etude.figures.timeline import ALARM
from etude.results.monitor import Floats, Monitor
from etude.results.series import Series

MOST_POINTS = 600
"""Readings of a panel; of more, neighbours are joined: curves show the highest of them, areas their mean."""
MOST_NAMED = 6
"""Outliers that have their number above them."""
MARGIN = 0.02
"""Share of the time axis before the first reading and after the last; a trial in close-up has more."""
AROUND = 3.0
"""Times its length that is shown around one trial, and at least so many readings."""

WIDTH_IN = 6.0
"""Wider than a column of a paper: time needs room."""
HIGH, MIDDLE, LOW, LEAST = 1.5, 1.2, 0.8, 0.35
"""Heights of panels, inches: trials, CPUs, all others, kernel messages."""

MODES: Sequence[tuple[str, tuple[str, ...], int]] = (
    ("user", ("cpu.user", "cpu.nice"), 5),
    ("system", ("cpu.system", "cpu.irq", "cpu.softirq"), 4),
    ("iowait", ("cpu.iowait",), 3),
    ("steal", ("cpu.steal",), 6),
)
"""Modes of the CPUs in the order of stacking: name, columns, colour."""


@dataclass(frozen=True, eq=False)
class MonitorView:
    """A stretch of one session's readings, as it is drawn."""

    monitor: Monitor
    low_ns: int
    high_ns: int
    divisor_s: float
    unit: str

    def at(self, ns: int | float) -> float:
        """Place on the axis of an instant of the monotonic clock."""
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
    warnings: Sequence[DataWarning] = (),
    *,
    close: tuple[str, int] | None = None,
    title: str = "",
) -> Figure:
    """One session, or the time around one trial of it: `close`, a test and the number of a trial.

    warnings: those that name outliers.

    Raises:
        InputError: there is no reading, or that trial was not made in this session.
    """
    if not monitor.samples:
        raise InputError(f"{monitor.path}: nothing to plot: it holds no reading")
    seen = _seen(subject, monitor, sitting, close)
    odd = {(w.test, trial) for w in warnings if w.kind == "outliers" for trial in w.trials}
    shades, notes = _shades(subject, seen, sitting, odd, close)
    panels = [_trials(subject, seen, sitting, odd, shades)]
    panels.append(_cpus(subject, seen, sitting, shades))
    panels += [panel for lane in _lanes(seen) if (panel := _lane(lane, seen, shades)) is not None]
    if ticks := _messages(seen):
        panels.append(Panel(Axis("kernel", ticks=(), low=0.0, high=1.1), (*_plain(shades), ticks), LEAST))
    if _step(seen) > 1:
        notes.append(f"{_step(seen)} readings each are joined: curves show the highest, areas the mean")
    axis = Axis(
        f"time since the session began ({seen.unit})", low=seen.at(seen.low_ns), high=seen.at(seen.high_ns)
    )
    return Figure(axis, tuple(panels), label(title, 120), "beside", tuple(notes), "monitor")


def height_of(figure: Figure) -> float:
    """Inches that suit its panels."""
    return 0.6 + sum(panel.height + 0.08 for panel in figure.panels)


def _seen(subject: Subject, monitor: Monitor, sitting: int, close: tuple[str, int] | None) -> MonitorView:
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
    return MonitorView(monitor, low - margin, high + margin, divisor, unit)


def _each(
    subject: Subject, monitor: Monitor, sitting: int
) -> Iterator[tuple[str, int, tuple[int, int], float, bool, int]]:
    """The trials of a session: test, number, when, elapsed in s, whether kept, and the test's colour."""
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
    subject: Subject,
    seen: MonitorView,
    sitting: int,
    odd: set[tuple[str, int]],
    close: tuple[str, int] | None,
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
    subject: Subject, seen: MonitorView, sitting: int, odd: set[tuple[str, int]], shades: Sequence[Band]
) -> Panel:
    """Each trial as a bar: as wide and as high as it lasted."""
    trials = [
        each
        for each in _each(subject, seen.monitor, sitting)
        if each[2][1] > seen.low_ns and each[2][0] < seen.high_ns
    ]
    unit = unit_for([elapsed for *_, elapsed, _, _ in trials if np.isfinite(elapsed)], "s", PlotOptions())
    least = (seen.at(seen.high_ns) - seen.at(seen.low_ns)) / 1500
    layers: list[Layer] = list(shades)
    names = dict.fromkeys((test, colour) for test, *_, colour in trials)
    shown = labels(test for test, _ in names) | {"excluded": "excluded"}
    for name, hue in (*names, ("excluded", GREY)):
        boxes = tuple(
            _box(seen, span, elapsed / unit.divisor, least)
            for test, _, span, elapsed, kept, _ in trials
            if (test == name if kept and hue != GREY else not kept and hue == GREY)
        )
        if boxes:
            layers.append(Bars(shown[name], boxes, hue, pale=True))
    far = tuple(
        Point(seen.at(sum(span) / 2), elapsed / unit.divisor)
        for test, number, span, elapsed, _, _ in trials
        if (test, number) in odd
    )
    if far:
        layers.append(Curve("outlier", far, ALARM, "hollow"))
    return Panel(Axis(with_unit("elapsed", unit), low=0.0), tuple(layers), HIGH)


def _box(seen: MonitorView, span: tuple[int, int], height: float, least: float) -> Box:
    low, high = seen.at(span[0]), seen.at(span[1])
    return Box((low + high) / 2, max(high - low, least), 0.0, height)


def _cpus(subject: Subject, seen: MonitorView, sitting: int, shades: Sequence[Band]) -> Panel:
    """CPU modes, stacked, and the part that was not the trials'."""
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
    everything = [*subject.tests, *subject.twins, *([subject.shell] if subject.shell else [])]
    others = _highest(seen, others_rate(monitor, everything, sitting))
    layers.append(Curve("others", _steps(edges, others), ALARM, "steps"))
    most = max(float(np.nanmax(each, initial=0.0)) for each in (below, others))
    whole = float(monitor.cpus) if 2 * most >= monitor.cpus else None
    return Panel(
        Axis("CPUs", low=0.0, high=None if whole is None else max(whole, most)), tuple(layers), MIDDLE
    )


def _outline(edges: Floats, low: Floats, high: Floats) -> tuple[tuple[float, float], ...]:
    """Along the top in steps, and back along the bottom."""
    x = np.repeat(edges, 2)[1:-1]
    top, bottom = np.repeat(high, 2), np.repeat(low, 2)
    there = zip(x.tolist(), top.tolist(), strict=True)
    back = zip(x[::-1].tolist(), bottom[::-1].tolist(), strict=True)
    return (*there, *back)


def _lanes(seen: MonitorView) -> Iterator[Lane]:
    m = seen.monitor
    pressed = {what: f"pressure.{what}.some" for what in ("cpu", "memory", "io")}
    yield Lane("pressure (%)", "", {what: 100 * _one(m, name) for what, name in pressed.items()}, 1.0)
    yield Lane("disk", "B/s", _both(m, "disk", "read", "written"), 2.0**17)
    swapped = {way: _one(m, f"paging.swapped_{way}") for way in ("in", "out")}
    yield Lane("swap (pages/s)", "", {f"swapped {way}": rate for way, rate in swapped.items()}, 1.0)
    free = {name: _one(m, f"memory.{name}") for name in ("available", "dirty")}
    if _moves(free["available"][seen.places], 0.02):
        yield Lane("memory", "B", free, 2.0**24)
    yield Lane("network", "B/s", _both(m, "net", "received", "sent", without="net.lo"), 2.0**14)
    clocks = [name for name in m.names("frequency") if name not in ("frequency.min", "frequency.max")]
    clock = _combined(m.samples, [m.rate(each) for each in clocks], np.nanmean) / 1e9
    if _moves(clock[seen.places], 0.02):
        yield Lane("clock (GHz)", "", {"": clock}, 0.0, None)
    heat = _combined(m.samples, [m.rate(each) for each in m.names("temperature")], np.nanmax)
    if _moves(heat[seen.places], 0.05):
        yield Lane("hottest (°C)", "", {"": heat}, 0.0, None)


def _moves(values: Floats, share: float) -> bool:
    """True if the level changes by more than that share of its highest value."""
    known = values[np.isfinite(values)]
    return bool(known.size) and float(np.ptp(known)) > share * float(known.max())


def _combined(samples: int, rates: Sequence[Floats], how: Callable[..., Floats]) -> Floats:
    table = np.array(rates, dtype=np.float64).reshape(len(rates), samples)
    known = np.isfinite(table).any(axis=0)
    found = np.full(known.shape, np.nan)
    if known.any():
        found[known] = how(table[:, known], axis=0)
    return found


def _both(monitor: Monitor, group: str, *ends: str, without: str = "") -> dict[str, Floats]:
    found = {}
    for end in ends:
        names = [name for name in monitor.names(group, f".{end}") if name != f"{without}.{end}"]
        found[end] = _combined(monitor.samples, [monitor.rate(name) for name in names], np.nansum)
    return found


def _one(monitor: Monitor, name: str) -> Floats:
    return monitor.rate(name) if name in monitor.columns else np.full(monitor.samples, np.nan)


def _lane(lane: Lane, seen: MonitorView, shades: Sequence[Band]) -> Panel | None:
    edges = _edges(seen)
    curves = {name: _highest(seen, rate) for name, rate in lane.curves.items()}
    curves = {name: each for name, each in curves.items() if np.isfinite(each).any()}
    highest = [float(np.nanmax(each)) for each in curves.values()]
    if not curves or max(highest) < lane.least:
        return None
    unit = unit_for(highest, lane.unit, PlotOptions()) if lane.unit else Unit("1")
    layers: list[Layer] = list(_plain(shades))
    for colour, (name, each) in enumerate(curves.items()):
        if float(np.nanmax(each)) >= lane.least or len(curves) == 1:
            layers.append(Curve(name, _steps(edges, each / unit.divisor), colour + 2, "steps"))
    return Panel(Axis(with_unit(lane.title, unit), low=lane.low), tuple(layers), LOW)


def _steps(edges: Floats, values: Floats) -> tuple[Point, ...]:
    """Each value from its edge to the next, the last one, too; what is not known is passed over."""
    ends = np.append(values, values[-1:])
    return tuple(Point(float(x), float(y)) for x, y in zip(edges, ends, strict=True) if np.isfinite(y))


def _step(seen: MonitorView) -> int:
    count = int(seen.places.stop - seen.places.start)
    return max(1, -(-count // MOST_POINTS))


def _edges(seen: MonitorView) -> Floats:
    """Begin of each drawn reading, and the end of the last."""
    places, step = seen.places, _step(seen)
    edges = seen.monitor.edges_ns[places.start : places.stop + 1]
    chosen = np.append(edges[:-1:step], edges[-1])
    return np.array([seen.at(int(edge)) for edge in chosen])


def _highest(seen: MonitorView, rate: Floats) -> Floats:
    rate = rate[seen.places]
    found: Floats = np.fmax.reduceat(rate, np.arange(0, rate.size, _step(seen)))
    return found


def _mean(seen: MonitorView, rate: Floats) -> Floats:
    rate = rate[seen.places]
    starts = np.arange(0, rate.size, _step(seen))
    found: Floats = np.add.reduceat(rate, starts) / np.diff(np.append(starts, rate.size))
    return found


def _messages(seen: MonitorView) -> Bars | None:
    """A tick each, the higher the worse."""
    width = (seen.at(seen.high_ns) - seen.at(seen.low_ns)) / 400
    boxes = tuple(
        Box(seen.at(each.ns), width, 0.0, (8 - each.level) / 8)
        for each in seen.monitor.messages
        if seen.low_ns <= each.ns <= seen.high_ns
    )
    return Bars("", boxes, 7, pale=True) if boxes else None
