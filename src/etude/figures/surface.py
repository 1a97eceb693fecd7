"""Surfaces and what they cost: Figures 2 and 8 to 10 of "Cutting Corners"."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from etude.errors import InputError
from etude.figures.data import (
    Axis,
    Band,
    Bars,
    Box,
    Curve,
    Field,
    Figure,
    Layer,
    Line,
    Panel,
    Point,
    Scale,
    Spot,
    State,
)
from etude.figures.labels import check_count, label

ISO_LINES = 6
"""About so many."""
LETTER = 0.022
"""The share of an axis that a letter takes: of ticks whose names would touch some are left out."""


@dataclass(frozen=True)
class Levels:
    """An axis of one factor. On a logarithmic one places are logs, so that it can be drawn in space, too."""

    name: str
    """Name with the unit."""
    texts: tuple[str, ...]
    numbers: tuple[float, ...] | None = None
    """None: words, which stand at equal distances."""
    log: bool = False

    @property
    def places(self) -> tuple[float, ...]:
        """Place of each level on the axis."""
        if self.numbers is None:
            return tuple(map(float, range(len(self.texts))))
        return tuple(map(math.log10, self.numbers)) if self.log else self.numbers

    def axis(self, share: float = 1.0) -> Axis:
        """The axis with the levels as ticks; share: its length as a share of a panel's width."""
        return Axis(label(self.name), "linear", _apart(self.places, self.texts, share))


@dataclass(frozen=True)
class KnownValue:
    """The known value of one cell, or of one line at one level."""

    x: int
    """Number of the level."""
    y: int
    """Level of the second axis; for lines their number."""
    value: float | None
    low: float | None = None
    high: float | None = None
    state: State = "measured"


@dataclass(frozen=True)
class Effect:
    """One factor: the response at each level as a ratio to the lowest, with its interval."""

    name: str
    levels: tuple[str, ...]
    ratios: tuple[tuple[float, float, float] | None, ...]


def contours(x: Levels, y: Levels, known: Sequence[KnownValue], response: str, title: str = "") -> Figure:
    """A map in colours with iso-lines, each cell marked by how it is known.

    Raises:
        InputError: no cell has a value.
    """
    field = _field(x, y, known, response, solid=False)
    return Figure(x.axis(0.75), (Panel(y.axis(), (field,)),), label(title, 90), key="off", kind="contours")


def solid(x: Levels, y: Levels, known: Sequence[KnownValue], response: str, title: str = "") -> Figure:
    """Figure 2: the response over two factors, in space.

    Raises:
        InputError: no cell has a value.
    """
    field = _field(x, y, known, response, solid=True)
    return Figure(x.axis(0.33), (Panel(y.axis(0.33), (field,)),), label(title, 90), key="off", kind="surface")


def over_levels(
    x: Levels, names: Sequence[str], known: Sequence[KnownValue], response: str, title: str = ""
) -> Figure:
    """The response over one factor, a line for each name; where its levels are words they stand beside each other.

    Raises:
        InputError: no cell has a value; UsageError: there are too many lines.
    """
    _check(known)
    check_count(len(names), "lines")
    layers: list[Layer] = []
    for number, name in enumerate(names):
        mine = sorted((k for k in known if k.y == number and k.value is not None), key=lambda k: k.x)
        aside = 0.0 if x.numbers is not None else 0.14 * (number - (len(names) - 1) / 2)
        points = {k: Point(x.places[k.x] + aside, k.value or 0.0, k.low, k.high) for k in mine}
        if x.numbers is not None and points:
            layers.append(Curve(label(name), tuple(points.values()), number, "line"))
            name = ""
        for states, look in (({"measured"}, "filled"), ({"predicted", "bounded"}, "hollow")):
            some = tuple(point for k, point in points.items() if k.state in states)
            if some:
                layers.append(Curve(label(name), some, number, look))  # type: ignore[arg-type]
                name = ""
    low = 0.0 if min(k.low or k.value or 0.0 for k in known if k.value is not None) >= 0 else None
    return Figure(
        x.axis(),
        (Panel(Axis(label(response), low=low), tuple(layers)),),
        label(title, 90),
        key="below" if len(names) > 1 else "off",
        notes=("bars: intervals; hollow: predicted",),
        kind="over-levels",
    )


def main_effects(effects: Sequence[Effect], response: str, title: str = "") -> Figure:
    """All factors beside each other: the response at each level, as a ratio to the lowest."""
    if not effects:
        raise InputError("nothing to draw: no factor has two levels")
    layers: list[Layer] = [Line(1.0, "")]
    ticks: list[tuple[float, str]] = []
    at = 0
    for number, effect in enumerate(effects):
        found = [(at + n, ratio) for n, ratio in enumerate(effect.ratios) if ratio is not None]
        points = tuple(Point(float(x), *ratio) for x, ratio in found)
        if number % 2 == 0:
            layers.append(Band(at - 0.6, at + len(effect.levels) - 0.4, label(effect.name, 24)))
        else:
            layers.append(Band(at - 0.6, at - 0.6, label(effect.name, 24)))
        layers.append(Curve("", points, number))
        ticks += [(float(at + n), label(text, 12)) for n, text in enumerate(effect.levels)]
        at += len(effect.levels)
    widest = max((len(a[1]) + len(b[1])) / 2 + 0.5 for a, b in pairwise(ticks))
    many = widest * LETTER * len(ticks) > 1
    axis = Axis("", "linear", tuple(ticks), rotate=90.0 if many else 0.0)
    return Figure(
        axis, (Panel(Axis(f"{label(response)}, × lowest level"), tuple(layers)),),
        label(title, 90), key="off", notes=("bars: intervals",), kind="main-effects",
    )  # fmt: skip


