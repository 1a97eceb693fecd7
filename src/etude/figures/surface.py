"""Figures of surfaces and of what they cost, by name: Figures 2 and 8 to 10 of "Cutting Corners"."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
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
    Mark,
    Panel,
    Point,
    Scale,
    Spot,
    State,
    check_count,
    label,
    labels,
)
from etude.surface.effects import MainEffect
from etude.surface.effects import main_effects as effects_of
from etude.surface.factors import Configuration, Factor, magnitude, setting_text, settings_of, with_level
from etude.surface.summary import Optimum
from etude.surface.surface_result import SurfaceResult, axis_label

ISO_LINES = 6
"""About so many."""
LETTER = 0.022
"""The share of an axis that a letter takes: of ticks whose names would touch some are left out."""


MOST_SETTINGS = 6
"""Most settings of the further factors that are drawn: of more, the first, the last and those at even distances."""
MOST_LINES = 8


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


def contours(
    x: Levels,
    y: Levels,
    known: Sequence[KnownValue],
    response: str,
    title: str = "",
    ringed: Collection[tuple[int, int]] = (),
) -> Figure:
    """A map in colours with iso-lines, each cell marked by how it is known. `ringed`: levels of the best cells.

    Raises:
        InputError: no cell has a value.
    """
    field = _field(x, y, known, response, solid=False)
    marks = (Mark(x.places[i], y.places[j], "") for i, j in ringed)
    return Figure(
        x.axis(0.75), (Panel(y.axis(), (field, *marks)),), label(title, 90), key="off", kind="contours"
    )


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
    shown = labels(names)
    for number, name in enumerate(names):
        mine = sorted((k for k in known if k.y == number and k.value is not None), key=lambda k: k.x)
        aside = 0.0 if x.numbers is not None else 0.14 * (number - (len(names) - 1) / 2)
        points = {k: Point(x.places[k.x] + aside, k.value or 0.0, k.low, k.high) for k in mine}
        text = shown[name]
        if x.numbers is not None and points:
            layers.append(Curve(text, tuple(points.values()), number, "line"))
            text = ""
        for states, look in (({"measured"}, "filled"), ({"predicted", "bounded"}, "hollow")):
            some = tuple(point for k, point in points.items() if k.state in states)
            if some:
                layers.append(Curve(text, some, number, look))  # type: ignore[arg-type]
                text = ""
    low = 0.0 if min(k.low or k.value or 0.0 for k in known if k.value is not None) >= 0 else None
    return Figure(
        x.axis(),
        (Panel(Axis(label(response), low=low), tuple(layers)),),
        label(title, 90),
        key="below" if len(names) > 1 else "off",
        notes=("bars: intervals; hollow: predicted",),
        kind="over-levels",
    )


def main_effects(effects: Sequence[MainEffect], response: str, title: str = "") -> Figure:
    """All factors beside each other: the response at each level, as a ratio to the lowest."""
    if not effects:
        raise InputError("nothing to draw: no factor has two levels")
    layers: list[Layer] = [Line(1.0, "")]
    ticks: list[tuple[float, str]] = []
    at = 0
    factors = labels((effect.factor for effect in effects), 24)
    for number, effect in enumerate(effects):
        found = [(at + n, ratio) for n, ratio in enumerate(effect.ratios) if ratio is not None]
        points = tuple(Point(float(x), ratio.value, ratio.low, ratio.high) for x, ratio in found)
        if number % 2 == 0:
            layers.append(Band(at - 0.6, at + len(effect.levels) - 0.4, factors[effect.factor]))
        else:
            layers.append(Band(at - 0.6, at - 0.6, factors[effect.factor]))
        layers.append(Curve("", points, number))
        shown = labels(effect.levels, 12)
        ticks += [(float(at + n), shown[text]) for n, text in enumerate(effect.levels)]
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
    shown, below = labels(policies, 32), labels(hours, 24)
    for number, policy in enumerate(policies):
        aside = width * (number - (len(policies) - 1) / 2)
        boxes = tuple(
            Box(place + aside, width * 0.92, bottom, each[policy])
            for place, each in enumerate(hours.values())
            if each.get(policy, 0.0) > 0
        )
        layers.append(Bars(shown[policy], boxes, number))
    ticks = tuple((float(n), below[name]) for n, name in enumerate(hours))
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
    shown = labels(lines, 32)
    curves = tuple(
        Curve(shown[name], tuple(Point(factor * at, h) for at, h in sorted(each)), number)
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
    shown = labels(texts, 16)
    if len(places) < 2:
        return tuple((at, shown[text]) for at, text in zip(places, texts, strict=True))
    letter = LETTER * (places[-1] - places[0]) / share
    kept: list[tuple[float, str]] = []
    for at, text in reversed(list(zip(places, texts, strict=True))):
        name = shown[text]
        if not kept or kept[-1][0] - at >= letter * ((len(name) + len(kept[-1][1])) / 2 + 0.5):
            kept.append((at, name))
    return tuple(reversed(kept))


def _decade_below(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    return next(m * power for m in (5, 2, 1, 0.5) if m * power < value * 0.9)


def _log_ticks(low: float, high: float) -> tuple[tuple[float, str], ...]:
    """Ticks at 1, 2 and 5 of each decade; for more than two decades at 1 only."""
    many = math.log10(high / low) > 2.2
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values = [m * 10.0**p for p in powers for m in ((1,) if many else (1, 2, 5))]
    return tuple((v, f"{v:g}") for v in values if low * 0.999 <= v <= high * 1.001)


def figures_of(mapped: SurfaceResult, best: Optimum | None = None) -> Mapping[str, Figure]:
    """Figures of a map: for two ascending factors a surface in space and its map (one for each setting of the others),
    else lines; effects. `best`: the optimum, which is marked in the map with its ties.

    Raises:
        InputError: no cell has a value yet.
    """
    several = [n for n, factor in enumerate(mapped.space.factors) if len(factor.levels) > 1]
    rising = [n for n in several if mapped.space.factors[n].scale != "categorical"]
    found: dict[str, Figure] = {}
    if len(rising) >= 2:
        found |= _planes(mapped, *_widest(mapped, rising), best)
    elif several:
        found |= _lines(mapped, several, rising)
    if len(several) > 1:
        found["effects"] = main_effects(effects_of(mapped.filled), mapped.response)
    return found


def known_of(mapped: SurfaceResult, cell: Configuration, x: int, y: int) -> KnownValue:
    """The value of a cell as figures show it; x and y: its levels there."""
    each = mapped.estimate(cell)
    low, high = (end if 0 < end < math.inf else None for end in (each.low, each.high))
    if low is None or high is None or each.value is None:
        low = high = None
    return KnownValue(x, y, each.value, low, high, each.state)


def levels_of(factor: Factor) -> Levels:
    """An axis of a factor."""
    texts = tuple(factor.text(n) for n in range(len(factor.levels)))
    numbers = tuple(magnitude(level) for level in factor.levels) if factor.numeric else None
    return Levels(axis_label(factor.name, factor.unit), texts, numbers, factor.scale == "log")


def _widest(mapped: SurfaceResult, rising: list[int]) -> tuple[int, int]:
    """The two factors with the largest effects, in the order in which they were named."""
    effects = {effect.factor: effect.size for effect in effects_of(mapped.filled)}
    names = [factor.name for factor in mapped.space.factors]
    best = sorted(rising, key=lambda n: -effects.get(names[n], 1.0))[:2]
    first, second = sorted(best)
    return first, second


def _planes(mapped: SurfaceResult, a: int, b: int, best: Optimum | None) -> dict[str, Figure]:
    """Both views over two factors, for each setting of the others."""
    space = mapped.space
    x, y = levels_of(space.factors[a]), levels_of(space.factors[b])
    response = axis_label(mapped.response, mapped.unit)
    found: dict[str, Figure] = {}
    for cell in _some(settings_of(space, [a, b]), MOST_SETTINGS):
        setting = setting_text(space.factors, cell, [a, b])
        known = [
            known_of(mapped, each, each[a], each[b])
            for each in space
            if all(each[n] == cell[n] for n in range(len(cell)) if n not in (a, b))
        ]
        if any(each.value is not None for each in known):
            suffix = f"-{setting.replace(' ', '-')}".replace("/", "_") if setting else ""
            found[f"surface{suffix}"] = solid(x, y, known, response, setting)
            marked = () if best is None else (best.best.cell, *best.alike)
            ringed = [
                (each[a], each[b]) for each in marked if with_level(with_level(each, a, 0), b, 0) == cell
            ]
            found[f"map{suffix}"] = contours(x, y, known, response, setting, ringed)
    return found


def _lines(mapped: SurfaceResult, several: list[int], rising: list[int]) -> dict[str, Figure]:
    """Over the factor that rises, else the first one: a line for each setting of the others."""
    space = mapped.space
    at = rising[0] if rising else several[0]
    settings = _some(settings_of(space, [at]), MOST_LINES)
    fixed = [n for n, factor in enumerate(space.factors) if len(factor.levels) == 1]
    names, title = _named(space.factors, settings, [at, *fixed])
    known = [
        known_of(mapped, each, each[at], number)
        for number, cell in enumerate(settings)
        for each in space
        if all(each[n] == cell[n] for n in range(len(cell)) if n != at)
    ]
    response = axis_label(mapped.response, mapped.unit)
    return {"surface": over_levels(levels_of(space.factors[at]), names, known, response, title)}


def _named(
    factors: tuple[Factor, ...], cells: list[Configuration], without: list[int]
) -> tuple[list[str], str]:
    """Names of lines by their levels, and the heading above them where these are of one factor."""
    others = [n for n in range(len(factors)) if n not in without]
    if len(others) != 1:
        return [setting_text(factors, cell, without) for cell in cells], ""
    (at,) = others
    return [factors[at].text(cell[at]) for cell in cells], f"by {factors[at].name}"


def _some(cells: list[Configuration], most: int) -> list[Configuration]:
    if len(cells) <= most:
        return cells
    return [cells[round(n * (len(cells) - 1) / (most - 1))] for n in range(most)]