def cost_by_policy(hours: Mapping[str, Mapping[str, float]], title: str = "") -> Figure:
    """Figure 8: benchmarking hours of mapping, a bar for each policy beside each other, by workload; on a log axis.

    hours: by workload, then policy.
    """
    policies = list(dict.fromkeys(name for each in hours.values() for name in each))
    every = [value for each in hours.values() for value in each.values() if value > 0]
    if not every:
        raise InputError("nothing to draw: no policy has benchmarking hours")
    check_count(len(policies), "policies")
    bottom, top = _decade_below(min(every)), max(every) * 1.15
    width = 0.8 / len(policies)
    layers = []
    for number, policy in enumerate(policies):
        aside = width * (number - (len(policies) - 1) / 2)
        boxes = tuple(
            Box(place + aside, width * 0.92, bottom, each[policy])
            for place, each in enumerate(hours.values())
            if each.get(policy, 0.0) > 0
        )
        layers.append(Bars(label(policy, 32), boxes, number))
    ticks = tuple((float(n), label(name, 24)) for n, name in enumerate(hours))
    y = Axis("benchmarking time (h)", "log", _log_ticks(bottom, top), low=bottom, high=top)
    return Figure(
        Axis("", "linear", ticks), (Panel(y, tuple(layers)),), label(title, 90), key="above", kind="cost-by-policy"
    )  # fmt: skip


def cost_against(
    lines: Mapping[str, Sequence[tuple[float, float]]], x: str, title: str = "", *, scale: Scale = "linear"
) -> Figure:
    """Figures 9 and 10: benchmarking hours over a target (confidence, accuracy, width of the region), a line a name.

    lines: by name, pairs of the target and hours; a target below 1 is a share and shown in percent.
    """
    check_count(len(lines), "lines")
    pairs = [pair for each in lines.values() for pair in each]
    if not pairs:
        raise InputError("nothing to draw: no target has benchmarking hours")
    share = max(at for at, _ in pairs) <= 1
    factor = 100.0 if share else 1.0
    curves = tuple(
        Curve(label(name, 32), tuple(Point(factor * at, h) for at, h in sorted(each)), number)
        for number, (name, each) in enumerate(lines.items())
    )
    places = tuple(sorted({factor * at for at, _ in pairs}))
    ticks = _apart(places, tuple(f"{at:g}" for at in places), 1.0) if len(places) <= 8 else None
    low, high = min(h for _, h in pairs), max(h for _, h in pairs)
    y = Axis("benchmarking time (h)", low=0.0)
    if high > 10 * low > 0:
        bottom, top = low / 1.3, high * 1.3
        y = Axis("benchmarking time (h)", "log", _log_ticks(bottom, top), low=bottom, high=top)
    name = f"{label(x)} (%)" if share else label(x)
    key = "above" if len(lines) > 1 else "off"
    return Figure(
        Axis(name, scale, ticks), (Panel(y, curves),), label(title, 90), key=key, kind="cost-against"
    )


def iso_values(low: float, high: float, about: int = ISO_LINES) -> tuple[float, ...]:
    """Values at 1, 2, 2.5 or 5 times a power of ten, strictly between, at equal distances."""
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return ()
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = min((m * power for m in (1, 2, 2.5, 5, 10)), key=lambda s: abs(math.log(s / rough)))
    first = math.floor(low / step) + 1
    found = (n * step for n in range(first, math.ceil(high / step) + 1))
    return tuple(float(f"{v:.9g}") for v in found if low < v < high)


def _field(x: Levels, y: Levels, known: Sequence[KnownValue], response: str, *, solid: bool) -> Field:
    values = _check(known)
    spots = tuple(Spot(x.places[k.x], y.places[k.y], k.value, k.state) for k in known)
    lines = iso_values(min(values), max(values))
    return Field(x.places, y.places, spots, label(response), lines, solid)


def _check(known: Sequence[KnownValue]) -> list[float]:
    values = [each.value for each in known if each.value is not None]
    if not values:
        raise InputError("nothing to draw: no configuration has a value yet")
    return values


def _apart(places: Sequence[float], texts: Sequence[str], share: float) -> tuple[tuple[float, str], ...]:
    """Ticks whose names do not touch; the last is always there."""
    if len(places) < 2:
        return tuple((at, label(text, 16)) for at, text in zip(places, texts, strict=True))
    letter = LETTER * (places[-1] - places[0]) / share
    kept: list[tuple[float, str]] = []
    for at, text in reversed(list(zip(places, texts, strict=True))):
        name = label(text, 16)
        if not kept or kept[-1][0] - at >= letter * ((len(name) + len(kept[-1][1])) / 2 + 0.5):
            kept.append((at, name))
    return tuple(reversed(kept))


def _decade_below(value: float) -> float:
    """A power of ten, or half of one, clearly below."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(m * power for m in (5, 2, 1, 0.5) if m * power < value * 0.9)


def _log_ticks(low: float, high: float) -> tuple[tuple[float, str], ...]:
    """Ticks at 1, 2 and 5 of each decade; for more than two decades at 1 only."""
    many = math.log10(high / low) > 2.2
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values = [m * 10.0**p for p in powers for m in ((1,) if many else (1, 2, 5))]
    return tuple((v, f"{v:g}") for v in values if low * 0.999 <= v <= high * 1.001)
